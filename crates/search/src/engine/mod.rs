//! The engine that all strategies share: a graph under rewriting, and the moves that rules offer.
//!
//! | noun | is |
//! |---|---|
//! | [`Engine`] | the state: a graph with its key and cost; moves are applied and undone |
//! | [`Move`] | one rule at one place |
//! | [`Moves`] | the moves of a state, shared with the states around it |
//! | [`Matcher`] | finds moves at given nodes |
//! | [`MatchCache`] | what a matcher learned, for the next one |
//! | [`all_moves`], [`next_moves`] | the moves of a state, from scratch or from those before |

mod automaton;
mod cache;
mod counters;
mod facts;
mod hash;
mod index;
mod inquiries;
mod matcher;
mod moves;
mod near;
mod numbering;
mod rewrite;
mod state;
mod step;
mod template;
mod witness;

pub use cache::MatchCache;
pub use counters::Counters;
pub use index::{all_moves, next_moves};
pub use matcher::{Matcher, Refusals};
pub use moves::Moves;
pub use rewrite::Move;
pub use state::Engine;
