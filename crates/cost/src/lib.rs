//! What graphs cost: one honest table in integer nanoseconds.
//!
//! | to do | use |
//! |---|---|
//! | price without measuring | [`Roofline`] |
//! | price by what a runtime really ran | [`Measured`]: [`Measured::observe`] learns, [`CostModel::price`] tells |
//! | keep prices between runs | [`Measured::load`], [`Measured::save`] |
//! | decide by prices of another machine | [`Recording`], [`Carried`] |
//! | see where the time of a profile goes | [`Attribution`] |
//! | choose in which order tensors are stored | [`layout`] |
//! | know how far a model is from what its machine can do | [`Ceiling`], [`Arithmetic`], [`spots`] |
//! | show prices, judge predictions | [`describe`], [`Calibration`] |
//!
//! ```
//! use regraft_cost::{CostModel, Roofline};
//! use regraft_ir::{Bindings, text};
//!
//! let model = Roofline::new(Bindings::from([("N".into(), 32)]));
//! let one = text::parse("graph (x: f32[N,64]) { y = Relu(x) output y }")?;
//! let two = text::parse("graph (x: f32[N,64]) { a = Tanh(x) y = Relu(a) output y }")?;
//! assert!(0 < model.total(&one) && model.total(&one) < model.total(&two));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod attribute;
pub mod carried;
mod collateral;
pub mod fingerprint;
pub mod headroom;
pub mod layout;
pub mod measured;
pub mod model;
pub mod names;
pub mod operators;
pub mod persist;
pub mod predict;
pub mod recording;
pub mod report;
pub mod roofline;
pub mod signature;
pub mod table;
pub mod workload;

pub use attribute::{Attribution, Charge};
pub use carried::{Carried, Estimate, Origin, Prediction, deviation};
pub use fingerprint::fingerprint;
pub use headroom::{Arithmetic, Ceiling, Spot, spots};
pub use layout::{LaidOut, LayoutTarget};
pub use measured::{Fit, Knowledge, Learned, Measured, Observation, Pricing, Source};
pub use model::{CostModel, Ns};
pub use names::NameTable;
pub use operators::Operators;
pub use persist::Target;
pub use predict::{Guesses, Predictor};
pub use recording::{RecordedModel, RecordedPrice, Recording, RecordingError};
pub use report::{Calibration, Gain, Row, Total, describe};
pub use roofline::{Machine, Roofline};
pub use signature::Signature;
pub use table::{Entry, Speeds, Table, is_priced};
pub use workload::Workload;
