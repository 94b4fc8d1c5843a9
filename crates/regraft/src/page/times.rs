//! Where the time of two models goes, by the runtime's own profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regraft_cost::{Attribution, NameTable};
use regraft_onnx::Model;
use regraft_runtime::{Fill, ModelSource, OptLevel, Profile, ProfileSubject, Profiling, Runtime, SessionOptions};

use crate::error::Failure;
use crate::report::Report;
use crate::sizes::Sizes;
use crate::units::{ShapeArg, Size};

/// Counted runs of each model, and those before.
const RUNS: usize = 9;
const WARMUP: usize = 2;
/// Blocks that are told apart, at most.
const BLOCKS: usize = 24;

/// Where the time of the input and of the result goes.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// By operator of the runtime, the longest before first.
    pub operators: Vec<Row>,
    /// By block: nodes whose names begin alike. Empty if names tell of no blocks.
    pub blocks: Vec<Row>,
    /// A whole profiled run before and after, ns.
    pub total: (f64, f64),
}

/// A share of the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Of what.
    pub name: String,
    /// Before: ns a run, and kernels.
    pub before: (f64, usize),
    /// After.
    pub after: (f64, usize),
}

/// One kernel: operator, node name and time.
type Kernel = (String, String, f64);

/// Profiles both models, at the sizes of the report.
pub fn of(runtime: &dyn Runtime, (input, output): (&Path, &Path), report: &Report) -> Result<Times, Failure> {
    let (before, after) = (kernels(runtime, input, report)?, kernels(runtime, output, report)?);
    let total = |kernels: &[Kernel]| kernels.iter().map(|kernel| kernel.2).sum();
    let depth = depth(&before);
    let block = |name: &str| block(name, depth);
    Ok(Times {
        operators: rows(&before, &after, &|(operator, ..)| operator.clone()),
        blocks: if depth == 0 { Vec::new() } else { rows(&before, &after, &|(_, name, _)| block(name)) },
        total: (total(&before), total(&after)),
    })
}

/// Time that each node of a model takes, ns, by its name; the time of a kernel that several nodes were
/// fused into goes to the one that does most of the work. Nodes without a name are left out.
pub fn of_nodes(runtime: &dyn Runtime, model: &Path, report: &Report) -> Result<Vec<(String, f64)>, Failure> {
    let read = Model::read(model)?;
    let (profile, sizes) = profile(runtime, (&read, model), report, true)?;
    let graph = read.graph();
    let names = NameTable::of(graph).with_nodes_of(read.proto());
    let lost = || Failure::new("the runtime does not tell what it made of the model").hint("another version of the runtime may");
    let attribution = Attribution::of(graph, &sizes.symbols, &names, &profile).ok_or_else(lost)?;
    let mut taken = BTreeSet::new();
    let mut times = Vec::new();
    for node in read.proto().graph.iter().flat_map(|graph| &graph.node).filter(|node| !node.name().is_empty()) {
        let made = node.output.iter().find_map(|output| names.value(output));
        if let Some(made) = made.filter(|made| taken.insert(made.node)) {
            times.push((node.name().to_owned(), attribution.nodes[made.node.0 as usize]));
        }
    }
    Ok(times)
}

fn kernels(runtime: &dyn Runtime, model: &Path, report: &Report) -> Result<Vec<Kernel>, Failure> {
    let read = Model::read(model)?;
    let (profile, _) = profile(runtime, (&read, model), report, false)?;
    Ok(profile.nodes.into_iter().map(|node| (node.op_type, node.name, node.median_ns)).collect())
}

/// A model's profile at the sizes of the report; with what the runtime made of it, on request.
fn profile(runtime: &dyn Runtime, (read, model): (&Model, &Path), report: &Report, with_graph: bool) -> Result<(Profile, Sizes), Failure> {
    let numbers = |sizes: &[usize]| sizes.iter().map(|size| Size::Known(*size)).collect();
    let shapes: Vec<ShapeArg> =
        report.shapes.iter().map(|(input, sizes)| ShapeArg { input: input.clone(), sizes: numbers(sizes) }).collect();
    let sizes = Sizes::resolve(read, ModelSource::path(model), runtime, &shapes, &[])?;
    let feeds = sizes.feeds(Fill::Normal, report.seed)?;
    let options = SessionOptions { level: OptLevel::All, threads: report.threads, ..SessionOptions::default() };
    let mut profiling = Profiling::open(runtime, ProfileSubject { model: ModelSource::path(model), feeds: &feeds }, &options, with_graph)?;
    for _ in 0..WARMUP + RUNS {
        profiling.run()?;
    }
    let (profile, _) = profiling.finish(WARMUP)?;
    Ok((profile, sizes))
}

/// Sums by key.
fn rows(before: &[Kernel], after: &[Kernel], key: &dyn Fn(&Kernel) -> String) -> Vec<Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (is_after, kernel) in before.iter().map(|one| (false, one)).chain(after.iter().map(|one| (true, one))) {
        let row = rows.entry(key(kernel)).or_default();
        let (ns, count) = if is_after { &mut row.after } else { &mut row.before };
        (*ns, *count) = (*ns + kernel.2, *count + 1);
    }
    let mut rows: Vec<Row> = rows.into_iter().map(|(name, row)| Row { name, ..row }).collect();
    rows.sort_by(|a, b| b.before.0.max(b.after.0).total_cmp(&a.before.0.max(a.after.0)));
    rows
}

/// How many parts of a name tell blocks apart: as many as make the most blocks that can still be read.
fn depth(kernels: &[Kernel]) -> usize {
    let count = |depth: usize| kernels.iter().map(|(_, name, _)| block(name, depth)).collect::<std::collections::BTreeSet<_>>().len();
    let telling = (1..6).map(|depth| (count(depth), depth)).filter(|(count, _)| (2..=BLOCKS).contains(count));
    telling.max_by_key(|(count, depth)| (*count, std::cmp::Reverse(*depth))).map_or(0, |(_, depth)| depth)
}

/// The first parts of a node's name, as exporters write them: `/encoder/layer.3/..`.
fn block(name: &str, depth: usize) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    if parts.len() < 2 { String::from("(others)") } else { parts[..depth.min(parts.len() - 1)].join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_of_blocks() {
        let kernel = |name: &str| ("Conv".to_string(), name.to_string(), 1.0);
        let before = [kernel("/net/layer.0/conv/Conv"), kernel("/net/layer.1/conv/Conv"), kernel("/net/layer.1/conv/Relu")];
        assert_eq!(depth(&before), 2);
        assert_eq!(block("/net/layer.0/conv/Conv", 2), "net/layer.0");
        assert_eq!(depth(&[kernel("a"), kernel("b")]), 0);
        let rows = rows(&before, &before[..1], &|(_, name, _)| block(name, 2));
        assert_eq!(rows[0], Row { name: "net/layer.1".into(), before: (2.0, 2), after: (0.0, 0) });
        assert_eq!(rows[1].after, (1.0, 1));
    }
}
