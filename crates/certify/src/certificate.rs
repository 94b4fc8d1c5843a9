//! The record of how a model was made from another.

use std::fmt;

use crate::digest::ModelDigest;
use crate::step::Step;

/// Where a graph is in a model: for every body on the way, the place of its node and of the
/// attribute that it is. Empty for the model's own graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphPath(pub Vec<(usize, usize)>);

impl GraphPath {
    /// The place of a body inside of this graph.
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
    /// The same in words, for people.
    pub label: String,
    /// [`canonical_key`](regraft_ir::canonical_key) of the graph as it was read: another version of
    /// the reader may number nodes differently.
    pub start: u128,
    /// The rewrites.
    pub steps: Vec<Step>,
}

/// How one model was made from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The program that wrote it, and its version.
    pub tool: String,
    /// The model that was read.
    pub input: ModelDigest,
    /// The model that was written.
    pub output: ModelDigest,
    /// The version of the standard opset that the input was brought to first, if it was.
    pub opset: Option<i64>,
    /// Rewrites, graph by graph. Graphs that are not listed are as they were.
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
