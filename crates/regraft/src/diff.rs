//! `explain A B`: what differs between two model files, node by node.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use regraft_onnx::proto::{ModelProto, NodeProto};
use regraft_onnx::{Model, Signature};
use serde::Serialize;

use crate::error::Failure;
use crate::report::SCHEMA;

/// What differs between two models.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the first file.
    pub a: String,
    /// Name of the second file.
    pub b: String,
    /// Number of top-level nodes in each, [without constants](computing_nodes).
    pub nodes: (usize, usize),
    /// Number of initializers in each.
    pub initializers: (usize, usize),
    /// Bytes of each, external data included.
    pub bytes: (u64, u64),
    /// Every operator type that occurs, with its count in each; the domain is part of the name
    /// unless it is the standard one.
    pub operators: BTreeMap<String, (usize, usize)>,
    /// Nodes of the first that are missing from the second: `name (type)`.
    pub removed: Vec<String>,
    /// Nodes of the second that are missing from the first.
    pub added: Vec<String>,
    /// Nodes with the same name whose operator, operands or attributes differ.
    pub changed: Vec<String>,
    /// Differences in inputs and outputs.
    pub signature: Vec<String>,
}

impl Diff {
    /// Operators whose number changed: name, before, after.
    pub fn changed_operators(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.operators.iter().filter(|(_, (a, b))| a != b).map(|(name, (a, b))| (name.as_str(), *a, *b))
    }
}

/// Compares the top-level graphs of two files. Nodes are matched by name, unnamed ones by their
/// first result.
pub fn diff(a: &Path, b: &Path) -> Result<Diff, Failure> {
    let (first, second) = (Model::read(a)?, Model::read(b)?);
    let empty = Vec::new();
    let nodes = |model: &Model| -> Vec<NodeProto> { model.proto().graph.as_ref().map_or(&empty, |g| &g.node).clone() };
    let initializers = |model: &Model| model.proto().graph.as_ref().map_or(0, |g| g.initializer.len());
    let (old, new) = (nodes(&first), nodes(&second));
    let mut operators: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    old.iter().for_each(|n| operators.entry(operator(n)).or_default().0 += 1);
    new.iter().for_each(|n| operators.entry(operator(n)).or_default().1 += 1);
    let by_name = |nodes: &[NodeProto]| -> HashMap<String, NodeProto> { nodes.iter().map(|n| (name(n), n.clone())).collect() };
    let (in_old, in_new) = (by_name(&old), by_name(&new));
    let shown = |n: &NodeProto| format!("{} ({})", name(n), operator(n));
    let missing = |from: &[NodeProto], other: &HashMap<String, NodeProto>| -> Vec<String> {
        from.iter().filter(|n| !other.contains_key(&name(n))).map(shown).collect()
    };
    let changed = new.iter().filter_map(|n| {
        let before = in_old.get(&name(n)).filter(|before| *before != n)?;
        Some(if operator(before) == operator(n) { shown(n) } else { format!("{} ({} -> {})", name(n), operator(before), operator(n)) })
    });
    Ok(Diff {
        schema: SCHEMA,
        a: a.display().to_string(),
        b: b.display().to_string(),
        nodes: (computing_nodes(first.proto()), computing_nodes(second.proto())),
        initializers: (initializers(&first), initializers(&second)),
        bytes: (first.size(), second.size()),
        removed: missing(&old, &in_new),
        added: missing(&new, &in_old),
        changed: changed.collect(),
        operators,
        signature: Signature::of(first.proto()).compare(&Signature::of(second.proto())).0,
    })
}

/// Top-level nodes of a model, except those that only hold a constant: a weight is not a
/// computation, wherever it is kept.
pub fn computing_nodes(model: &ModelProto) -> usize {
    let nodes = model.graph.iter().flat_map(|graph| &graph.node);
    nodes.filter(|node| operator(node) != "Constant").count()
}

fn operator(node: &NodeProto) -> String {
    match node.domain() {
        "" | "ai.onnx" => node.op_type().to_string(),
        domain => format!("{domain}::{}", node.op_type()),
    }
}

fn name(node: &NodeProto) -> String {
    let result = || node.output.iter().find(|o| !o.is_empty()).map_or_else(|| node.op_type().to_string(), |o| format!("={o}"));
    if node.name().is_empty() { result() } else { node.name().to_string() }
}
