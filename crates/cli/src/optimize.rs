//! `regraft optimize`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use regraft_ir::Trust;
use regraft_onnx::is_stream;
use regraft_runtime::Backend;

use crate::console::{Console, to_json};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::search::Search;
use crate::target::{LibraryArgs, backends};
use regraft::certificate::beside;
use regraft::confirm;
use regraft::error::Failure;
use regraft::file::{check_apart, check_writable, is_same, write_atomic};
use regraft::limits::{Limit, Limits, parse_max_load, parse_max_memory};
use regraft::optimize::{Choice, CostKind, DEFAULT_BUDGET, Request, default_budget};
use regraft::recording::Recorded;
use regraft::render;
use regraft::report::{Report, Speedup, Startups};
use regraft::units::{FreezeArg, ShapeArg, parse_binds, parse_bytes, parse_duration, parse_freeze, parse_shape};

/// Values of `--cost`.
#[derive(Clone, Debug)]
enum Cost {
    Measured,
    Roofline,
    /// The file of a recording.
    Profile(PathBuf),
}

/// What comes before the file of a recording.
const PROFILE: &str = "profile:";

impl Cost {
    fn parse(text: &str) -> Result<Cost, String> {
        match text {
            "measured" => Ok(Cost::Measured),
            "roofline" => Ok(Cost::Roofline),
            _ => match text.strip_prefix(PROFILE).filter(|file| !file.is_empty()) {
                Some(file) => Ok(Cost::Profile(file.into())),
                None => Err(format!("`{text}` is none of measured, roofline and {PROFILE}FILE")),
            },
        }
    }

    fn kind(&self) -> Result<CostKind, Failure> {
        Ok(match self {
            Cost::Measured => CostKind::Measured,
            Cost::Roofline => CostKind::Roofline,
            Cost::Profile(file) => CostKind::Recorded(Arc::new(Recorded::read(file)?)),
        })
    }
}

