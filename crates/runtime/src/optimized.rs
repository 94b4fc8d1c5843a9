//! The graph that a runtime actually runs, after its own optimizer.

use std::path::Path;

use prost::Message;
use regraft_onnx::proto::{GraphProto, ModelProto, attribute_proto::AttributeType};
use tempfile::TempDir;

use crate::{ModelSource, Runtime, RuntimeError, Session, SessionOptions};

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
        open_with_graph(runtime, model, options).map(|(_, graph)| graph)
    }

    /// Nodes of the given operator type.
    pub fn count(&self, op_type: &str) -> usize {
        self.nodes.iter().filter(|n| n.op_type == op_type).count()
    }

    fn from_graph(graph: &GraphProto) -> Self {
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

/// A private directory for a runtime's files, removed when dropped.
pub(crate) fn scratch_dir() -> Result<TempDir, RuntimeError> {
    tempfile::Builder::new().prefix("regraft-").tempdir().map_err(|source| RuntimeError::Io { path: std::env::temp_dir(), source })
}

/// Opens a model and reads the runtime's graph for it.
pub(crate) fn open_with_graph(
    runtime: &dyn Runtime,
    model: ModelSource<'_>,
    options: &SessionOptions,
) -> Result<(Box<dyn Session>, OptimizedGraph), RuntimeError> {
    let dir = scratch_dir()?;
    let file = dir.path().join("optimized.onnx");
    let mut options = options.clone();
    options.optimized_model_path = Some(file.clone());
    leave_weights_out(dir.path(), &mut options);
    let session = runtime.open(model, &options)?;
    let bytes = std::fs::read(&file).map_err(|source| RuntimeError::Io { path: file, source })?;
    let unreadable = |cause: String| RuntimeError::OptimizedGraph { model: model.to_string(), cause };
    let proto = ModelProto::decode(bytes.as_slice()).map_err(|e| unreadable(e.to_string()))?;
    let graph = proto.graph.ok_or_else(|| unreadable("it holds no graph".to_owned()))?;
    Ok((session, OptimizedGraph::from_graph(&graph)))
}

/// Only the structure is needed: ONNX Runtime can put the weights, up to gigabytes, into a second
/// file, and here that file leads nowhere. Runtimes that do not know the settings ignore them.
fn leave_weights_out(dir: &Path, options: &mut SessionOptions) {
    #[cfg(unix)]
    {
        const WEIGHTS: &str = "weights.bin";
        if std::os::unix::fs::symlink("/dev/null", dir.join(WEIGHTS)).is_err() {
            return;
        }
        let set = |key: &str, value: &str| (format!("session.optimized_model_external_initializers_{key}"), value.to_owned());
        options.config.push(set("file_name", WEIGHTS));
        options.config.push(set("min_size_in_bytes", "1024"));
    }
    #[cfg(not(unix))]
    let _ = (dir, options);
}
