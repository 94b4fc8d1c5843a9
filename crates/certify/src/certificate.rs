//! The record of how a model was made from another.

use std::fmt;

use regraft_onnx::FixedSizes;

use crate::digest::ModelDigest;
use crate::step::Step;

/// The path to a graph in a model: for each enclosing body, the indices of its node and attribute.
/// Empty for the model's main graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphPath(pub Vec<(usize, usize)>);

impl GraphPath {
    /// The path of a body inside this graph.
    pub fn inside(&self, body: (usize, usize)) -> GraphPath {
        GraphPath(self.0.iter().copied().chain([body]).collect())
    }
}

impl fmt::Display for GraphPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("main");
        }
        for (at, (node, attribute)) in self.0.iter().enumerate() {
            write!(f, "{}{node}.{attribute}", if at == 0 { "" } else { "/" })?;
        }
        Ok(())
    }
}

/// The rewrites of one graph, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// Which graph.
    pub place: GraphPath,
    /// A human-readable label for the same graph.
    pub label: String,
    /// [`canonical_key`](regraft_ir::canonical_key) of the graph as it was read: another version of
    /// the reader may number nodes differently.
    pub start: u128,
    /// The rewrites.
    pub steps: Vec<Step>,
}

/// How one model was derived from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The program that wrote it, and its version.
    pub tool: String,
    /// The model that was read.
    pub input: ModelDigest,
    /// The model that was written.
    pub output: ModelDigest,
    /// The sizes that the input was first fixed at, if any were: the output stands for the input at
    /// these sizes only.
    pub fixed: FixedSizes,
    /// The standard opset version the input was then converted to, if it was.
    pub opset: Option<i64>,
    /// Rewrites, graph by graph. Graphs not listed are unchanged.
    pub trails: Vec<Trail>,
}

impl Certificate {
    /// The rewrites of the graph at this place.
    pub fn trail(&self, place: &GraphPath) -> Option<&Trail> {
        self.trails.iter().find(|t| t.place == *place)
    }

    /// Number of rewrites in all graphs.
    pub fn steps(&self) -> usize {
        self.trails.iter().map(|t| t.steps.len()).sum()
    }
}