/// Write a faster model with the same outputs
///
/// Reads a model, searches equal ones, times the best against the input on this machine
/// (interleaved, with the runtime's own optimizer fully on), checks the winner, and writes it. If
/// nothing is faster beyond noise, the input is written unchanged and the verdict says so. Names,
/// order, types and declared sizes of inputs and outputs never change, unless --freeze asks for it.
/// A model that the runtime loads only with its own optimizer off is written so that it loads with
/// it on.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model to optimize
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write the result, as -o; a file that is there and is no earlier result stays
    #[arg(value_name = "OUT", conflicts_with = "output")]
    out: Option<PathBuf>,
    /// Where to write the result [default: IN with the ending .optimized.onnx]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Allow OUT to be the input file itself
    #[arg(long)]
    force_overwrite: bool,
    /// Size of an input, to measure at: x:1,3,224,224 or x:1x3x224x224 or x:N,3,224,224; once per
    /// input
    ///
    /// Inputs of fixed size need none. Sizes that are left open are guessed, with a warning. The
    /// result stays correct for all sizes.
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape, help_heading = "Model")]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size, to measure at: N=8; or several: N=1,8
    ///
    /// With several, one model is written for all of them. Operators are priced, and models timed
    /// and checked at every one; the model is chosen by the geometric mean, and never slower at any
    /// of them beyond noise.
    #[arg(long, value_name = "SYMBOL=SIZES", value_parser = parse_binds, help_heading = "Model")]
    bind: Vec<(String, Vec<i64>)>,
    /// Write the model for exactly these sizes: x:1,3,224,224 or N=1; once per input or symbol
    ///
    /// What the input declares changes, and the result accepts no other sizes: those who deploy one
    /// size only gain a little more. A symbol is fixed wherever it occurs; a name in place of a
    /// number leaves a size open.
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_freeze, help_heading = "Model")]
    freeze: Vec<FreezeArg>,
    /// Real inputs to check and measure with: INPUT:FILE.npy (or .pb), FILE.npz, or a folder with
    /// one file per input or test_data_set_*
    #[arg(long, value_name = "DATA", help_heading = "Model")]
    data: Vec<String>,
    /// Most that the file may grow by, such as 16M [default: 5 % or 4M, whichever is more]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Model")]
    allow_growth: Option<u64>,
    /// Write the model at this version of the standard opset [default: the version that it has]
    ///
    /// Newer versions have operators that older ones spell in many. Nodes that are kept as they are
    /// cannot be brought to another version.
    #[arg(long, value_name = "VERSION", help_heading = "Model")]
    opset: Option<i64>,
    /// The runtime that the model will run on
    #[arg(long, value_name = "RUNTIME", default_value = Backend::default().name(), value_parser = target(), help_heading = "Target")]
    target: Target,
    /// Threads that one operator will run on where the model is deployed [default: what the runtime
    /// itself uses, one per physical core]
    ///
    /// The result gains with so many threads, and is no slower than the input at one. With --cost
    /// profile:FILE, the recording says that, and this is how operators are timed here.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Target")]
    threads: Option<u16>,
    #[command(flatten)]
    library: LibraryArgs,
    /// How to search [default: auto; greedy with --untimed]
    #[arg(long, value_name = "STRATEGY", help_heading = "Search")]
    search: Option<Search>,
    /// Longest sequence of rewrites [default: 10 where all are tried, otherwise any]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Search")]
    steps: Option<u16>,
    /// Agent for --search xrlflow, as `regraft policy xrlflow` writes it
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    agent: Option<PathBuf>,
    /// Where prices of operators come from: measured, here, on the target runtime; roofline, where
    /// nothing is measured before the final comparison; or profile:FILE, recorded on another
    /// machine
    ///
    /// With a recording that `regraft cost record` made on another machine, its prices decide, and
    /// no whole model is timed: the result is a prediction, which `regraft bench --here IN OUT`
    /// confirms on that machine. What was not recorded is carried over from what operators take
    /// here. The input is kept unless the predicted gain exceeds its uncertainty. The report is
    /// written in any case, by default as OUT with the ending .report.json.
    #[arg(long, value_name = "PRICES", default_value = "measured", value_parser = Cost::parse, help_heading = "Search")]
    cost: Cost,
    /// Time that the whole run may take, such as 60s or 5m [default: 60s, for each runtime with
    /// --target fastest]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Search")]
    budget: Option<Duration>,
    /// Memory that the run may take, such as 4G [default: 80 % of what the machine has available]
    ///
    /// A model that cannot be run within it is not measured: only rewrites that gain under the
    /// price list are used, each changed region is checked alone, and a warning says so.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Search")]
    memory: Option<u64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    seed: u64,
    /// File of measurements [default: REGRAFT_COST_STORE, or costs.sqlite in the user's data
    /// folder]
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    cost_store: Option<PathBuf>,
    /// Decide by what the store of measurements holds, and measure nothing: two such runs give the
    /// same bytes
    #[arg(long, help_heading = "Search")]
    frozen: bool,
    /// Time nothing: write a model with few operators, and check it
    ///
    /// As few as take no longer by the analytic roofline: rules that trade operators for arithmetic
    /// are left out, either way. What is written depends on the model and the options alone;
    /// whether it is faster is not known.
    #[arg(long, conflicts_with = "frozen", help_heading = "Search")]
    untimed: bool,
    /// More rules, beside the shipped ones
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    rules: Vec<PathBuf>,
    /// Do not use this rule, or any of this numeric class (such as fast-bilinear)
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    deny: Vec<String>,
    /// Also use rules that are trusted this far only. By default, rules must be proved for all
    /// sizes, constants being what they were rounded from
    #[arg(long, value_name = "TRUST", value_delimiter = ',', help_heading = "Rules", value_parser = trust(&[Trust::ProvedInRange, Trust::Tested]))]
    allow: Vec<Trust>,
    /// Use only rules that are trusted at least this far, whatever is allowed. With `proved`, each
    /// rewrite has to be proved where it is made, too
    #[arg(long, value_name = "TRUST", help_heading = "Rules", value_parser = trust(&[Trust::Proved, Trust::Bounded, Trust::ProvedInRange, Trust::Tested]))]
    require: Option<Trust>,
    /// End with exit code 1 if the result is not surely this many times faster: the lower end of
    /// the interval counts
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, help_heading = "Result")]
    min_speedup: Option<f64>,
    /// Refuse a result that takes a process longer to load than this: 2s, 500ms, or 1.5x for so
    /// many times what the input takes
    ///
    /// Time to open the file as deployed, in a new process. Rewrites that make weights larger are
    /// used as far as the limit allows.
    #[arg(long, value_name = "TIME|RATIO", value_parser = parse_max_load, help_heading = "Result")]
    max_load: Option<Limit>,
    /// Refuse a result with which a process takes more memory than this at its peak: 1GB, 900M, or
    /// 1.2x for so many times what the input takes
    ///
    /// Resident memory of a new process that loads the model and runs it once, with the runtime.
    /// (`--memory` is what this command itself may take.)
    #[arg(long, value_name = "BYTES|RATIO", value_parser = parse_max_memory, help_heading = "Result")]
    max_memory: Option<Limit>,
    /// Where to write the certificate: every rewrite as data, for `regraft check` to replay
    /// [default: OUT with the ending .certificate]
    ///
    /// That of a kept input has no steps.
    #[arg(long, value_name = "FILE", help_heading = "Result", conflicts_with = "no_certificate")]
    certificate: Option<PathBuf>,
    /// Write no certificate
    #[arg(long, help_heading = "Result")]
    no_certificate: bool,
    /// Also write the report, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    report: Option<PathBuf>,
    /// Print the report as JSON instead of the table
    #[arg(long, help_heading = "Result")]
    json: bool,
}

