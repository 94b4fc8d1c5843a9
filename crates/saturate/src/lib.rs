//! Equality saturation: e-graphs of tensor graphs, grown by the rules of the library, and what is
//! cheapest in them.

pub mod choice;
pub mod cycles;
pub mod extract;
pub mod forest;
pub mod grow;
pub mod matches;
pub mod mcts;
mod moved;
pub mod plan;
pub mod refine;
pub mod schedule;
pub mod space;
pub mod strategy;

pub use cycles::Cycles;
pub use extract::{Alone, Method, Priced};
pub use forest::Reason;
pub use grow::{Growth, Limits, Rules, Stop};
pub use matches::Application;
pub use mcts::Mcts;
pub use plan::Plan;
pub use refine::{Refined, refine};
pub use schedule::Schedule;
pub use space::{Space, TypeClash};
pub use strategy::Saturate;
