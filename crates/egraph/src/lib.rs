//! Extraction: the cheapest terms of an e-graph, each chosen node counted once.
//!
//! An e-graph holds many equal terms at once: classes of equal nodes, whose children are classes.
//! To extract is to choose one node for each class that the roots need, such that no class needs
//! itself. The cost of a choice is the sum over its nodes; what several nodes share is paid for
//! once. Finding the least is NP-hard.
//!
//! ```
//! use regraft_egraph::{EGraph, Exact, Steps, Tree};
//!
//! // Both children of `f` may be made from `s`, which trees count twice.
//! let text = br#"{"nodes": {
//!     "f":  {"op": "f", "eclass": "f", "cost": 1, "children": ["a1", "b1"]},
//!     "a1": {"op": "g", "eclass": "a", "cost": 0, "children": ["s"]}, "a2": {"op": "x", "eclass": "a", "cost": 3},
//!     "b1": {"op": "h", "eclass": "b", "cost": 0, "children": ["s"]}, "b2": {"op": "y", "eclass": "b", "cost": 3},
//!     "s":  {"op": "s", "eclass": "s", "cost": 4}}, "root_eclasses": ["f"]}"#;
//! let egraph = EGraph::read(text)?;
//! let tree = egraph.extract(&Tree, None, &mut Steps(1000))?;
//! assert_eq!((tree.cost, tree.bound), (7.0, None));
//! let least = egraph.extract(&Exact, None, &mut Steps(1000))?;
//! assert_eq!((least.cost, least.bound, least.gap()), (5.0, Some(5.0), Some(0.0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`EGraph::read`] reads the JSON of the crate `egraph-serialize`; [`EGraph::new`] takes nodes.
//! * [`EGraph::extract`] runs one of the methods [`Tree`], [`Shared`], [`GreedyDag`] and [`Exact`],
//!   and checks what it returns. Given a known extraction, the result is never worse.
//! * All results are the same whenever the nodes and their order are, unless a [`Budget`] that asks
//!   a clock ends the search.
//!
//! Pure: no I/O, no clock, no printing.

mod egraph;
mod error;
mod exact;
mod extraction;
mod greedy_dag;
mod json;
mod knuth;
mod lists;
mod local_search;
mod method;
mod problem;
mod reduce;
mod shared;
mod tree;

pub use egraph::{EGraph, Node};
pub use error::{EGraphError, Flaw};
pub use exact::Exact;
pub use extraction::{ExtractError, Extraction};
pub use greedy_dag::GreedyDag;
pub use method::{Answer, Extractor};
pub use problem::Problem;
pub use regraft_ir::{Budget, Steps};
pub use shared::Shared;
pub use tree::Tree;
