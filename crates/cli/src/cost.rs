//! `regraft cost`.

use std::fs::File;
use std::io::{BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use regraft_cost::{CostModel, Measured, Target, describe};
use regraft_onnx::Model;
use regraft_runtime::{Filter, Measurement, ModelSource, Store, default_store_path};
use regraft_zoo::Options;

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::predict;
use crate::progress::Progress;
use crate::target::RuntimeArgs;
use regraft::calibrate::{CalibrateRequest, CalibrationReport, DEFAULT_MODELS};
use regraft::error::Failure;
use regraft::file::{check_apart, check_writable, write_atomic};
use regraft::optimize::clean;
use regraft::record::{RecordReport, RecordRequest};
use regraft::render::{count, lines, plain_table, seconds, shape};
use regraft::sizes::Sizes;
use regraft::units::{ShapeArg, parse_binds, parse_duration, parse_shape, show_ns};

/// Rows shown without -v.
const ROWS_SHOWN: usize = 40;
/// Errors of totals up to this count as good.
const GOOD_TOTAL: f64 = 0.10;
/// Errors of gains up to this many percentage points count as good.
const GOOD_GAIN: f64 = 5.0;

/// What operators cost on this machine: show, measure, move to another machine
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show what was measured, or the prices of one model's operators
    Show(ShowArgs),
    /// Measure models ahead of time, and tell how well prices predict
    Calibrate(CalibrateArgs),
    /// Measure models here for a search on another machine, and write what it needs to a file
    Record(RecordArgs),
    /// Tell how well the prices of some models predict those of another
    #[command(hide = true)]
    Predict(predict::Args),
    /// Write measurements to a file, one JSON object per line
    Export(FileArgs),
    /// Read measurements that `export` wrote; of two for the same thing, the newer stays
    Import(FileArgs),
    /// Remove measurements
    Clear(ClearArgs),
}

/// Which store, and which of its measurements.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// File of measurements [default: REGRAFT_COST_STORE, or costs.sqlite in the user's data
    /// folder]
    #[arg(long, value_name = "FILE")]
    cost_store: Option<PathBuf>,
}

/// Arguments of `cost show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Model whose operators to price
    model: Option<PathBuf>,
    /// Only measurements whose signature starts with this, such as Conv
    #[arg(long, value_name = "PREFIX", conflicts_with = "model")]
    filter: Option<String>,
    /// Size of an input of the model: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape, requires = "model")]
    shape: Vec<ShapeArg>,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `cost calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft cost calibrate --report --budget 60s")]
pub struct CalibrateArgs {
    /// Model files, or names in the zoo [default: twelve networks of the zoo]
    models: Vec<PathBuf>,
    /// Also optimize each model, and hold predicted gains against measured ones
    #[arg(long)]
    report: bool,
    /// Time per model
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    budget: Duration,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `cost record`.
///
/// Times whole runs, profiles the operators of the model and those that one rule after the other
/// would make of it, and searches for nothing. On the machine that searches, `regraft optimize
/// MODEL --cost profile:FILE` decides by these prices.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, on the device and then elsewhere:
  regraft cost record model.onnx -o device.json --threads 4
  regraft optimize model.onnx -o fast.onnx --cost profile:device.json")]
