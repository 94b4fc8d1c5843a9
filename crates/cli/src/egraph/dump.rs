//! `regraft egraph dump`.

use std::path::PathBuf;

use regraft::error::Failure;
use regraft::file::{check_writable, write_atomic};
use regraft::saturated::saturate;
use regraft_saturate::{Limits, Stop};

use super::grown::Grown;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::priced::Priced;

/// Write the e-graph of a model, grown by the rules
///
/// The format is that of the crate egraph-serialize, which `regraft egraph extract` reads. Costs
/// are in nanoseconds, of each operator by itself.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  regraft egraph dump model.onnx -o model.json --nodes 2000\n  regraft egraph dump paper-bert --iterations 0 > initial.json"
)]
pub struct Args {
    /// File to write [default: print it]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    grown: Grown,
    #[command(flatten)]
    priced: Priced,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if let Some(output) = &args.output {
        check_writable(output, "-o")?;
    }
    interrupt::catch("writing what there is so far");
    let request = args.grown.request(&args.priced, Limits::default());
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
