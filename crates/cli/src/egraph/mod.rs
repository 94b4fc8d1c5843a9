//! `regraft egraph`.

mod bench;
mod dump;
mod extract;
mod grown;
mod method;
mod search;

use std::path::Path;
use std::time::{Duration, Instant};

use regraft_egraph::{EGraph, Extraction};
use serde::Serialize;

use self::method::Method;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use regraft::error::Failure;

/// Make e-graphs, and extract from them, in the JSON format of the crate egraph-serialize
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Extract(extract::Args),
    Bench(bench::Args),
    Dump(dump::Args),
    Search(search::Args),
}

/// Runs the command.
pub fn run(command: &Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Extract(args) => extract::run(args, console),
        Command::Bench(args) => bench::run(args, console),
        Command::Dump(args) => dump::run(args, console),
        Command::Search(args) => search::run(args, console),
    }
}

/// An extraction in machine-readable form.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    method: Method,
    /// Sum over the chosen nodes, each counted once.
    cost: f64,
    /// What every extraction costs at least.
    bound: Option<f64>,
    /// How far the cost may be above the least, as a share of the cost.
    gap: Option<f64>,
    /// Whether the extraction is shown to be the cheapest.
    optimal: bool,
    chosen: usize,
    seconds: f64,
}

impl Measured {
    fn new(method: Method, found: &Extraction, seconds: f64) -> Measured {
        let Extraction { nodes, cost, bound } = found;
        let gap = found.gap();
        Measured { method, cost: *cost, bound: *bound, gap, optimal: gap == Some(0.0), chosen: nodes.len(), seconds }
    }
}

/// Reads an e-graph.
fn read(path: &Path) -> Result<EGraph, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read the e-graph {}: {e}", path.display())).hint("check the path");
    let text = std::fs::read(path).map_err(cannot)?;
    EGraph::read(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint(error.hint()))
}

/// Extracts within a time, or until Ctrl-C.
fn timed(egraph: &EGraph, path: &Path, method: Method, time: Duration) -> Result<(Extraction, Measured), Failure> {
    let start = Instant::now();
    let mut budget = || start.elapsed() >= time || interrupt::requested();
    let found = egraph.extract(method.extractor(), None, &mut budget).map_err(|error| {
        let failure = Failure::new(format!("{}: {error}", path.display()));
        match error {
            regraft_egraph::ExtractError::EGraph(error) => failure.hint(error.hint()),
            _ => failure.hint("this is a defect of regraft, please report it with the file"),
        }
    })?;
    let measured = Measured::new(method, &found, start.elapsed().as_secs_f64());
    Ok((found, measured))
}

/// A cost: six significant digits.
fn show_cost(cost: f64) -> String {
    let digits = if cost > 0.0 { (5 - cost.log10().floor() as i32).clamp(0, 12) as usize } else { 0 };
    let text = format!("{cost:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A short time.
fn show_time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { regraft::render::seconds(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_have_six_digits() {
        for (cost, shown) in [(0.0, "0"), (13.0, "13"), (0.704_719_976, "0.70472"), (1_234_567.0, "1234567"), (98.121_070_7, "98.1211")] {
            assert_eq!(show_cost(cost), shown);
        }
    }
}
