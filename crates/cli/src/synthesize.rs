//! `regraft synthesize`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regraft::error::Failure;
use regraft::file::{check_apart, check_writable};
use regraft::render::{count, lines, plain_table, seconds};
use regraft::synthesize::{
    KindReport, Operated, Point, Report, Request, SearchReport, SearchRequest, Trained, Trainer, draw, join, judge, search, synthesize,
};
use regraft::units::{ShapeArg, parse_bind, parse_duration, parse_shape, show_ns};

use regraft_synth::{Spec, presets};

use crate::console::Console;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::target::LibraryArgs;
use crate::trainer;

/// Look for operators that do what a layer does, nearly, and faster
///
/// With a model: the result approximates it; `regraft check` tells them apart. For each kind of
/// convolution, linear operators with other sums and weights are searched that run faster on this
/// machine; each is fitted to what the layer computes when the model runs. Of the choices of
/// operators, the fastest is written whose outputs are off by at most --max-error; if there is
/// none, the input.
///
/// With --preset or --spec: operators for layers of these sizes, judged by their time here, their
/// weights, and the accuracy of a small network with them after training.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// ONNX model
    #[arg(value_name = "MODEL", required_unless_present_any = ["preset", "spec"], conflicts_with_all = ["preset", "spec"])]
    model: Option<PathBuf>,
    /// Where the result goes; with --draw, the formulas
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["preset", "spec"])]
    output: Option<PathBuf>,
    /// Layers of a known network: resnet-18-layer, resnet-34-layer, resnext-29-layer,
    /// densenet-121-layer, efficientnet-v2-s-layer, gpt-2-qkv, vit-linear, small-network
    #[arg(long, value_name = "NAME", conflicts_with = "spec")]
    preset: Option<String>,
    /// Layers, as a specification in TOML
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// A folder for what is found: formulas, ONNX, PyTorch and TVM
    #[arg(long, value_name = "FOLDER", conflicts_with = "model")]
    emit: Option<PathBuf>,
    /// A database of what was trained, which is not trained again
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    store: Option<PathBuf>,
    /// Only draw so many operators, and write their formulas to -o: a piece of a search on many
    /// machines
    #[arg(long, value_name = "N", conflicts_with_all = ["model", "emit", "store", "report", "json"], value_parser = clap::value_parser!(u32).range(1..))]
    draw: Option<u32>,
    /// With --draw: reports of what was judged before, which the search learns from
    #[arg(long, value_name = "REPORT", requires = "draw", num_args = 1..)]
    known: Vec<PathBuf>,
    /// Judge the operators of this file, a formula a line, instead of a search
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "draw"])]
    operators: Option<PathBuf>,
    /// With --operators: of N parts this one
    #[arg(long, value_name = "K/N", requires = "operators", value_parser = parse_part)]
    part: Option<(usize, usize)>,
    /// Join these reports instead of a search
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["model", "draw", "operators"], num_args = 1..)]
    join: Vec<PathBuf>,
    /// The most by which outputs may be off, relative to their size: 1%, 0.01
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share, conflicts_with_all = ["preset", "spec"])]
    max_error: f64,
    /// Wall time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    budget: Duration,
    /// Size of an input: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape, conflicts_with_all = ["preset", "spec"])]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size: N=8
    #[arg(long, value_name = "SYMBOL=SIZE", value_parser = parse_bind, conflicts_with_all = ["preset", "spec"])]
    bind: Vec<(String, i64)>,
    /// Real inputs to fit to and to measure errors on: INPUT:FILE.npy (or .pb), FILE.npz, or a
    /// folder with one file per input or test_data_set_* [default: made-up ones]
    #[arg(long, value_name = "DATA", conflicts_with_all = ["preset", "spec"])]
    data: Vec<String>,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of the search and of made-up inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Also write what was found as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    library: LibraryArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs longer than this many times their budget are remarked on.
const OVERRUN: f64 = 1.2;

const EXAMPLES: &str = "\
Examples:
  regraft synthesize model.onnx -o close.onnx
  regraft synthesize --preset resnet-18-layer --budget 10m --emit operators/
  regraft synthesize model.onnx -o close.onnx --max-error 5% --data samples/ --report found.json";

