//! Searching the models that rules reach: one engine, many strategies.

pub mod backtrack;
pub mod budget;
pub mod engine;
pub mod greedy;
pub mod random_walk;
pub mod strategy;

pub use backtrack::Backtrack;
pub use budget::{Budget, Steps};
pub use engine::{Counters, Engine, Matcher, Move, all_moves, next_moves};
pub use greedy::Greedy;
pub use random_walk::RandomWalk;
pub use strategy::{Outcome, Script, Strategy};
