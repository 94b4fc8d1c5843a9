//! Regraft makes ONNX models faster without changing what they compute.
//!
//! It searches the models that machine-checked rewrite rules reach from the input, prices them by
//! what the target runtime actually runs, and writes the fastest one end to end, or the input again
//! if none is faster beyond noise.
//!
//! This crate is the public facade, and the only stable one of the workspace; the `regraft` command
//! (`crates/cli`) is a thin layer over it.
//!
//! | to do | use |
//! |---|---|
//! | optimize a model file | [`optimize()`], with a [`Request`](optimize::Request) |
//! | show what was done | [`render`], from a [`Report`](report::Report); [`page`](page::page()) as HTML |
//! | tell whether two models are the same | [`check()`] |
//! | time models against each other | [`bench()`] |
//! | see what differs between two model files | [`diff()`] |
//! | know how fast the search engine is | [`speed`] |
//! | compare what searches find | [`compare()`] |
//! | know how well prices predict | [`calibrate()`] |
//!
//! ```no_run
//! use regraft::optimize::{Request, Silent};
//!
//! let report = regraft::optimize(&Request::new("model.onnx", "fast.onnx"), &mut Silent)?;
//! println!("{}", regraft::render::verdict(&report, &[]));
//! # Ok::<(), regraft::Failure>(())
//! ```

pub mod agreement;
mod assumptions;
pub mod bench;
pub mod calibrate;
pub mod certificate;
pub mod check;
pub mod compare;
pub mod confirm;
mod data;
pub mod diff;
pub mod discrete;
pub mod equivalence;
pub mod error;
pub mod exact;
mod exposed;
pub mod file;
pub mod freeze;
mod ground;
mod guess;
pub mod histogram;
pub mod layouts;
pub mod limits;
pub mod optimize;
pub mod page;
mod plain;
pub mod priced;
pub mod ranges;
pub mod record;
pub mod recording;
mod refused;
pub mod render;
pub mod report;
pub mod runtime;
pub mod saturated;
pub mod sizes;
pub mod speed;
pub mod stopwatch;
pub mod synthesize;
pub mod units;
mod weights;
pub mod words;

pub use bench::bench;
pub use calibrate::calibrate;
pub use check::check;
pub use compare::compare;
pub use diff::diff;
pub use error::Failure;
pub use ground::{Ground, Requirement};
pub use optimize::optimize;
pub use record::record;
pub use refused::Refused;
pub use synthesize::synthesize;

/// Name and version, for reports.
pub(crate) fn tool() -> String {
    format!("regraft {}", env!("CARGO_PKG_VERSION"))
}