/// `1%` or `0.01`.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share: f64 = number.trim().parse().map_err(|_| format!("`{text}` is no share: 1% or 0.01"))?;
    let share = share * unit;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("`{text}` is not between 0 and 100%")) }
}

/// `3/8`.
fn parse_part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    numbers.filter(|(number, of)| (1..=*of).contains(number)).ok_or_else(|| format!("`{text}` is no part: 3/8"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    console.catch("measuring what was found so far");
    args.report.as_deref().map_or(Ok(()), |path| check_writable(path, "--report"))?;
    match (&args.model, &args.output) {
        (Some(model), Some(output)) => approximated(args, model, output, console),
        (None, Some(output)) if args.draw.is_none() => {
            let failure = Failure::new(format!("{}: a search without a model has no result", output.display()));
            Err(failure.hint("--emit FOLDER writes what it finds, --report FILE what it measured"))
        }
        _ => searched(args, console),
    }
}

fn approximated(args: &Args, model: &Path, output: &Path, console: &Console) -> Result<Exit, Failure> {
    let request = Request {
        shapes: args.shape.clone(),
        binds: args.bind.clone(),
        data: args.data.clone(),
        threads: args.threads.map(usize::from),
        budget: args.budget,
        max_error: args.max_error,
        seed: args.seed,
        runtime: args.library.choice(),
        ..Request::new(model, output)
    };
    let model_and_result = [("the model", model), ("the result", output)];
    check_apart(("the result", output, "-o"), &model_and_result[..1])?;
    if let Some(path) = &args.report {
        check_apart(("the report", path, "--report"), &model_and_result)?;
    }
    let report = {
        let mut progress = Progress::new(console);
        synthesize(&request, &mut progress)?
    };
    if let Some(path) = &args.report {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::new)?;
        regraft::file::write_atomic(path, format!("{text}\n").as_bytes())?;
    }
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&shown(&report, output, args.budget, console))?;
    }
    Ok(match (console.interrupted(), report.written) {
        (true, _) => Exit::Interrupted,
        (false, Some(_)) => Exit::Done,
        (false, None) => Exit::Unmet,
    })
}

fn shown(report: &Report, output: &Path, budget: Duration, console: &Console) -> String {
    let verdict = match report.written.map(|at| &report.front[at]) {
        Some(point) => format!(
            "approximates the input: {:.2}x faster [{:.2}, {:.2}], outputs off by {}",
            point.speedup.median,
            point.speedup.low,
            point.speedup.high,
            percent(point.error)
        ),
        None if report.ended_early() => "the input, unchanged: no operator was fitted in time (hint: a larger --budget)".into(),
        None => format!("the input, unchanged: nothing faster is within {}", percent(report.max_error)),
    };
    let verdict = format!("verdict: {verdict} · {} · {}", seconds(report.seconds), output.display());
    if report.seconds > OVERRUN * budget.as_secs_f64() {
        console.warn(&format!("it took {}, more than the {} of --budget", seconds(report.seconds), seconds(budget.as_secs_f64())));
    }
    if console.quiet {
        return verdict;
    }
    let mut kinds = plain_table(&["layer", "count", "time", "operators", "timed", "faster", "least error"], &[1, 2, 3, 4, 5, 6]);
    for kind in &report.kinds {
        kinds.add_row(kind_row(kind));
    }
    let mut front = plain_table(&["replaced", "outputs off by", "speed-up", "weights", ""], &[0, 1, 2, 3]);
    for (at, point) in report.front.iter().enumerate() {
        front.add_row(point_row(point, report.written == Some(at)));
    }
    let inputs = if report.real_inputs { "your inputs" } else { "made-up inputs (give yours with --data)" };
    let conditions = format!("{}, {}, errors on {inputs}", report.runtime, count(report.threads, "thread"));
    let others = match report.others {
        0 => String::new(),
        n => format!("note: {} stride, have groups or no known weights, or are small, and stay\n", count(n, "other layer")),
    };
    format!("{}\n{}\n{conditions}\n{others}{verdict}", lines(&kinds), lines(&front))
}

