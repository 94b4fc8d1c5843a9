//! `regraft check`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use regraft_equate::Effort;
use regraft_ir::Trust;

use crate::console::Console;
use crate::exit::Exit;
use crate::junit::junit;
use crate::progress::Progress;
use crate::target::RuntimeArgs;
use regraft::certificate::Source;
use regraft::check::{self, CheckReport, CheckRequest, Run};
use regraft::error::Failure;
use regraft::file::{check_writable, write_atomic};
use regraft::optimize::TOLERANCE;
use regraft::render::{agreement, difference, lines, plain_table, seconds};
use regraft::units::{FreezeArg, ShapeArg, parse_bind, parse_freeze, parse_shape};
use regraft::{Ground, Requirement};

/// Tell whether two models are the same
///
/// Replays the certificate of B, if there is one: if all its steps are proved, so is that the
/// models are the same, for all inputs and sizes. Else compares what the models declare, then looks
/// for a proof in their graphs, whoever made them. Where there is none, compares their outputs: B
/// as deployed against A without the runtime's optimizer, on normal, zero and large inputs and on
/// yours, and both graphs on the reference executor in double precision. Integers and booleans must
/// be equal. Ends with exit code 1 if a difference is found, or if B or its certificate was changed
/// after it was written.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model that is right
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The model in question
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Size of an input, to compare at: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape)]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size, to compare at: N=8
    #[arg(long, value_name = "SYMBOL=SIZE", value_parser = parse_bind)]
    bind: Vec<(String, i64)>,
    /// Sizes at which B stands for A, and no others: x:1,3,224,224 or N=1 [default: those that the
    /// certificate of B names, else all]
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_freeze)]
    freeze: Vec<FreezeArg>,
    /// Real inputs to compare on, too: INPUT:FILE.npy (or .pb), FILE.npz, or a folder with one file
    /// per input or test_data_set_*
    #[arg(long, value_name = "DATA")]
    data: Vec<String>,
    /// Difference that is tolerated, relative to the largest magnitude of an output
    ///
    /// Ten times the noise floor, which is the difference that the runtime's own optimizer makes to
    /// A, is always tolerated; and where values are of half precision, four of its roundoffs.
    #[arg(long, value_name = "RELATIVE", default_value_t = TOLERANCE, value_parser = parse_tolerance)]
    tolerance: f64,
    /// Do not run the reference executor, which is slow for large models
    #[arg(long)]
    no_reference: bool,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of the made-up inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// The certificate of B, which `regraft optimize` wrote [default: B with the ending
    /// .certificate, if there is one]
    #[arg(long, value_name = "FILE", conflicts_with = "no_certificate")]
    certificate: Option<PathBuf>,
    /// Do not look for a certificate: compare the models as if nobody had said how one was made
    /// from the other
    #[arg(long)]
    no_certificate: bool,
    /// How hard to look for a proof: questions that the prover may leave open; 0 looks for none
    #[arg(long, value_name = "N", default_value_t = Effort::default().failures)]
    effort: usize,
    /// End with exit code 1 if less than this is known
    ///
    /// `bounded` is a proof up to constants that were computed ahead of time and rounded; `proved`
    /// is one without, which says what it takes for granted; `proved:exact` is one that takes
    /// nothing for granted.
    #[arg(long, value_name = "TRUST", value_parser = requirement())]
    require: Option<Requirement>,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Also write the report as JUnit XML, for servers that show tests
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  regraft check model.onnx fast.onnx
  regraft check model.onnx fast.onnx --certificate fast.certificate
  regraft check model.onnx simplified.onnx --require bounded
  regraft check model.onnx fast.onnx --shape x:8,3,224,224 --data x:photo.npy";

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("`{text}` is no tolerance; write 1e-4")),
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let request = CheckRequest {
        shapes: args.shape.clone(),
        binds: args.bind.clone(),
        freeze: args.freeze.clone(),
        data: args.data.clone(),
        tolerance: args.tolerance,
        reference: !args.no_reference,
        threads: args.threads.map(usize::from),
        seed: args.seed,
        runtime: args.runtime.choice(),
        certificate: match &args.certificate {
            Some(file) => Source::File(file.clone()),
            None if args.no_certificate => Source::Nowhere,
            None => Source::Beside,
        },
        effort: Effort { failures: args.effort, ..Effort::default() },
        require: args.require,
        ..CheckRequest::new(&args.a, &args.b)
    };
    args.junit.as_deref().map_or(Ok(()), |path| check_writable(path, "--junit"))?;
    console.catch("telling what was compared so far");
    let report = {
        let mut progress = Progress::new(console);
        check::check(&request, &mut progress)?
    };
    if args.json {
        console.json(&report)?;
    } else {
        console.print(&shown(&report, console))?;
    }
    let enough = args.require.is_none_or(|required| report.satisfies(required));
    if let Some(path) = &args.junit {
        write_atomic(path, junit(&report, &verdict(&report), enough).as_bytes())?;
    }
    Ok(match (report.same && enough, console.interrupted()) {
        (false, _) => Exit::Unmet,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Done,
    })
}

