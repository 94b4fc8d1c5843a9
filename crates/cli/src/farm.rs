//! `regraft farm`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use regraft::error::Failure;
use regraft::render::{count, seconds};
use regraft_farm::{Crew, Farm, Jobs, Local, Ray, State, Table, Task, Watcher, work};

use crate::command::understand;
use crate::console::Console;
use crate::exit::Exit;
use crate::host::Call;
use crate::progress::Progress;

/// Optimize many models, on this machine or in a Ray cluster
///
/// Reads a file of jobs and makes a folder beside it, the farm: one task for each model, size,
/// number of threads and target; what each makes; and a table of all. What is done already is not
/// repeated, so the same command goes on where it was interrupted. Tasks that time something get
/// whole processor cores, which no other task uses meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to do
    #[arg(value_name = "JOBS.toml")]
    jobs: PathBuf,
    /// Work in the Ray cluster at this address: `auto`, HOST:PORT, or ray://HOST:PORT
    ///
    /// Its machines need regraft of this version. They work in the folder of the farm if they see
    /// it; otherwise files are sent to them, and results back. REGRAFT_PYTHON names an interpreter
    /// that has the package ray.
    #[arg(long, value_name = "ADDRESS")]
    ray: Option<String>,
    /// With --ray: send files and results though the machines may see the folder
    #[arg(long, requires = "ray")]
    send: bool,
    /// Try again what failed or crashed
    #[arg(long)]
    again: bool,
    /// Only describe the tasks, and print the files of those that are open, for `regraft task`
    #[arg(long, conflicts_with_all = ["ray", "again"])]
    plan: bool,
    /// Only show the table
    #[arg(long, conflicts_with_all = ["ray", "again", "plan"])]
    table: bool,
    /// Print the table as JSON
    #[arg(long, conflicts_with = "plan")]
    json: bool,
}

