//! Instances of a rule: drawn at random, enumerated, and exercised.
//!
//! An instance is the source pattern built as a graph from the rule's `instance` clause, in `f64`,
//! so that a true rule agrees to about 1e-12 and a false one does not. Attributes that the source
//! leaves open are drawn from adversarial defaults.
//!
//! | noun | is |
//! |---|---|
//! | [`Instance`], [`Miss`] | a source and what the rule makes of it, or why there is none |
//! | [`draw`], [`Sizes`] | an instance made from a seed |
//! | [`Domain`](crate::Domain) | all instances with small sizes |
//! | [`exercise`], [`Exercise`] | both sides compared on the reference executor |

mod attributes;
mod draw;
mod elementwise;
mod enumerate;
mod exercise;
mod instance;
mod operands;
mod sampler;

pub(crate) use draw::feeds;
pub use draw::{Sizes, draw, draw_sized, graph};
pub(crate) use enumerate::instance_on;
pub(crate) use exercise::tolerance;
pub use exercise::{Counterexample, Exercise, TOLERANCE, exercise};
pub(crate) use instance::rewritten;
pub use instance::{Instance, Miss};
pub(crate) use sampler::{Known, Stop};
