//! Training of X-RLflow's agent on one graph, by proximal policy optimization.

pub mod advantages;
pub mod episode;
pub mod network;
pub mod training;
pub mod update;
