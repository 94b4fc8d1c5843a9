//! Trains small networks with operators of [`regraft_synth`] as their layers, and tells how accurate
//! they become.
//!
//! | what | where |
//! |---|---|
//! | images of ten classes, made by a seeded generator | [`Task`] |
//! | a small residual network with an operator in place of its convolutions | [`Network`] |
//! | a graph of Regraft's operators on tensors that know their gradients (`burn`) | [`executor`] |
//! | training, repeatable from a seed | [`Training`] |
//! | many operators, the worse half dropped at each milestone | [`halving`] |
//! | every run a row, so that what was done is not done again | [`Store`] |

pub mod executor;
pub mod halving;
mod network;
mod store;
mod task;
mod training;

pub use network::{Network, Parameter, SPEC, spec};
pub use store::{Run, Store};
pub use task::{CLASSES, Images, SIDE, Task};
pub use training::{Progress, Training};