/// How the command line calls [`Target::Fastest`].
const FASTEST: &str = "fastest";

const EXAMPLES: &str = "\
Examples:
  regraft optimize model.onnx -o fast.onnx
  regraft optimize det.onnx -o fast.onnx --shape x:1,3,640,640 --budget 5m
  regraft optimize model.onnx -o fast.onnx --shape x:N,3,224,224 --bind N=1,8
  regraft optimize model.onnx -o fast.onnx --freeze x:1,3,224,224
  regraft optimize model.onnx -o fast.onnx --threads 4 --min-speedup 1.05 --report fast.report.json
  regraft optimize model.onnx -o fast.onnx --deny fast-bilinear
  regraft optimize model.onnx -o fast.onnx --cost profile:device.json";

/// What a model is optimized for.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// One runtime.
    One(Backend),
    /// Whichever is fastest.
    Fastest,
}

impl Target {
    /// The runtime; the first one where all are asked.
    fn backend(self) -> Backend {
        match self {
            Target::One(backend) => backend,
            Target::Fastest => Backend::default(),
        }
    }

    /// Time that optimizing takes unless more or less is asked for.
    fn budget(self) -> Duration {
        match self {
            Target::One(_) => DEFAULT_BUDGET,
            Target::Fastest => default_budget(),
        }
    }
}

fn target() -> impl TypedValueParser<Value = Target> {
    let fastest = PossibleValue::new(FASTEST).help("Whichever of those that there are is fastest: each gets its share of the budget");
    let values = backends().into_iter().chain([fastest]);
    PossibleValuesParser::new(values).try_map(|name| if name == FASTEST { Ok(Target::Fastest) } else { name.parse().map(Target::One) })
}

