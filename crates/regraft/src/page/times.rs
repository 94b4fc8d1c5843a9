//! Where the time of two models goes, by the runtime's own profile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use regraft_cost::{Attribution, NameTable};
use regraft_onnx::Model;
use regraft_onnx::proto::{ModelProto, NodeProto};
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

/// One kernel: operator, the name that tells its block, and time.
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

/// Time that each node of a model takes, ns, by its name; the time of a kernel that several nodes
/// were fused into goes to the one that does most of the work. Nodes without a name are left out.
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
    let homes = homes(read.proto());
    let name = |name: String| homes.get(&name).cloned().unwrap_or(name);
    Ok(profile.nodes.into_iter().map(|node| (node.op_type, name(node.name), node.median_ns)).collect())
}

/// For nodes whose names tell no block, such as those that rewrites made, a name that does: of what
/// they compute, or of the nearest node that reads it, or else of the nearest that it is made from.
fn homes(model: &ModelProto) -> HashMap<String, String> {
    let nodes: Vec<&NodeProto> = model.graph.iter().flat_map(|graph| &graph.node).collect();
    let own = |node: &NodeProto| {
        std::iter::once(node.name()).chain(node.output.iter().map(String::as_str)).find(|name| tells(name)).map(str::to_owned)
    };
    let mut home: Vec<Option<String>> = nodes.iter().map(|node| own(node)).collect();
    // Files list nodes in an order in which they can run.
    let mut read: HashMap<&str, String> = HashMap::new();
    for (at, node) in nodes.iter().enumerate().rev() {
        home[at] = home[at].take().or_else(|| node.output.iter().find_map(|value| read.get(value.as_str()).cloned()));
        if let Some(home) = &home[at] {
            read.extend(node.input.iter().map(|value| (value.as_str(), home.clone())));
        }
    }
    let mut made: HashMap<&str, String> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        home[at] = home[at].take().or_else(|| node.input.iter().find_map(|value| made.get(value.as_str()).cloned()));
        if let Some(home) = &home[at] {
            made.extend(node.output.iter().map(|value| (value.as_str(), home.clone())));
        }
    }
    nodes
        .iter()
        .zip(home)
        .filter(|(node, _)| !tells(node.name()))
        .filter_map(|(node, home)| Some((node.name().to_owned(), home?)))
        .collect()
}

/// Whether a name tells a block.
fn tells(name: &str) -> bool {
    name.split('/').filter(|part| !part.is_empty()).count() >= 2
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

/// How many parts of a name tell blocks apart: as many as make the most blocks that can still be
/// read.
fn depth(kernels: &[Kernel]) -> usize {
    let count = |depth: usize| kernels.iter().map(|(_, name, _)| block(name, depth)).collect::<std::collections::BTreeSet<_>>().len();
    let telling = (1..6).map(|depth| (count(depth), depth)).filter(|(count, _)| (2..=BLOCKS).contains(count));
    telling.max_by_key(|(count, depth)| (*count, std::cmp::Reverse(*depth))).map_or(0, |(_, depth)| depth)
}

/// The first parts of a node's name, as exporters write them: `/encoder/layer.3/..`.
fn block(name: &str, depth: usize) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    if !tells(name) { String::from("(others)") } else { parts[..depth.min(parts.len() - 1)].join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_without_a_telling_name_belong_to_their_neighbours() {
        let node = |name: &str, inputs: &[&str], output: &str| NodeProto {
            name: Some(name.into()),
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.into()],
            ..NodeProto::default()
        };
        let nodes =
            [node("made_0", &["x"], "a"), node("made_1", &["a"], "b"), node("/net/one/Relu", &["b"], "c"), node("made_2", &["c"], "y")];
        let graph = regraft_onnx::proto::GraphProto { node: nodes.to_vec(), ..Default::default() };
        let homes = homes(&ModelProto { graph: Some(graph), ..ModelProto::default() });
        let named = |name: &str| homes.get(name).map(String::as_str);
        assert_eq!([named("made_0"), named("made_1"), named("made_2")], [Some("/net/one/Relu"); 3]);
        assert_eq!(named("/net/one/Relu"), None);
    }

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
