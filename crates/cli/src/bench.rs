//! `regraft bench`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use regraft_onnx::Model;
use regraft_rules::Library;
use regraft_zoo::{Options, Weights};

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use crate::target::RuntimeArgs;
use regraft::bench::{BenchReport, BenchRequest};
use regraft::confirm::{self, Confirmation, Outcome};
use regraft::error::Failure;
use regraft::optimize::clean;
use regraft::render::{count, lines, plain_table, seconds, shape};
use regraft::report::Speedup;
use regraft::speed;
use regraft::units::{ShapeArg, parse_bind, parse_duration, parse_shape, show_ns};

/// Default graph of the engine's benchmark.
const ENGINE_MODEL: &str = "resnext-50";

/// Time models against each other, or the search engine itself
///
/// Runs all models in turn, in changing order, on the same inputs, with the runtime's own optimizer
/// fully on. Ratios compare each model with the first one, run by run; the interval is a 95 %
/// bootstrap interval of their median.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Models; the others are compared with the first. With --engine: one file or name in the zoo
    /// [default: resnext-50]
    #[arg(value_name = "MODEL", required_unless_present = "engine")]
    models: Vec<PathBuf>,
    /// Confirm a prediction: time IN and OUT of `regraft optimize --cost profile:FILE` on this
    /// machine, and end with exit code 1 unless OUT is faster, by as much as was predicted
    ///
    /// Sizes, threads and runtime are those that the prediction is for.
    #[arg(long, conflicts_with_all = ["engine", "shape", "bind", "data", "threads"])]
    here: bool,
    /// With --here: report that holds the prediction [default: the one beside OUT]
    #[arg(long, value_name = "REPORT", requires = "here")]
    predicted: Option<PathBuf>,
    /// Measure how many moves per second the search engine applies and undoes, on one core
    #[arg(long, conflicts_with_all = ["shape", "bind", "data", "threads", "runs", "runtime_library"])]
    engine: bool,
    /// Size of an input: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape)]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size: N=8
    #[arg(long, value_name = "SYMBOL=SIZE", value_parser = parse_bind)]
    bind: Vec<(String, i64)>,
    /// Real inputs to run on: INPUT:FILE.npy (or .pb), FILE.npz, or a folder with one file per
    /// input or test_data_set_*
    #[arg(long, value_name = "DATA")]
    data: Vec<String>,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Timed runs of each model [default: as many as the budget allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "budget")]
    runs: Option<u32>,
    /// Time that all runs together may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    budget: Duration,
    /// Seed of the made-up inputs and of the interval
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// With --engine: more rules, beside the shipped ones
    #[arg(long, value_name = "FILE", requires = "engine")]
    rules: Vec<PathBuf>,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  regraft bench model.onnx fast.onnx
  regraft bench model.onnx fast.onnx --threads 4 --budget 30s --shape x:8,3,224,224
  regraft bench --here model.onnx fast.onnx
  regraft bench --engine resnet-50";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    console.catch("telling what was measured so far");
    match (args.engine, args.here) {
        (true, _) => engine(args, console),
        (_, true) => here(args, console),
        _ => models(args, console),
    }
}

fn request(args: &Args) -> BenchRequest {
    BenchRequest {
        shapes: args.shape.clone(),
        binds: args.bind.clone(),
        data: args.data.clone(),
        threads: args.threads.map(usize::from),
        runs: args.runs.map(|n| n as usize),
        budget: args.budget,
        seed: args.seed,
        runtime: args.runtime.choice(),
        ..BenchRequest::new(args.models.clone())
    }
}

/// Whether a prediction holds here.
fn here(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let done = {
        let mut progress = Progress::new(console);
        confirm::confirm(&request(args), args.predicted.as_deref(), &mut progress)?
    };
    done.warnings.iter().for_each(|warning| console.warn(warning));
    if args.json {
        console.json(&done)?;
    } else {
        console.print(&confirmed(&done, console))?;
    }
    Ok(match done.outcome.is_met() {
        _ if console.interrupted() => Exit::Interrupted,
        true => Exit::Done,
        false => Exit::Unmet,
    })
}

fn confirmed(done: &Confirmation, console: &Console) -> String {
    let Some((report, last)) = done.bench.as_ref().and_then(|report| Some((report, report.models.last()?))) else {
        return "verdict: the input was kept: there is nothing to confirm".into();
    };
    let Speedup { median, low, high, .. } = done.predicted;
    let said = match done.outcome {
        Outcome::Held | Outcome::Kept => "the prediction held",
        Outcome::Better => "better than predicted",
        Outcome::Open => "neither confirmed nor refuted (hint: a longer --budget may tell)",
        Outcome::Missed => "the prediction did not hold",
    };
    let (measured, runs) = (judged(&last.speedup), last.speedup.pairs);
    let predicted = format!("predicted {median:.3}x faster [{low:.3}, {high:.3}]");
    let verdict = format!("verdict: {said}: {measured}, {predicted} · {runs} runs each · {}", seconds(report.seconds));
    if console.quiet {
        return verdict;
    }
    let place = done.prediction.place();
    format!("{}predicted from prices recorded on {place}: {}\n{verdict}", table(report, &shapes(report)), done.report)
}

fn shapes(report: &BenchReport) -> String {
    report.shapes.iter().map(|(name, sizes)| shape(name, sizes)).collect::<Vec<_>>().join(" ")
}