/// Parses one of these trust levels.
fn trust(words: &[Trust]) -> impl TypedValueParser<Value = Trust> {
    PossibleValuesParser::new(words.iter().map(|trust| trust.word())).try_map(|word| word.parse())
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio > 0.0 => Ok(ratio),
        _ => Err(format!("`{text}` is no ratio; write 1.05")),
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let request = request(args, console)?;
    if matches!(args.target, Target::Fastest) && request.cost.recorded().is_some() {
        let failure = Failure::new("a recording is of one runtime, and --target fastest asks all of them");
        return Err(failure.hint("name its runtime with --target"));
    }
    let report_file = report_file(args, &request);
    // Reading first: of two mistakes, report the one in the input.
    if request.input.is_file() && is_same(&request.input, &request.output) && !args.force_overwrite {
        let failure = Failure::new(format!("{} is the input itself, and would be overwritten", request.output.display()));
        return Err(failure.hint("name another file with -o, or add --force-overwrite"));
    }
    if let Some(out) = args.out.as_deref().filter(|out| out.is_file() && !args.force_overwrite && !is_result(out)) {
        let failure = Failure::new(format!("{} exists, and would be overwritten", out.display()));
        return Err(failure.hint(format!("one model at a time; `-o {}` replaces it", out.display())));
    }
    if request.input.exists() {
        check_writable(&request.output, "-o")?;
        report_file.as_deref().map_or(Ok(()), |path| check_writable(path, "--report"))?;
        request.certificate.as_deref().map_or(Ok(()), |path| check_writable(path, "--certificate"))?;
    }
    let mut others = vec![("the result", request.output.as_path()), ("the input", &request.input)];
    others.extend(request.rules.files.iter().map(|path| ("a rule file", path.as_path())));
    if let Some(path) = request.certificate.as_deref() {
        check_apart(("the certificate", path, "--certificate, or add --no-certificate"), &others)?;
        others.push(("the certificate", path));
    }
    if let Some(path) = report_file.as_deref() {
        check_apart(("the report", path, "--report"), &others)?;
    }
    if let Some(path) = request.certificate.as_deref().filter(|_| is_stream(&request.output).unwrap_or(false)) {
        let failure = Failure::new(format!("no certificate {} of a result that is no file", path.display()));
        return Err(failure.hint("name a file with -o, or leave --certificate out"));
    }
    console.catch("writing the best valid model so far");
    let report = {
        let mut progress = Progress::new(console);
        match args.target {
            Target::Fastest => regraft::optimize::fastest(&request, &mut progress)?,
            Target::One(_) => regraft::optimize::optimize(&request, &mut progress)?,
        }
    };
    report.warnings.iter().for_each(|w| console.warn(w));
    if let Some(path) = &report_file {
        write_atomic(path, to_json(&report)?.as_bytes())?;
    }
    let exceeded = exceeded(request.limits, report.startup.as_ref());
    let missed = args.min_speedup.filter(|least| !is_sure(&report.speedup, *least));
    if args.json {
        console.json(&report)?;
    } else {
        let mut remarks = remarks(missed, report.rules);
        remarks.extend(exceeded.clone());
        console.print(&shown(&report, &remarks, console))?;
    }
    let is_refused = report.refused.is_some() && !report.rescued;
    Ok(match report.ended.as_str() {
        "interrupted" => Exit::Interrupted,
        _ if missed.is_some() || exceeded.is_some() || is_refused => Exit::Unmet,
        _ => Exit::Done,
    })
}

fn request(args: &Args, console: &Console) -> Result<Request, Failure> {
    let output = match args.output.as_ref().or(args.out.as_ref()) {
        Some(path) => path.clone(),
        None => default_output(&args.input)?,
    };
    Search::expect_agent(args.search.as_slice(), args.agent.as_deref())?;
    let default = || (!is_stream(&output).unwrap_or(false)).then(|| beside(&output));
    let certificate = args.certificate.clone().or_else(default).filter(|_| !args.no_certificate);
    Ok(Request {
        certificate,
        shapes: args.shape.clone(),
        binds: args.bind.clone(),
        freeze: args.freeze.clone(),
        search: args
            .search
            .unwrap_or(if args.untimed { Search::Greedy } else { Search::Auto })
            .limited(args.steps, args.agent.as_deref())?,
        cost: match args.cost.kind()? {
            recorded @ CostKind::Recorded(_) => recorded,
            _ if args.untimed => CostKind::Operators,
            cost => cost,
        },
        budget: args.budget.unwrap_or_else(|| args.target.budget()),
        threads: args.threads.map(usize::from),
        seed: args.seed,
        rules: Choice { files: args.rules.clone(), deny: args.deny.clone(), allow: args.allow.clone(), require: args.require },
        min_speedup: args.min_speedup,
        limits: Limits { load: args.max_load, memory: args.max_memory },
        starter: console.caller.starter.clone(),
        allow_growth: args.allow_growth,
        opset: args.opset,
        memory: args.memory,
        data: args.data.clone(),
        runtime: args.library.of(args.target.backend()),
        cost_store: args.cost_store.clone(),
        frozen: args.frozen,
        untimed: args.untimed,
        reproduce: command_line(console.caller.arguments.iter().skip(1).cloned()),
        ..Request::new(&args.input, output)
    })
}

