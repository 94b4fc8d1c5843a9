//! Learning which rewrite to try next: samples of strong searches on small graphs, a network that
//! imitates them, and what it is worth on problems that it never saw.

pub mod comparison;
pub mod corpus;
pub mod history;
pub mod learning;
pub mod network;
pub mod problem;
