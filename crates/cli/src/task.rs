//! `regraft task`.

use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use regraft::error::Failure;
use regraft_farm::{Command, Farm, Ran, State, Task, attempt, withdraw_for_good};
use regraft_runtime::Starter;

use crate::command::call;
use crate::console::Console;
use crate::exit::Exit;
use crate::host::{Call, Host};
use crate::interrupt;

/// Work on one task of a farm
///
/// For schedulers that `regraft farm` does not know. Runs the command of the task, on processor
/// cores that are its alone, and writes what came of it into the farm; a task that is done is left
/// as it is. `regraft farm JOBS.toml --plan` prints the tasks.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A task, in the folder `tasks` of a farm
    #[arg(value_name = "TASK.json")]
    task: PathBuf,
    /// End when standard input does: with whoever started this
    #[arg(long)]
    attached: bool,
}

const EXAMPLES: &str = "\
Examples:
  regraft farm jobs.toml --plan > open.txt
  xargs -d '\\n' -n 1 regraft task < open.txt
  regraft farm jobs.toml --table                                  what came of them";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let (farm, task) = Farm::of_task(&args.task)?;
    console.catch("the task is left as it was");
    if args.attached {
        end_with_input(farm.clone(), task.clone());
    }
    let runner = Runner { starter: console.caller.starter.clone() };
    match attempt(&farm, &task, &runner)? {
        None => Ok(Exit::Interrupted),
        Some(outcome) => {
            let why = outcome.cause.map_or(String::new(), |cause| format!(": {cause}"));
            console.print(&format!("{}: {}{why}", outcome.task, outcome.state.name()))?;
            // Whoever started this finds the outcome in the farm.
            Ok(if args.attached || outcome.state == State::Done { Exit::Done } else { Exit::Unmet })
        }
    }
}

/// Ends this process when its standard input ends.
fn end_with_input(farm: Farm, task: Task) {
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes), Ok(1..)) {}
        withdraw_for_good(&farm, &task);
        std::process::exit(Exit::Interrupted as i32);
    });
}

/// Runs commands in this process.
struct Runner {
    starter: Option<Starter>,
}

impl Command for Runner {
    fn run(&self, arguments: &[String]) -> Ran {
        let log = Arc::new(Log::default());
        let arguments = std::iter::once("regraft".into()).chain(arguments.iter().map(Into::into)).collect();
        let done = call(Call { arguments, starter: self.starter.clone() }, log.clone());
        let said = std::mem::take(&mut *log.0.lock().unwrap_or_else(PoisonError::into_inner));
        match done {
            Ok(exit) => Ran { exit: exit as u8, failure: None, ..said },
            Err(failure) => Ran { exit: Exit::Failed as u8, failure: Some(failure), ..said },
        }
    }

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }
}

/// What a command says.
#[derive(Default)]
struct Log(Mutex<Ran>);

impl Log {
    fn note(&self, what: impl FnOnce(&mut Ran)) {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Host for Log {
    fn print(&self, text: &str) {
        self.note(|ran| ran.output.push_str(text));
    }

    fn warn(&self, text: &str) {
        self.note(|ran| ran.warnings.push(text.to_owned()));
    }

    fn step(&self, _: &str, _: &str) {}

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }
}
