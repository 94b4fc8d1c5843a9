//! Learned search: which rewrite to try next, from the graph around it.
//!
//! A small graph network scores each pair of a rule and a place. It was trained to imitate strong
//! searches on small graphs; here it is only computed, in plain loops, and nothing depends on a
//! framework.

mod advice;
mod block;
pub mod descriptor;
mod digest;
mod embedding;
mod explored;
pub mod features;
mod guide;
pub mod gumbel;
mod linear;
mod policy;
pub mod prior;
mod sample;
mod shipped;
mod teacher;
mod weights;

pub use block::{block, cut};
pub use digest::Digest;
pub use embedding::{Changes, Embedding};
pub use guide::Guide;
pub use gumbel::Gumbel;
pub use linear::EPSILON;
pub use policy::Policy;
pub use prior::Prior;
pub use sample::{Sample, SampleMove, SampleNode};
pub use shipped::{Learned, Method, shipped};
pub use teacher::{STEP, Teacher};
pub use weights::{Among, HIDDEN, Part, ROUNDS, Side, WIDTH, Weights, WeightsError};