/// Where the report goes, if anywhere: a prediction is to be confirmed by it.
fn report_file(args: &Args, request: &Request) -> Option<PathBuf> {
    let is_predicted = request.cost.recorded().is_some() && !is_stream(&request.output).unwrap_or(true);
    args.report.clone().or_else(|| is_predicted.then(|| confirm::beside(&request.output)))
}

/// True for a model written earlier: its certificate lies next to it.
fn is_result(model: &Path) -> bool {
    std::fs::read(beside(model)).is_ok_and(|bytes| regraft_certify::is_certificate(&bytes))
}

/// `model.onnx` becomes `model.optimized.onnx`, in the same folder.
fn default_output(input: &Path) -> Result<PathBuf, Failure> {
    let stem = input.file_stem().ok_or_else(|| Failure::new(format!("{} names no file", input.display())).hint("name a model file"))?;
    let mut name = stem.to_os_string();
    name.push(".optimized.onnx");
    Ok(input.with_file_name(name))
}

/// Whether a result is this many times faster, whatever part of its interval the truth lies in.
fn is_sure(speedup: &Speedup, least: f64) -> bool {
    speedup.low >= least
}

/// Why what was written exceeds a limit: the input may, too.
fn exceeded(limits: Limits, startup: Option<&Startups>) -> Option<String> {
    limits.exceeded(startup.map(|startup| &startup.input), startup.map(|startup| &startup.output))
}

fn remarks(missed: Option<f64>, usable: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    if usable == 0 {
        remarks.push("all rules were denied".into());
    }
    if let Some(least) = missed {
        remarks.push(format!("below the {least}x asked for"));
    }
    remarks
}

fn shown(report: &Report, remarks: &[String], console: &Console) -> String {
    let verdict = render::verdict(report, remarks);
    if console.quiet {
        return verdict;
    }
    let details = if console.verbose { format!("{}\n", render::details(report)) } else { String::new() };
    format!("{}\n{details}{verdict}", render::table(report))
}

/// A command line that a shell parses back into these arguments.
fn command_line(args: impl Iterator<Item = std::ffi::OsString>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    let quoted = |arg: String| if !arg.is_empty() && arg.chars().all(plain) { arg } else { format!("'{}'", arg.replace('\'', r"'\''")) };
    std::iter::once("regraft".to_string()).chain(args.map(|a| quoted(a.to_string_lossy().into_owned()))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_can_be_pasted() {
        let args = ["optimize", "my model.onnx", "--shape", "x:[1,3]", "it's"];
        let want = r"regraft optimize 'my model.onnx' --shape 'x:[1,3]' 'it'\''s'";
        assert_eq!(command_line(args.iter().map(Into::into)), want);
    }

    #[test]
    fn the_output_lies_beside_the_input() {
        assert_eq!(default_output(Path::new("a/m.onnx")).ok(), Some(PathBuf::from("a/m.optimized.onnx")));
        assert_eq!(default_output(Path::new("m.v2.onnx")).ok(), Some(PathBuf::from("m.v2.optimized.onnx")));
        assert!(default_output(Path::new("..")).is_err());
    }

    #[test]
    fn a_promise_is_kept_by_the_whole_interval() {
        let copy = Speedup { median: 1.011, low: 0.997, high: 1.017, pairs: 60 };
        assert!(!is_sure(&copy, 1.0001) && !is_sure(&Speedup::NONE, 1.0001));
        assert!(is_sure(&Speedup { median: 1.08, low: 1.06, high: 1.1, pairs: 60 }, 1.05));
    }

    #[test]
    fn prices_come_from_three_places() {
        assert!(matches!(Cost::parse("measured"), Ok(Cost::Measured)) && matches!(Cost::parse("roofline"), Ok(Cost::Roofline)));
        assert!(matches!(Cost::parse("profile:a:b.json"), Ok(Cost::Profile(file)) if file == Path::new("a:b.json")));
        assert!(Cost::parse("profile:").is_err() && Cost::parse("guessed").is_err());
    }

    #[test]
    fn ratios() {
        assert_eq!(parse_ratio("1.05"), Ok(1.05));
        assert_eq!(parse_ratio("1.2x"), Ok(1.2));
        assert!(parse_ratio("fast").is_err() && parse_ratio("-1").is_err() && parse_ratio("inf").is_err());
    }
}