pub struct RecordArgs {
    /// Model files, or names in the zoo
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Where to write the recording
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Size of an input of the model: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape)]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size: N=8; or several, each of which is recorded: N=1,8
    #[arg(long, value_name = "SYMBOL=SIZES", value_parser = parse_binds)]
    bind: Vec<(String, Vec<i64>)>,
    /// Time per model
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    budget: Duration,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of made-up inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Print what was recorded as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `cost export` and `cost import`.
#[derive(Debug, clap::Args)]
pub struct FileArgs {
    /// The file; - for standard output or input
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `cost clear`.
#[derive(Debug, clap::Args)]
pub struct ClearArgs {
    /// Only measurements whose signature starts with this, such as Conv
    #[arg(long, value_name = "PREFIX")]
    filter: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl StoreArgs {
    fn path(&self) -> Result<PathBuf, Failure> {
        self.cost_store.clone().map_or_else(|| default_store_path().map_err(Failure::from), Ok)
    }

    /// The current store; `None` if there is none yet. Reading must not create one.
    fn read(&self) -> Result<(PathBuf, Option<Store>), Failure> {
        let path = self.path()?;
        let store = if path.exists() { Some(Store::open_frozen(&path)?) } else { None };
        Ok((path, store))
    }
}

/// Runs the command.
pub fn run(command: &Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Show(args) => match &args.model {
            Some(model) => prices(args, model, console),
            None => show(args, console),
        },
        Command::Calibrate(args) => calibrate(args, console),
        Command::Record(args) => record(args, console),
        Command::Predict(args) => predict::run(args, console),
        Command::Export(args) => export(args, console),
        Command::Import(args) => import(args, console),
        Command::Clear(args) => clear(args, console),
    }
}

fn matching(prefix: Option<&String>) -> Filter {
    Filter { signature_prefix: prefix.cloned(), ..Filter::default() }
}

fn show(args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let (path, store) = args.store.read()?;
    let all: Vec<Measurement> = match &store {
        Some(store) => store.list(&matching(args.filter.as_ref()))?,
        None => Vec::new(),
    };
    if args.json {
        console.json(&all)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    if !console.quiet && !all.is_empty() {
        let mut table = plain_table(&["median", "spread", "samples", "threads", "what"], &[0, 1, 2, 3]);
        let shown = if console.verbose { all.len() } else { ROWS_SHOWN.min(all.len()) };
        let mut dearest: Vec<&Measurement> = all.iter().collect();
        dearest.sort_by_key(|m| (std::cmp::Reverse(m.median_ns), &m.key));
        for m in &dearest[..shown] {
            let ns = |value: u64| show_ns(value as f64);
            table.add_row([ns(m.median_ns), ns(m.spread_ns), m.samples.to_string(), m.key.threads.to_string(), m.key.signature.clone()]);
        }
        text = lines(&table);
        if shown < all.len() {
            text.push_str(&format!("and {} more (-v lists all)\n", all.len() - shown));
        }
        text.push('\n');
    }
    let mut places: Vec<String> = all.iter().map(|m| format!("{} on {}", m.key.runtime, m.key.machine)).collect();
    places.dedup();
    let places = if places.is_empty() { String::new() } else { format!(" · {}", places.join(", ")) };
    console.print(&format!("{text}{} in {}{places}", count(all.len(), "measurement"), path.display()))?;
    Ok(Exit::Done)
}

/// The prices of one model's operators.
fn prices(args: &ShowArgs, path: &Path, console: &Console) -> Result<Exit, Failure> {
    let model = Model::read(path)?;
    let runtime = args.runtime.choice().load()?;
    let sizes = Sizes::resolve(&model, ModelSource::path(path), &*runtime, &args.shape, &[])?;
    let threads = args.threads.map_or_else(|| runtime.default_threads() as u32, u32::from);
    let measured = match args.store.read()?.1 {
        Some(store) => Measured::load(sizes.symbols, &store, &Target::here(&*runtime, threads))?,
        None => Measured::new(sizes.symbols),
    };
    let graph = clean(model.graph()).0;
    let limit = if console.verbose || args.json { usize::MAX } else { ROWS_SHOWN };
    let rows = describe(&measured, &graph, limit);
    let knowledge = measured.known(&graph);
    if args.json {
        console.json(&serde_json::json!({
            "model": path, "total_ns": measured.total(&graph), "known": knowledge.known, "unknown": knowledge.unknown.len(),
            "unknown_ns": knowledge.unknown_ns, "nodes": rows,
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    if !console.quiet {
        let mut table = plain_table(&["price", "share", "source", "samples", "at", "what"], &[0, 1, 3]);
        for row in &rows {
            let share = format!("{:.1} %", f64::from(row.per_mille) / 10.0);
            table.add_row([
                show_ns(row.ns as f64),
                share,
                row.source.name().into(),
                row.count.to_string(),
                row.name.clone(),
                row.signature.clone(),
            ]);
        }
        text = format!("{}\n", lines(&table));
    }
    let (total, guessed) = (show_ns(measured.total(&graph) as f64), show_ns(knowledge.unknown_ns as f64));
    let unknown = knowledge.unknown.len();
    console.print(&format!("{text}total {total}; {} measured, {unknown} guessed ({guessed})", count(knowledge.known, "operator")))?;
    Ok(Exit::Done)
}

fn record(args: &RecordArgs, console: &Console) -> Result<Exit, Failure> {
    let folder = tempfile::tempdir().map_err(Failure::new)?;
    let mut progress = Progress::new(console);
    let models = files(&args.models, folder.path(), &mut progress)?;
    check_writable(&args.output, "-o")?;
    let inputs: Vec<(&str, &Path)> = models.iter().map(|model| ("a model", model.as_path())).collect();
    check_apart(("the recording", args.output.as_path(), "-o"), &inputs)?;
    console.catch("nothing will be written");
    let request = RecordRequest {
        models,
        shapes: args.shape.clone(),
        binds: args.bind.clone(),
        budget: args.budget,
        threads: args.threads.map(usize::from),
        seed: args.seed,
        runtime: args.runtime.choice(),
    };
    let recording = regraft::record(&request, &mut progress)?;
    drop(progress);
    let Some(done) = recording.filter(|_| !console.interrupted()) else { return Ok(Exit::Interrupted) };
    done.warnings.iter().for_each(|warning| console.warn(warning));
    let report = regraft::record::write(&done.recording, &args.output)?;
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&recorded(&report, console))?;
    }
    Ok(Exit::Done)
}

fn recorded(report: &RecordReport, console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet {
        let mut table = plain_table(&["model", "time", "spread", "runs", "rewritten", "error", "at"], &[1, 2, 3, 4, 5]);
        for row in &report.models {
            let at = row.shapes.iter().map(|(name, sizes)| shape(name, sizes)).collect::<Vec<_>>().join(" ");
            let (run, spread) = (show_ns(row.run_ns), show_ns(row.spread_ns));
            table.add_row([
                row.model.clone(),
                run,
                spread,
                row.runs.to_string(),
                format!("×{}", row.variants),
                format!("{:.1} %", 100.0 * row.error),
                at,
            ]);
        }
        text = format!("{}\n", lines(&table));
    }
    let threads = count(report.threads, "thread");
    let prices = count(report.prices, "price");
    format!("{text}recorded {prices} on {}, {}, {threads} in {}", report.machine, report.runtime, report.file)
}

/// Models, those of the zoo written to a folder.
fn files(names: &[PathBuf], folder: &Path, progress: &mut Progress) -> Result<Vec<PathBuf>, Failure> {
    names.iter().map(|name| if name.exists() { Ok(name.clone()) } else { emit(name, folder, progress) }).collect()
}

fn calibrate(args: &CalibrateArgs, console: &Console) -> Result<Exit, Failure> {
    let folder = tempfile::tempdir().map_err(Failure::new)?;
    let mut progress = Progress::new(console);
    let names: Vec<PathBuf> = if args.models.is_empty() { DEFAULT_MODELS.iter().map(PathBuf::from).collect() } else { args.models.clone() };
    let models = files(&names, folder.path(), &mut progress)?;
    interrupt::catch("finishing with the present model");
    let request = CalibrateRequest {
        models,
        gains: args.report,
        budget: args.budget,
        threads: args.threads.map(usize::from),
        seed: args.seed,
        runtime: args.runtime.choice(),
        cost_store: args.store.cost_store.clone(),
    };
    let report = regraft::calibrate::calibrate(&request, &mut progress)?;
    drop(progress);
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&calibration(&report, console))?;
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

/// Writes a network of the zoo to a file.
pub fn emit(name: &Path, folder: &Path, progress: &mut Progress) -> Result<PathBuf, Failure> {
    let word = name.to_string_lossy();
    if name.components().count() > 1 || name.extension().is_some_and(|e| e == "onnx") {
        return Err(Failure::new(format!("there is no file {word}")).hint("name a model file, or a network that `regraft zoo list` names"));
    }
    progress.step("load", &word);
    let proto = regraft_zoo::build(&word, &Options::default())?;
    let path = folder.join(format!("{word}.onnx"));
    regraft_onnx::Written { proto, folded: 0, kept_expressions: 0, values: Default::default() }.save(&path, false)?;
    Ok(path)
}

fn calibration(report: &CalibrationReport, console: &Console) -> String {
    let c = &report.calibration;
    let mut text = String::new();
    if !console.quiet {
        let mut table = plain_table(&["model", "predicted", "measured", "error"], &[1, 2, 3]);
        for t in &c.totals {
            table.add_row([t.model.clone(), show_ns(t.predicted), show_ns(t.measured), format!("{:+.1} %", 100.0 * t.error())]);
        }
        text.push_str(&format!("{}\n", lines(&table)));
        if !c.gains.is_empty() {
            let mut table = plain_table(&["rewritten model", "predicted gain", "measured gain", "error"], &[1, 2, 3]);
            for g in &c.gains {
                let error = format!("{:+.1} points", g.error_points());
                table.add_row([g.model.clone(), format!("{:.3}x", g.predicted()), format!("{:.3}x", g.measured), error]);
            }
            text.push_str(&format!("{}\n", lines(&table)));
        }
    }
    let mut parts = vec![format!("{} measured", count(c.totals.len(), "model"))];
    if let Some(error) = report.median_error {
        let (good, all) = (c.totals_within(GOOD_TOTAL), c.totals.len());
        parts.push(format!("totals: median error {:.1} %, {good} of {all} within {:.0} %", 100.0 * error, 100.0 * GOOD_TOTAL));
    }
    if !c.gains.is_empty() {
        parts.push(format!("gains: {} of {} within {GOOD_GAIN} points", c.gains_within(GOOD_GAIN), c.gains.len()));
    }
    parts.push(seconds(report.seconds));
    format!("{text}verdict: {}", parts.join(" · "))
}

fn export(args: &FileArgs, console: &Console) -> Result<Exit, Failure> {
    let (path, store) = args.store.read()?;
    let store = store.ok_or_else(|| Failure::new(format!("there is no store {}", path.display())).hint("nothing was measured yet"))?;
    let mut bytes = Vec::new();
    let written = store.export(&Filter::default(), &mut bytes)?;
    if args.file == Path::new("-") {
        console.print(&String::from_utf8_lossy(&bytes))?;
        return Ok(Exit::Done);
    }
    check_writable(&args.file, "FILE")?;
    write_atomic(&args.file, &bytes)?;
    if !console.quiet {
        console.print(&format!("wrote {} to {}", count(written, "measurement"), args.file.display()))?;
    }
    Ok(Exit::Done)
}

fn import(args: &FileArgs, console: &Console) -> Result<Exit, Failure> {
    let in_file = |e: regraft_runtime::StoreError| match e {
        regraft_runtime::StoreError::Line { .. } => Failure::new(format!("{}: {e}", args.file.display())),
        other => other.into(),
    };
    let mut input: Box<dyn std::io::BufRead> = if args.file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let file = File::open(&args.file);
        Box::new(BufReader::new(
            file.map_err(|e| Failure::new(format!("cannot read {}: {e}", args.file.display())).hint("check the path"))?,
        ))
    };
    // Read before the store is opened: a damaged file must not even create a store.
    let mut trial = Store::in_memory()?;
    trial.import(&mut input).map_err(in_file)?;
    let all = trial.list(&Filter::default())?;
    let mut bytes = Vec::new();
    trial.export(&Filter::default(), &mut bytes)?;
    let path = args.store.path()?;
    Store::open(&path)?.import(&mut bytes.as_slice())?;
    if !console.quiet {
        console.print(&format!("read {} into {}", count(all.len(), "measurement"), path.display()))?;
    }
    Ok(Exit::Done)
}

fn clear(args: &ClearArgs, console: &Console) -> Result<Exit, Failure> {
    let (path, store) = args.store.read()?;
    let filter = matching(args.filter.as_ref());
    let found = match &store {
        Some(store) => store.list(&filter)?.len(),
        None => 0,
    };
    if found > 0 {
        if !args.yes && !confirmed(&format!("remove {} from {}?", count(found, "measurement"), path.display()))? {
            return Err(Failure::new("nothing was removed").hint("answer y, or add --yes"));
        }
        Store::open(&path)?.clear(&filter)?;
    }
    if !console.quiet {
        console.print(&format!("removed {} from {}", count(found, "measurement"), path.display()))?;
    }
    Ok(Exit::Done)
}

/// Asks on a terminal; elsewhere the answer is no.
fn confirmed(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut err = std::io::stderr();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(Failure::new)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
