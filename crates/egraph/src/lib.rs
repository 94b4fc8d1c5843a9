//! Extraction: the cheapest term in an e-graph, each chosen node counted once.

mod budget;
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

pub use budget::{Budget, Steps};
pub use egraph::{EGraph, Node};
pub use error::{EGraphError, Flaw};
pub use exact::Exact;
pub use extraction::{ExtractError, Extraction};
pub use greedy_dag::GreedyDag;
pub use method::{Answer, Extractor};
pub use problem::Problem;
pub use shared::Shared;
pub use tree::Tree;
