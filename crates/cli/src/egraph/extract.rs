//! `regraft egraph extract`.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{Measured, Method, read, show_cost, show_time, timed};
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use regraft::error::Failure;
use regraft::file::{check_writable, write_atomic};
use regraft::units::parse_duration;

/// Extract the cheapest terms from an e-graph
///
/// Chooses one node for each class that the roots need, without a cycle. The cost is the sum over
/// the chosen nodes, each counted once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  regraft egraph extract bert.json\n  regraft egraph extract bert.json --method greedy-dag -o chosen.json"
)]
pub struct Args {
    /// E-graph in JSON
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to extract
    #[arg(long, value_name = "METHOD", value_enum, default_value = "ilp")]
    method: Method,
    /// Time that the method may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time: Duration,
    /// Write the chosen nodes as an e-graph of their own
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print as JSON, with the names of the chosen nodes
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: &'a PathBuf,
    nodes: usize,
    classes: usize,
    #[serde(flatten)]
    measured: &'a Measured,
    /// Names of the chosen nodes, children first.
    choice: Vec<&'a str>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if let Some(output) = &args.output {
        check_writable(output, "-o")?;
    }
    let egraph = read(&args.file)?;
    interrupt::catch("telling what was found so far");
    let (found, measured) = timed(&egraph, &args.file, args.method, args.time)?;
    if let Some(output) = &args.output {
        write_atomic(output, egraph.to_json_of(&found.nodes).as_bytes())?;
    }
    if args.json {
        let choice = found.nodes.iter().map(|&node| egraph.nodes()[node].name.as_str()).collect();
        let (nodes, classes) = (egraph.nodes().len(), egraph.classes().len());
        console.json(&Report { file: &args.file, nodes, classes, measured: &measured, choice })?;
    } else {
        let bound = match (measured.bound, measured.gap) {
            _ if measured.optimal => "the least".to_string(),
            (Some(bound), Some(gap)) => format!("at least {} (gap {:.2} %)", show_cost(bound), 100.0 * gap),
            _ => "no bound".to_string(),
        };
        console.print(&format!(
            "verdict: cost {} by {} · {bound} · {} of {} nodes · {}",
            show_cost(measured.cost),
            measured.method.name(),
            measured.chosen,
            egraph.nodes().len(),
            show_time(measured.seconds)
        ))?;
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}