fn kind_row(kind: &KindReport) -> [String; 7] {
    let fastest = kind.operators.iter().map(|operator| operator.faster).fold(0.0, f64::max);
    let least = kind.operators.iter().flat_map(|operator| &operator.errors).copied().fold(f64::INFINITY, f64::min);
    let some = |value: f64, text: String| if value > 0.0 && value.is_finite() { text } else { "-".into() };
    [
        kind.layer.clone(),
        kind.count.to_string(),
        some(kind.ns, show_ns(kind.ns)),
        (kind.known + kind.drawn).to_string(),
        kind.timed.to_string(),
        some(fastest, format!("{fastest:.2}x")),
        some(least, percent(least)),
    ]
}

fn point_row(point: &Point, written: bool) -> [String; 5] {
    let speedup = &point.speedup;
    [
        point.replaced.to_string(),
        percent(point.error),
        format!("{:.3}x [{:.3}, {:.3}]", speedup.median, speedup.low, speedup.high),
        percent(point.parameters),
        if written { "written".into() } else { String::new() },
    ]
}

/// `--preset` and `--spec`.
fn searched(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let request = SearchRequest {
        spec: specification(args)?,
        threads: args.threads.map(usize::from),
        budget: args.budget,
        seed: args.seed,
        emit: args.emit.clone(),
        runtime: args.library.choice(),
    };
    if let Some(count) = args.draw {
        return drawn(args, &request, count as usize, console);
    }
    let mut trainer = Program::find(args.store.clone());
    let report = {
        let mut progress = Progress::new(console);
        match (&args.operators, args.join.is_empty()) {
            (Some(path), _) => judge(&request, &part(&formulas(path)?, args.part), &mut trainer, &mut progress)?,
            (None, false) => join(&request.spec, reports(&args.join)?, request.emit.as_deref())?,
            (None, true) => search(&request, &mut trainer, &mut progress)?,
        }
    };
    if let Some(path) = &args.report {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::new)?;
        regraft::file::write_atomic(path, format!("{text}\n").as_bytes())?;
    }
    if trainer.program.is_none() && args.join.is_empty() {
        console.warn("operators were not trained: build the trainer (cargo build --release -p regraft-train), which is looked for beside this program, or name it in REGRAFT_TRAINER");
    }
    let untrained = report.dense.trained.is_some() && !report.front.is_empty() && report.front.iter().all(|o| o.trained.is_none());
    if untrained {
        console.warn("there was no time to train an operator: give a larger --budget");
    }
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&front_of(&report, console))?;
    }
    Ok(match (console.interrupted(), report.front.is_empty() && args.operators.is_none()) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Done,
        (false, true) => Exit::Unmet,
    })
}

/// `--draw`: formulas, one a line.
fn drawn(args: &Args, request: &SearchRequest, count: usize, console: &Console) -> Result<Exit, Failure> {
    let Some(output) = &args.output else {
        return Err(Failure::new("--draw lacks a file for the formulas").hint("-o operators.txt"));
    };
    let drawn = {
        let mut progress = Progress::new(console);
        draw(&request.spec, count, request.seed, &reports(&args.known)?, &mut progress)?
    };
    regraft::file::write_atomic(output, (drawn.join("\n") + "\n").as_bytes())?;
    console.print(&format!("verdict: {} drawn · {}", self::count(drawn.len(), "operator"), output.display()))?;
    Ok(if console.interrupted() { Exit::Interrupted } else { Exit::Done })
}

/// The formulas of a file, one a line.
fn formulas(path: &Path) -> Result<Vec<String>, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())).hint("--operators names a file"))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Every so manieth of them.
fn part(formulas: &[String], part: Option<(usize, usize)>) -> Vec<String> {
    let (number, of) = part.unwrap_or((1, 1));
    formulas.iter().skip(number - 1).step_by(of).cloned().collect()
}

fn reports(paths: &[PathBuf]) -> Result<Vec<SearchReport>, Failure> {
    let read = |path: &PathBuf| {
        let place = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display())).hint("name what --report wrote");
        serde_json::from_slice(&std::fs::read(path).map_err(|e| place(&e))?).map_err(|e| place(&e))
    };
    paths.iter().map(read).collect()
}