const EXAMPLES: &str = "\
A file of jobs:
  folder = \"fast\"                                  # the farm [default: the file's name]

  [[optimize]]
  models = \"models/*.onnx\"                         # or a list
  sizes = [\"N=1\", \"N=8\", [\"x:1,3,64,64\", \"m:1\"]]   # a task each; a list sets several inputs
  threads = [1, 4]                                 # a task each [default: all cores; 1 if nothing is timed]
  targets = [\"onnxruntime\"]                        # a task each
  budget = \"60s\"
  options = [\"--data=data/\"]                       # any other of `regraft optimize`
  files = [\"data/*.npy\"]                           # files that the options name
  cores = 4                                        # of a task [default: its threads]

  [[bench]]
  input = \"model.onnx\"
  candidates = \"candidates/*.onnx\"                 # a task each; sizes, threads, .. as above

  [[generate]]
  spec = \"taso\"
  size = 4
  shards = 16                                      # a task each, and one that merges them
  memory = \"2G\"

  [[synthesize]]
  layers = \"resnet-18-layer\"                       # a preset, or a file with a specification
  operators = 32                                   # to draw, time and train in each round
  tasks = 8                                        # that share them
  rounds = 3                                       # each draws with what the one before found out

  [[policy]]
  networks = [\"resnet-50\", \"bert-base\"]            # of the zoo [default: those of `regraft policy`]
  without = \"attention\"                            # families and networks to leave out
  blocks = 300                                     # of each network
  seed = 0
  shards = 16                                      # a task each, and one that puts their samples together
  epochs = 15                                      # a task that trains on them [default: none]

Examples:
  regraft farm jobs.toml
  regraft farm jobs.toml --ray auto
  regraft farm jobs.toml --table";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let jobs = Jobs::read(&args.jobs)?;
    let farm = jobs.farm(&args.jobs)?;
    let tasks = jobs.tasks(&farm)?;
    check_commands(&tasks)?;
    if args.table {
        return shown(&Table::read(&farm, &tasks), args, console, None);
    }
    farm.plant(&tasks)?;
    if args.plan {
        let table = Table::read(&farm, &tasks);
        let open = tasks.iter().zip(&table.rows).filter(|(_, row)| row.state.is_none());
        let files: Vec<String> = open.map(|(task, _)| farm.task_file(&task.id).display().to_string()).collect();
        if !files.is_empty() {
            console.print(&files.join("\n"))?;
        }
        return Ok(Exit::Done);
    }
    if args.again {
        forget(&farm, &tasks)?;
    }
    console.catch("leaving the rest for later; the same command goes on");
    let mut crew = crew(args, &farm, console)?;
    let mut watched = Watched { progress: Progress::new(console), console };
    let table = work(&farm, &tasks, crew.as_mut(), &mut watched)?;
    drop(watched);
    let exit = shown(&table, args, console, Some(seconds(start.elapsed().as_secs_f64())))?;
    Ok(if console.interrupted() { Exit::Interrupted } else { exit })
}

/// Fails if a command is none: before tasks do, one after the other.
fn check_commands(tasks: &[Task]) -> Result<(), Failure> {
    for task in tasks {
        let words: Vec<String> = std::iter::once("regraft".to_owned()).chain(task.arguments.iter().cloned()).collect();
        let asks_for_help = ["--help", "-h", "--version"].iter().any(|word| task.arguments.iter().any(|given| given == word));
        let understood = if asks_for_help { Err(Failure::new("help is no work")) } else { understand(&words) };
        understood.map_err(|failure| {
            Failure::new(format!("{}: {}", task.id, failure.cause))
                .hint("look at `options`, `targets` and `threads`; the farm itself gives --output, --report, --threads and --budget")
        })?;
    }
    Ok(())
}

/// Removes what failed.
fn forget(farm: &Farm, tasks: &[Task]) -> Result<(), Failure> {
    for task in tasks {
        if farm.outcome(task).is_some_and(|outcome| !outcome.state.has_output()) {
            farm.forget(&task.id)?;
        }
    }
    Ok(())
}

/// Those who work: on this machine, or in a cluster.
fn crew(args: &Args, farm: &Farm, console: &Console) -> Result<Box<dyn Crew>, Failure> {
    let Some((program, first)) = Call::program(console.caller.starter.as_ref()) else {
        return Err(Failure::new("there is no program to start for the tasks").hint("`regraft farm` on the command line has one"));
    };
    let own: Vec<OsString> = std::iter::once(program.into()).chain(first.iter().cloned()).collect();
    let Some(address) = &args.ray else { return Ok(Box::new(Local::new(farm.clone(), own))) };
    let of_package = || (own.len() > 1).then(|| program.to_path_buf());
    let interpreter = std::env::var_os("REGRAFT_PYTHON").map(PathBuf::from).or_else(of_package).unwrap_or_else(|| "python3".into());
    Ok(Box::new(Ray::connect(farm.clone(), address, &interpreter, &own, args.send)?))
}

fn shown(table: &Table, args: &Args, console: &Console, time: Option<String>) -> Result<Exit, Failure> {
    let missing = table.rows.len() - table.count(Some(State::Done));
    if args.json {
        console.json(&table)?;
    } else {
        let ended = [State::Done, State::Unmet, State::Failed, State::Crashed].map(Some).into_iter().chain([None]);
        let name = |state: Option<State>| state.map_or("open", State::name);
        let mut parts: Vec<String> =
            ended.map(|state| (table.count(state), name(state))).filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
        if let Some((mean, models)) = table.mean() {
            parts.push(format!("geometric mean {mean:.3}x of {}", count(models, "model")));
        }
        parts.extend(time);
        let verdict = format!("verdict: {}", parts.join(" · "));
        console.print(&if console.quiet { verdict } else { format!("{}\n{verdict}", table.shown()) })?;
    }
    Ok(if missing == 0 { Exit::Done } else { Exit::Unmet })
}

/// Shows how far tasks have come.
struct Watched<'a> {
    progress: Progress,
    console: &'a Console,
}

impl Watcher for Watched<'_> {
    fn step(&mut self, done: usize, all: usize, detail: &str) {
        self.progress.step(&format!("{done}/{all}"), detail);
    }

    fn warn(&mut self, text: &str) {
        self.console.warn(text);
    }

    fn interrupted(&self) -> bool {
        self.console.interrupted()
    }
}
