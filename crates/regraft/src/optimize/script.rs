//! How a model was rewritten: first its own graph, then bodies of `If`, `Loop` and `Scan`.

use std::sync::Arc;

use regraft_certify::GraphPath;
use regraft_ir::Graph;
use regraft_search::Move;

use crate::optimize::place::Place;
use crate::report::Applied;

/// One rewrite of a graph.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The edit.
    pub step: Arc<Move>,
    /// How it is found again.
    pub place: Place,
    /// Its entry in the report.
    pub applied: Applied,
}

/// A graph that was rewritten.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// Where it is in its model.
    pub place: GraphPath,
    /// The same in words; empty for the model's own graph.
    pub label: String,
    /// The graph as read.
    pub read: Graph,
    /// Rewrites of its normal form, in order.
    pub rewrites: Vec<Rewrite>,
}

/// All rewrites of a model.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Rewrites of its own graph.
    pub main: Vec<Rewrite>,
    /// Rewrites of bodies, inner bodies before outer ones.
    pub bodies: Vec<Rewritten>,
}

impl Script {
    /// Every rewrite, in order.
    pub fn rewrites(&self) -> impl Iterator<Item = &Rewrite> {
        self.main.iter().chain(self.bodies.iter().flat_map(|body| &body.rewrites))
    }

    /// Their entries in the report.
    pub fn applied(&self) -> impl Iterator<Item = &Applied> {
        self.rewrites().map(|rewrite| &rewrite.applied)
    }

    /// Whether nothing was rewritten.
    pub fn is_empty(&self) -> bool {
        self.rewrites().next().is_none()
    }

    /// Where the rewrites of the model's own graph are, in order.
    pub fn places(&self) -> Vec<Place> {
        self.main.iter().map(|rewrite| rewrite.place.clone()).collect()
    }

    /// The model's own graph and its bodies with their rewrites; `read` is the own graph as read.
    pub fn graphs(&self, read: &Graph) -> Vec<Rewritten> {
        let main = Rewritten { place: GraphPath::default(), label: String::new(), read: read.clone(), rewrites: self.main.clone() };
        std::iter::once(main).chain(self.bodies.iter().cloned()).collect()
    }
}