fn specification(args: &Args) -> Result<Spec, Failure> {
    if let Some(name) = &args.preset {
        let known = presets::names().collect::<Vec<_>>().join(", ");
        let preset =
            presets::find(name).ok_or_else(|| Failure::new(format!("no preset is called `{name}`")).hint(format!("there are {known}")))?;
        return Ok(preset.spec);
    }
    let path = args.spec.as_deref().unwrap_or(Path::new(""));
    let place = |e: &dyn std::fmt::Display| {
        Failure::new(format!("{}: {e}", path.display())).hint("--spec names a specification in TOML: docs/guide/synthesizing.md shows one")
    };
    let text = std::fs::read_to_string(path).map_err(|e| place(&e))?;
    let spec = Spec::parse(&text).map_err(|e| place(&e))?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(if spec.name.is_empty() { Spec { name, ..spec } } else { spec })
}

fn front_of(report: &SearchReport, console: &Console) -> String {
    let faster = report.timed.iter().filter(|operated| operated.is_faster());
    let (known, found): (Vec<_>, Vec<_>) = faster.partition(|operated| operated.known);
    let slower = report.timed.len() - known.len() - found.len();
    let tried = format!("{} known operators and {} found ones are faster than the layer, {slower} are not", known.len(), found.len());
    let verdict = format!(
        "verdict: {} on the front of time, weights and accuracy · {}",
        count(report.front.len(), "operator"),
        seconds(report.seconds)
    );
    if console.quiet {
        return verdict;
    }
    let mut table = plain_table(&["speed-up", "accuracy", "multiplications", "weights", "operator"], &[0, 1, 2, 3]);
    // The worse half is dropped after each milestone: then less training went in.
    let longest = report.timed.iter().chain([&report.dense]).filter_map(|operated| Some(operated.trained?.epoch)).max();
    let row = |operated: &Operated, what: String| {
        let accuracy = operated.trained.map_or("-".into(), |trained| {
            let early = longest.filter(|longest| trained.epoch < *longest).map_or(String::new(), |_| format!(", epoch {}", trained.epoch));
            format!("{:.1} %{early}", 100.0 * trained.accuracy)
        });
        [format!("{:.2}x", operated.faster), accuracy, percent(operated.macs), percent(operated.parameters), what]
    };
    table.add_row(row(&report.dense, format!("the layer: {}", report.dense.formula)));
    for operated in &report.front {
        table.add_row(row(operated, operated.formula.clone()));
    }
    let conditions = format!("{}, {}, layers of {}", report.runtime, count(report.threads, "thread"), report.spec);
    format!("{}\n{conditions}\n{tried}\n{verdict}", lines(&table))
}

/// The program that trains small networks with operators in them.
struct Program {
    program: Option<PathBuf>,
    store: Option<PathBuf>,
}

impl Program {
    fn find(store: Option<PathBuf>) -> Program {
        Program { program: trainer::find(), store }
    }
}

impl Trainer for Program {
    fn train(&mut self, formulas: &[String]) -> Result<Vec<Option<Trained>>, Failure> {
        let Some(program) = &self.program else { return Ok(vec![None; formulas.len()]) };
        let mut command = std::process::Command::new(program);
        command.arg("--json").args(self.store.iter().flat_map(|store| [OsStr::new("--store"), store.as_os_str()])).args(formulas);
        let named = "name the trainer in REGRAFT_TRAINER, or leave the variable empty: then nothing is trained";
        let output = command.output().map_err(|e| Failure::new(format!("{}: {e}", program.display())).hint(named))?;
        if !output.status.success() && output.stdout.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
            let failure = Failure::new(format!("{} ended with {}: {said}", program.display(), output.status));
            return Err(failure.hint(named));
        }
        #[derive(serde::Deserialize)]
        struct Run {
            formula: String,
            #[serde(flatten)]
            trained: Trained,
        }
        // An operator that does not fit the small network's layers is not trained.
        let runs: Vec<Run> = String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(formulas.iter().map(|formula| runs.iter().find(|run| run.formula == *formula).map(|run| run.trained)).collect())
    }
}

fn percent(share: f64) -> String {
    let share = 100.0 * share;
    if share >= 10.0 { format!("{share:.0} %") } else { format!("{share:.2} %") }
}
