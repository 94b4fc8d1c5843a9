//! One large e-graph: sums of many terms, in any order.

use anyhow::{Context, Result, ensure};
use regraft_ir::text;
use regraft_rules::{Anything, Library, parse};
use regraft_saturate::{Growth, Limits, Rules};

/// Terms of the sum: 4.8 million sums of two parts in all.
const TERMS: usize = 14;
/// Bytes of resident memory that an e-node may take.
const BYTES: u64 = 4096;
const RULES: &str = "
    (rule turn (add (add ?x ?y) ?z) => (add ?x (add ?y ?z)) (when (same-shape ?x ?y) (same-shape ?y ?z)) (numeric reassociates))";

/// Grows an e-graph of so many e-nodes; how large it is, and the peak of memory in bytes.
pub fn grown(nodes: usize) -> Result<(usize, u64)> {
    let terms: Vec<String> = (0..TERMS).map(|at| format!("x{at}: f32[4]")).collect();
    let sums: Vec<String> =
        (1..TERMS).map(|at| format!("s{at} = Add({}, x{at})", if at == 1 { "x0".into() } else { format!("s{}", at - 1) })).collect();
    let graph = text::parse(&format!("graph ({}) {{ {} output s{} }}", terms.join(", "), sums.join(" "), TERMS - 1))?;
    let library = Library::new(parse("large", RULES)?)?;
    let rules = Rules::of(&library)?;
    let mut growth = Growth::new(graph, &rules, &Anything, Limits { nodes, iterations: 100, ..Limits::default() });
    growth.saturate(&mut || false)?;
    let (found, peak) = (growth.space().len(), peak().context("the peak of memory is not known here")?);
    ensure!(found * 20 >= nodes * 19 && found * 20 <= nodes * 21, "{found} e-nodes instead of {nodes}");
    ensure!(peak <= BYTES * nodes as u64, "{peak} bytes of memory for {found} e-nodes");
    Ok((found, peak))
}

/// The most resident memory that this process had.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}
