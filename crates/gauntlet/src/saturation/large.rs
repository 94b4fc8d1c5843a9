//! One large e-graph: many sums, each in any order.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use regraft_ir::text;
use regraft_rules::{Anything, Library, parse};
use regraft_runtime::peak_bytes;
use regraft_saturate::{Growth, Limits, Rules};

/// Terms of a sum: 966 additions, and the terms, when nothing more is new.
const TERMS: usize = 7;
const SATURATED: usize = 966 + TERMS;
/// Bytes of resident memory that an e-node may take.
const BYTES: u64 = 4096;
const RULES: &str = "
    (rule turn (add (add ?x ?y) ?z) => (add ?x (add ?y ?z)) (when (same-shape ?x ?y) (same-shape ?y ?z)) (numeric reassociates))";

/// Grows an e-graph of so many e-nodes; how large it is, and the peak of memory in bytes.
pub fn grown(nodes: usize) -> Result<(usize, u64)> {
    let sums = nodes / SATURATED + 1;
    let inputs: Vec<String> = (0..sums * TERMS).map(|at| format!("x{at}: f32[4]")).collect();
    let mut body = String::new();
    for sum in 0..sums {
        for at in 1..TERMS {
            let left = if at == 1 { format!("x{}", sum * TERMS) } else { format!("s{sum}_{}", at - 1) };
            let _ = write!(body, "s{sum}_{at} = Add({left}, x{}) ", sum * TERMS + at);
        }
    }
    let outputs: Vec<String> = (0..sums).map(|sum| format!("s{sum}_{}", TERMS - 1)).collect();
    let graph = text::parse(&format!("graph ({}) {{ {body} output {} }}", inputs.join(", "), outputs.join(", ")))?;
    let library = Library::new(parse("large", RULES)?)?;
    let rules = Rules::of(&library)?;
    let mut growth = Growth::new(graph, &rules, &Anything, Limits { nodes, iterations: 100, ..Limits::default() });
    growth.saturate(&mut || false)?;
    let (found, peak) = (growth.space().len(), peak_bytes().context("the peak of memory is not known here")?);
    ensure!(found * 20 >= nodes * 19 && found * 20 <= nodes * 21, "{found} e-nodes instead of {nodes}");
    ensure!(peak <= BYTES * nodes as u64, "{peak} bytes of memory for {found} e-nodes");
    Ok((found, peak))
}
