//! Benchmark networks as ONNX models, written by code and filled with seeded random weights.
//!
//! There are two kinds of entries:
//!
//! * the **real architectures** (`resnet-50`, `bert-base`, ...): stems, biases, normalizations,
//!   residuals, pooling conventions, attention masks and classifiers as in the reference
//!   implementations, in the form exporters write them;
//! * the **published variants** (`paper-resnet-50`, `paper-bert`, ...): the simplified graphs on
//!   which papers about graph substitution reported their results, including their defects. The
//!   description of each entry names its peculiarities.
//!
//! Weights are scaled so that activations stay finite and a softmax stays far from saturation; they
//! have no other meaning. A model is a function of its name and its [`Options`]: two builds are
//! identical byte for byte, on every platform.
//!
//! ```
//! use regraft_zoo::{Options, build, list};
//!
//! let entry = list().iter().find(|entry| entry.name == "squeezenet-1.1").unwrap();
//! let model = build(entry.name, &Options { seed: 7, ..Options::default() })?;
//! assert_eq!(model.graph.unwrap().input.len(), entry.inputs.len());
//! # Ok::<(), regraft_zoo::ZooError>(())
//! ```

mod builder;
mod catalog;
mod error;
mod networks;
mod options;
mod paper;
mod random;

pub use catalog::{Element, Entry, Input, build, list};
pub use error::ZooError;
pub use options::{Options, Weights};
pub use regraft_onnx::proto::ModelProto;