fn models(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let report = {
        let mut progress = Progress::new(console);
        regraft::bench::bench(&request(args), &mut progress)?
    };
    let shapes = shapes(&report);
    if report.guessed_shapes {
        console.warn(&format!("sizes that the model leaves open were guessed; measured at {shapes} (give yours with --shape)"));
    }
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&shown(&report, &shapes, console))?;
    }
    Ok(if console.interrupted() { Exit::Interrupted } else { Exit::Done })
}

fn shown(report: &BenchReport, shapes: &str, console: &Console) -> String {
    let pairs = report.models.first().map_or(0, |m| m.speedup.pairs);
    let verdict = match report.models.as_slice() {
        [one] => format!("{} a run", show_ns(one.median_ns)),
        [_, one] => judged(&one.speedup),
        [_, others @ ..] => others.iter().map(|m| format!("{} {}", m.model, judged(&m.speedup))).collect::<Vec<_>>().join(", "),
        [] => String::new(),
    };
    let verdict = format!("verdict: {verdict} · {pairs} runs each · {}", seconds(report.seconds));
    if console.quiet {
        return verdict;
    }
    format!("{}{verdict}", table(report, shapes))
}

/// Times, and how they were taken.
fn table(report: &BenchReport, shapes: &str) -> String {
    let mut table = plain_table(&["model", "median", "speed-up"], &[1, 2]);
    for (at, model) in report.models.iter().enumerate() {
        let Speedup { median, low, high, .. } = model.speedup;
        let ratio = if at == 0 { String::new() } else { format!("{median:.3}x [{low:.3}, {high:.3}]") };
        table.add_row([model.model.clone(), show_ns(model.median_ns), ratio]);
    }
    let refused: String = report.models.iter().filter_map(|m| Some(format!("note: {}: {}\n", m.model, m.refused.as_ref()?))).collect();
    let conditions = format!("{}, {}, {}, {shapes}", report.runtime, count(report.threads, "thread"), report.clock);
    format!("{}\n{conditions}\n{refused}", lines(&table))
}

fn judged(speedup: &Speedup) -> String {
    let Speedup { median, low, high, .. } = *speedup;
    if low > 1.0 {
        format!("{median:.3}x faster [{low:.3}, {high:.3}]")
    } else if high < 1.0 {
        format!("{:.3}x slower [{:.3}, {:.3}]", 1.0 / median, 1.0 / high, 1.0 / low)
    } else {
        format!("no difference beyond noise [{low:.3}, {high:.3}]")
    }
}

fn engine(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let name = match args.models.as_slice() {
        [] => Path::new(ENGINE_MODEL),
        [one] => one,
        _ => return Err(Failure::new("--engine takes one model").hint("run it once per model")),
    };
    let model = if name.exists() {
        Model::read(name)?
    } else {
        let options = Options { weights: Weights::Zeros, ..Options::default() };
        Model::from_proto(regraft_zoo::build(&name.to_string_lossy(), &options)?)?
    };
    let mut library = Library::shipped()?;
    for path in &args.rules {
        library = library.with_file(path, &crate::rules::read(path)?)?;
    }
    let graph = clean(model.graph()).0;
    let mut progress = Progress::new(console);
    progress.step("measure", &format!("{} with {} rules", name.display(), library.rules().len()));
    let result = speed::measure(&graph, model.speller(), &library, args.budget, &interrupt::requested)?;
    drop(progress);
    if args.json {
        console.json(&result)?;
    } else {
        let mut text = String::new();
        if !console.quiet {
            let mut table = plain_table(&[&name.display().to_string(), ""], &[1]);
            table.add_row(["nodes", &result.nodes.to_string()]);
            table.add_row(["rules", &result.rules.to_string()]);
            table.add_row(["possible moves", &result.moves.to_string()]);
            table.add_row(["finding all of them", &format!("{:.1} ms", result.match_all_ms)]);
            table.add_row(["apply + undo per second", &grouped(result.pairs_per_second)]);
            table.add_row(["apply + next moves + undo per second", &grouped(result.expansions_per_second)]);
            table.add_row(["the same, each move for the first time", &grouped(result.first_expansions_per_second)]);
            text = format!("{}\n", lines(&table));
        }
        let restored = if result.restored { "key and cost restored bit for bit" } else { "KEY OR COST DIFFER from the start" };
        let rate = grouped(result.pairs_per_second);
        console.print(&format!("{text}verdict: {rate} moves applied and undone per second on one core · {restored}"))?;
    }
    if !result.restored {
        return Err(Failure::new("undoing did not restore the engine's key or cost").hint("this is a defect of regraft, please report it"));
    }
    Ok(if console.interrupted() { Exit::Interrupted } else { Exit::Done })
}

/// `1234567` as `1,234,567`.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands() {
        assert_eq!([0.0, 999.0, 1000.0, 1_234_567.2].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let judge = |median, low, high| judged(&Speedup { median, low, high, pairs: 9 });
        assert_eq!(judge(2.0, 1.5, 2.5), "2.000x faster [1.500, 2.500]");
        assert_eq!(judge(2.0, 0.9, 2.5), "no difference beyond noise [0.900, 2.500]");
        assert_eq!(judge(0.5, 0.4, 0.8), "2.000x slower [1.250, 2.500]");
    }
}