fn shown(report: &CheckReport, console: &Console) -> String {
    let verdict = verdict(report);
    if console.quiet {
        return verdict;
    }
    let mut text = String::new();
    let groups = [("output", &report.runs), ("before saturation", &report.before_saturation), ("reference executor", &report.reference)];
    if groups.iter().any(|(_, runs)| !runs.is_empty()) {
        let mut table = plain_table(&["compared", "fill", "difference", "noise floor", "at", ""], &[2, 3]);
        for (place, runs) in groups {
            for Run { fill, output, difference: d, floor, same, tells } in runs {
                let word = match (same, tells) {
                    (false, _) => "different",
                    (true, true) => "same",
                    (true, false) => "hidden by noise",
                };
                table.add_row([place, fill, &difference(*d), &difference(*floor), output, word]);
            }
        }
        text = format!("{}\n", lines(&table));
    }
    if report.histogram.total() > 0 {
        text.push_str(&format!("differences: {}\n", report.histogram));
    }
    if let Some(certified) = &report.certificate {
        for open in &certified.open {
            let place = if open.graph.is_empty() { String::new() } else { format!(" in {}", open.graph) };
            text.push_str(&format!("step {} ({} at {}{place}): {}: {}\n", open.number, open.rule, open.at, open.trust, open.why));
        }
    }
    for gap in report.equivalence.iter().flat_map(|e| &e.gaps) {
        let beside = gap.beside.as_ref().map(|b| format!(" beside {b}")).unwrap_or_default();
        text.push_str(&format!("no proof at {}{beside}: {}\n", gap.value, gap.why));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    // The verdict names the first difference; each of the others gets a line.
    for difference in report.differences.iter().skip(1) {
        text.push_str(&format!("also: {difference}\n"));
    }
    text + &verdict
}

/// Parses a `--require`.
fn requirement() -> impl TypedValueParser<Value = Requirement> {
    PossibleValuesParser::new(Requirement::ALL.map(Requirement::word)).try_map(|word| word.parse())
}

fn verdict(report: &CheckReport) -> String {
    let mut parts = Vec::new();
    match report.differences.first() {
        Some(first) if matches!(report.word, Ground::Tampered | Ground::Undecided) => parts.push(format!("{}: {first}", report.word)),
        Some(first) => parts.push(format!("different: {first}")),
        None if matches!(report.word, Ground::Known(Trust::Proved | Trust::Bounded)) => parts.push("same".into()),
        None if report.word == Ground::Known(Trust::Tested) => {
            let shown = |(d, floor): (f64, f64)| (difference(d), difference(floor));
            let (worst, floor) = check::worst(&report.runs);
            parts.push(agreement(worst, floor, report.tolerance, ""));
            if !report.before_saturation.is_empty() {
                let (worst, floor) = shown(check::worst(&report.before_saturation));
                parts.push(format!("before saturation to {worst} (noise floor {floor})"));
            }
            parts.push(format!("tested on {} fills", report.runs.len()));
            let reference = report.reference.iter().map(|r| r.difference).fold(0.0, f64::max);
            if !report.reference.is_empty() {
                parts.push(format!("reference executor agrees to {}", difference(reference)));
            }
        }
        None => parts.push(format!("same: {}", report.word)),
    }
    parts.extend(report.limited.clone());
    if let Some(certified) = report.certificate.as_ref().filter(|c| c.word != Ground::Tampered && !c.other_input) {
        parts.push(format!("certificate: {} in {}", certified.summary, seconds(certified.seconds)));
    }
    if let Some(equivalence) = &report.equivalence {
        parts.push(format!("{} in {}", equivalence.summary, seconds(equivalence.seconds)));
    }
    if let Some(required) = report.require.filter(|required| report.same && !report.satisfies(*required)) {
        let assumed = if required.exact && report.known() == Trust::Proved { " under assumptions" } else { "" };
        parts.push(format!("{}{assumed} only, where {required} was asked for", report.known()));
    }
    parts.push(seconds(report.seconds));
    format!("verdict: {}", parts.join(" · "))
}
