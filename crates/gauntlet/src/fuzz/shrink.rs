//! Minimizes a failure: the smallest model and the fewest rules that still show it.

use std::collections::HashSet;

use anyhow::Result;
use prost::Message;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{ModelProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto};
use regraft_rules::Library;
use regraft_runtime::{Feeds, HostTensor, OptLevel};
use regraft_search::RandomWalk;

use super::subject::{Kind, Outcome, Subject};
use crate::trial::Bench;

/// Walks tried to reproduce the failure on a smaller model.
const WALKS: u64 = 10;

/// A minimized failure.
pub struct Shrunk {
    /// The model.
    pub model: ModelProto,
    /// Rules that are each needed for the failure.
    pub rules: Vec<String>,
}

struct Search {
    bench: Bench,
    kind: Kind,
    tolerance: f64,
    walk: RandomWalk,
}

impl Search {
    fn fails(&self, model: &ModelProto, feeds: &[Feeds]) -> bool {
        let bytes = model.encode_to_vec();
        let Ok(subject) = Subject::new(&self.bench, &bytes, feeds, self.tolerance) else { return false };
        let others = (0..WALKS).map(|seed| RandomWalk { steps: 1 + seed as usize % self.walk.steps.clamp(1, 4), seed });
        std::iter::once(self.walk)
            .chain(others)
            .any(|walk| matches!(subject.check(&self.bench, walk), Outcome::Broken { kind, .. } if kind == self.kind))
    }
}

/// Shrinks walk, rules and model, in this order.
pub fn shrink(model: &ModelProto, feeds: &[Feeds], tolerance: f64, kind: Kind, rules: &[String], walk: RandomWalk) -> Result<Shrunk> {
    let bench = Bench { runtime: regraft::runtime::RuntimeChoice::default().load()?, library: Library::shipped()? };
    let mut search = Search { bench, kind, tolerance, walk };
    let bytes = model.encode_to_vec();
    if let Ok(subject) = Subject::new(&search.bench, &bytes, feeds, tolerance) {
        for steps in 0..=walk.steps {
            let shorter = RandomWalk { steps, ..walk };
            if matches!(subject.check(&search.bench, shorter), Outcome::Broken { kind: found, .. } if found == kind) {
                search.walk = shorter;
                break;
            }
        }
    }
    let mut rules: Vec<String> = rules.to_vec();
    rules.sort();
    rules.dedup();
    let all = rules.clone();
    for rule in all {
        let fewer: Vec<String> = rules.iter().filter(|r| **r != rule).cloned().collect();
        let library = Library::shipped()?.filter(|r| fewer.contains(&r.name.to_string()));
        let before = std::mem::replace(&mut search.bench.library, library);
        if search.fails(model, feeds) {
            rules = fewer;
        } else {
            search.bench.library = before;
        }
    }
    let (mut model, mut feeds) = (model.clone(), feeds.to_vec());
    drop_outputs(&search, &mut model, &feeds);
    cut_values(&search, &mut model, &mut feeds);
    drop_outputs(&search, &mut model, &feeds);
    Ok(Shrunk { model, rules })
}

/// Drops outputs and everything only they need.
fn drop_outputs(search: &Search, model: &mut ModelProto, feeds: &[Feeds]) {
    let mut at = 0;
    while let Some(graph) = &model.graph
        && at < graph.output.len()
        && graph.output.len() > 1
    {
        let mut smaller = model.clone();
        if let Some(graph) = &mut smaller.graph {
            graph.output.remove(at);
        }
        sweep(&mut smaller);
        if search.fails(&smaller, feeds) {
            *model = smaller;
        } else {
            at += 1;
        }
    }
}

/// Turns intermediate values into inputs, and others into outputs, so that the nodes before and
/// after are dropped.
fn cut_values(search: &Search, model: &mut ModelProto, feeds: &mut Vec<Feeds>) {
    let names: Vec<String> = model.graph.iter().flat_map(|g| &g.node).flat_map(|n| n.output.clone()).filter(|n| !n.is_empty()).collect();
    for name in names.iter().rev() {
        let Some(values) = values_of(search, model, feeds, name) else { continue };
        let mut fed = feeds.clone();
        fed.iter_mut().zip(&values).for_each(|(feeds, value)| {
            feeds.insert(name.clone(), value.clone());
        });
        let mut smaller = model.clone();
        let Some(graph) = &mut smaller.graph else { continue };
        graph.node.retain(|n| !n.output.contains(name));
        graph.output.retain(|o| o.name() != name);
        graph.value_info.clear();
        graph.input.push(info(name, &values));
        sweep(&mut smaller);
        if search.fails(&smaller, &fed) {
            *model = smaller;
            *feeds = fed;
            continue;
        }
        // If not the part before, perhaps everything after.
        let mut smaller = model.clone();
        let Some(graph) = &mut smaller.graph else { continue };
        graph.output = vec![info(name, &values)];
        graph.value_info.clear();
        sweep(&mut smaller);
        if search.fails(&smaller, feeds) {
            *model = smaller;
        }
    }
}

fn values_of(search: &Search, model: &ModelProto, feeds: &[Feeds], name: &str) -> Option<Vec<HostTensor>> {
    let mut shown = model.clone();
    let graph = shown.graph.as_mut()?;
    let constant = graph.node.iter().any(|n| n.op_type() == "Constant" && n.output.iter().any(|o| o == name));
    if constant || graph.input.iter().any(|i| i.name() == name) || !graph.node.iter().any(|n| n.output.iter().any(|o| o == name)) {
        return None;
    }
    graph.output = vec![ValueInfoProto { name: Some(name.into()), ..ValueInfoProto::default() }];
    let bytes = shown.encode_to_vec();
    feeds.iter().map(|f| search.bench.outputs(&bytes, OptLevel::Disabled, f).ok()?.pop()).collect()
}

fn info(name: &str, values: &[HostTensor]) -> ValueInfoProto {
    let first = &values[0];
    let dim = (0..first.shape().len())
        .map(|axis| {
            let same = values.iter().all(|v| v.shape().get(axis) == first.shape().get(axis));
            let open = dimension::Value::DimParam(format!("{name}_{axis}"));
            let value = if same { dimension::Value::DimValue(first.shape()[axis] as i64) } else { open };
            Dimension { value: Some(value), ..Dimension::default() }
        })
        .collect();
    let tensor = type_proto::Tensor { elem_type: Some(first.dtype().to_onnx()), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Removes nodes and initializers that no output needs. Bodies may read anything: models with
/// bodies keep everything.
fn sweep(model: &mut ModelProto) {
    let Some(graph) = &mut model.graph else { return };
    if graph.node.iter().any(|n| n.attribute.iter().any(|a| a.g.is_some())) {
        return;
    }
    let mut needed: HashSet<String> = graph.output.iter().map(|o| o.name().to_string()).collect();
    for node in graph.node.iter().rev() {
        if node.output.iter().any(|o| needed.contains(o)) {
            needed.extend(node.input.iter().cloned());
        }
    }
    graph.node.retain(|n| n.output.iter().any(|o| needed.contains(o)));
    graph.initializer.retain(|t| needed.contains(t.name()));
    let listed: HashSet<String> = graph.initializer.iter().map(|t| t.name().to_string()).collect();
    graph
        .input
        .retain(|i| !i.name().starts_with('v') && !i.name().starts_with('/') || listed.contains(i.name()) || needed.contains(i.name()));
}
