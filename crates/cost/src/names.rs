//! How a written model names the parts of a graph.

use std::collections::HashMap;

use regraft_ir::{Graph, NodeId, ValueId};
use regraft_onnx::proto::ModelProto;

/// Maps names in a written model to the graph that it was written from.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    values: HashMap<String, ValueId>,
    nodes: HashMap<String, NodeId>,
}

impl NameTable {
    /// A table from value names alone.
    pub fn new(values: HashMap<String, ValueId>) -> NameTable {
        NameTable { values, nodes: HashMap::new() }
    }

    /// The names of a graph's own results: correct for a model as it was read.
    pub fn of(graph: &Graph) -> NameTable {
        let mut values = HashMap::new();
        for id in graph.ids() {
            for (port, name) in graph.node(id).names.iter().enumerate() {
                values.extend(name.iter().map(|n| (n.to_string(), id.port(port as u32))));
            }
        }
        values.extend(graph.outputs().iter().map(|o| (o.name.to_string(), o.value)));
        NameTable::new(values)
    }

    /// Adds the names of nodes: runtimes keep these when they rename results. Duplicate names are
    /// left out.
    pub fn with_nodes_of(mut self, model: &ModelProto) -> NameTable {
        let mut found: HashMap<&str, Option<NodeId>> = HashMap::new();
        for node in model.graph.iter().flat_map(|g| &g.node).filter(|n| !n.name().is_empty()) {
            let id = node.output.iter().find_map(|name| self.values.get(name)).map(|value| value.node);
            found.entry(node.name()).and_modify(|known| *known = None).or_insert(id);
        }
        self.nodes = found.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?))).collect();
        self
    }

    /// The value with this name.
    pub fn value(&self, name: &str) -> Option<ValueId> {
        self.values.get(name).copied()
    }

    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.get(name).copied()
    }
}
