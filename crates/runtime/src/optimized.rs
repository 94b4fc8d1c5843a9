//! The graph that a runtime actually runs, after its own optimizer.

use regraft_onnx::proto::{GraphProto, attribute_proto::AttributeType};

use crate::{ModelSource, Runtime, RuntimeError, SessionOptions};

/// One node of an optimized graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptimizedNode {
    /// Name; may be empty.
    pub name: String,
    /// Operator type.
    pub op_type: String,
    /// Operator domain; empty for ONNX's own. `com.microsoft.nchwc` holds ONNX Runtime's
    /// blocked-layout operators.
    pub domain: String,
    /// Names of the values read; empty where an optional input is absent.
    pub inputs: Vec<String>,
    /// Names of the values produced; empty where an optional output is absent.
    pub outputs: Vec<String>,
    /// Names of outer values read by this node's bodies (loops, branches).
    pub captures: Vec<String>,
    /// Names of the nodes or values of the model that it was made from, where the runtime tells.
    pub origins: Vec<String>,
}

/// The top-level nodes that a runtime runs, in an order in which each follows what it reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizedGraph {
    /// The nodes.
    pub nodes: Vec<OptimizedNode>,
    /// Names of the constants that remain.
    pub initializers: Vec<String>,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Names of the outputs.
    pub outputs: Vec<String>,
}

impl OptimizedGraph {
    /// Loads a model with `options` and reads the runtime's graph for it.
    pub fn read(runtime: &dyn Runtime, model: ModelSource<'_>, options: &SessionOptions) -> Result<Self, RuntimeError> {
        let options = SessionOptions { graph: true, ..options.clone() };
        let graph = runtime.open(model, &options)?.take_graph();
        graph
            .ok_or_else(|| RuntimeError::OptimizedGraph { model: model.to_string(), cause: format!("{} does not tell it", runtime.name()) })
    }

    /// Nodes of the given operator type.
    pub fn count(&self, op_type: &str) -> usize {
        self.nodes.iter().filter(|n| n.op_type == op_type).count()
    }

    /// The graph of an ONNX model.
    pub fn of_onnx(graph: &GraphProto) -> Self {
        let nodes = graph
            .node
            .iter()
            .map(|node| {
                let mut captures = Vec::new();
                for attribute in &node.attribute {
                    if attribute.r#type() == AttributeType::Graph {
                        attribute.g.iter().for_each(|body| captured(body, &mut captures));
                    }
                    attribute.graphs.iter().for_each(|body| captured(body, &mut captures));
                }
                OptimizedNode {
                    name: node.name().to_owned(),
                    op_type: node.op_type().to_owned(),
                    domain: node.domain().to_owned(),
                    inputs: node.input.clone(),
                    outputs: node.output.clone(),
                    captures,
                    origins: Vec::new(),
                }
            })
            .collect();
        Self {
            nodes,
            initializers: graph.initializer.iter().map(|t| t.name().to_owned()).collect(),
            inputs: graph.input.iter().map(|v| v.name().to_owned()).collect(),
            outputs: graph.output.iter().map(|v| v.name().to_owned()).collect(),
        }
    }
}

/// Adds the outer values that a body reads.
fn captured(body: &GraphProto, found: &mut Vec<String>) {
    let mut own: std::collections::HashSet<&str> = body.input.iter().map(|v| v.name()).collect();
    own.extend(body.initializer.iter().map(|t| t.name()));
    let mut read = Vec::new();
    for node in &body.node {
        read.extend(node.input.iter().cloned());
        for attribute in &node.attribute {
            attribute.g.iter().chain(&attribute.graphs).for_each(|inner| captured(inner, &mut read));
        }
        own.extend(node.output.iter().map(String::as_str));
    }
    read.extend(body.output.iter().map(|v| v.name().to_owned()));
    for name in read {
        if !name.is_empty() && !own.contains(name.as_str()) && !found.contains(&name) {
            found.push(name);
        }
    }
}
