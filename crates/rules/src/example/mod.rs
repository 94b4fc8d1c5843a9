//! Readable examples of a rule: small graphs on which it fires, and near misses, graphs on which
//! one guard alone keeps it from firing.
//!
//! | noun | is |
//! |---|---|
//! | [`Outcome`] | what a rule does with a graph |
//! | [`examples`] | small graphs that the rule rewrites |
//! | [`Guard`] | a condition of the rule that can be lifted |
//! | [`near_misses`], [`NearMiss`] | for each guard, a graph that it alone refuses |
//! | [`Verdict`] | what would happen there without it |

mod examples;
mod guard;
mod near_miss;
mod nearby;
mod outcome;
mod search;
mod tidy;

pub use examples::{examples, shown};
pub use guard::{Guard, guards};
pub use near_miss::{NearMiss, Verdict, near_misses, verdict};
pub use outcome::{Outcome, outcome};
