//! `regraft egraph dump`.

use std::path::PathBuf;

use regraft::error::Failure;
use regraft::file::{check_writable, write_atomic};
use regraft::saturated::{SaturateRequest, saturate};
use regraft_saturate::{Cycles, Limits, Schedule, Stop};

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::priced::Priced;

/// Write the e-graph of a model, grown by the rules
///
/// The format is that of the crate egraph-serialize, which `regraft egraph extract` reads. Costs are
/// in nanoseconds, of each operator by itself.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  regraft egraph dump model.onnx -o model.json --nodes 2000\n  regraft egraph dump paper-bert --iterations 0 > initial.json"
)]
pub struct Args {
    /// File to write [default: print it]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Operators that the e-graph may have, weights and inputs included
    #[arg(long, value_name = "N", default_value_t = Limits::default().nodes)]
    nodes: usize,
    /// Iterations, each applying all rules; 0 for the model itself
    #[arg(long, value_name = "N", default_value_t = Limits::default().iterations)]
    iterations: usize,
    /// Iterations that apply rules with several results, too
    #[arg(long, value_name = "K", default_value_t = Limits::default().multi)]
    multi: usize,
    /// What becomes of cycles
    #[arg(long, value_name = "HOW", value_enum, default_value = "kept")]
    cycles: Filter,
    /// Have rules pause that match too often
    #[arg(long)]
    backoff: bool,
    #[command(flatten)]
    priced: Priced,
}

/// Values of `--cycles`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Filter {
    /// No rewrite is left out: extraction has no cycle all the same
    Kept,
    /// Rewrites are left out whose operands depend on what they replace (TENSAT)
    Vanilla,
    /// The same by a table that is made once per iteration; what is cyclic all the same is cut (TENSAT)
    Efficient,
}

impl From<Filter> for Cycles {
    fn from(filter: Filter) -> Cycles {
        match filter {
            Filter::Kept => Cycles::Kept,
            Filter::Vanilla => Cycles::Vanilla,
            Filter::Efficient => Cycles::Efficient,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if let Some(output) = &args.output {
        check_writable(output, "-o")?;
    }
    interrupt::catch("writing what there is so far");
    let limits = Limits { nodes: args.nodes, iterations: args.iterations, multi: args.multi, ..Limits::default() };
    let request = SaturateRequest {
        limits,
        schedule: if args.backoff { Schedule::Backoff { matches: 1000, pause: 5 } } else { Schedule::Simple },
        cycles: args.cycles.into(),
        prices: args.priced.prices.clone(),
        shapes: args.priced.shape.clone(),
        binds: args.priced.bind.clone(),
        rules: args.priced.rules.clone(),
        ..SaturateRequest::new(&args.priced.model)
    };
    let found = saturate(&request, &interrupt::requested)?;
    match &args.output {
        Some(output) => {
            write_atomic(output, found.json.as_bytes())?;
            let why = match found.stop {
                Stop::Saturated => "nothing more is new",
                Stop::Nodes => "no more operators are allowed",
                Stop::Iterations => "no more iterations are allowed",
                Stop::Budget => "interrupted",
            };
            console.print(&format!(
                "verdict: {} operators in {} classes after {} rewrites in {} iterations: {why}",
                found.nodes, found.classes, found.rewrites, found.iterations
            ))?;
        }
        None => console.print(&found.json)?,
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}
