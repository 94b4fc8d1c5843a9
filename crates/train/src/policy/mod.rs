//! Learning which rewrite to try next: samples of strong searches on small graphs, and a network that
//! imitates them.

pub mod corpus;
pub mod learning;
pub mod network;
