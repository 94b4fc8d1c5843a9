//! Trains small networks with operators of [`regraft_synth`] as their layers, and tells how
//! accurate they become.
//!
//! | what | where |
//! |---|---|
//! | images of ten classes, made by a seeded generator | [`Task`] |
//! | a small residual network with an operator in place of its convolutions | [`Network`] |
//! | a graph of Regraft's operators on tensors that know their gradients (`burn`) | [`executor`] |
//! | training, repeatable from a seed | [`Training`] |
//! | many operators, the worse half dropped at each milestone | [`halving`] |
//! | a ResNet-18, and what it learned as a model of ONNX | [`ResNet`] |
//! | the agent of X-RLflow on one graph | [`xrlflow`] |
//! | every run a row, so that what was done is not done again | [`Store`] |

mod adam;
mod curves;
pub mod executor;
pub mod halving;
mod network;
pub mod policy;
mod resnet;
mod store;
mod task;
mod training;
pub mod xrlflow;

pub use network::{Network, Parameter, spec};
pub use resnet::{ResNet, Shape, onnx};
pub use store::{Run, Store};
pub use task::{CLASSES, Images, Task};
pub use training::{HELD_BACK, Progress, Training, told_right};
