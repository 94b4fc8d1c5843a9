//! Runs and times ONNX models: runtimes behind a trait, clocks, interleaved timing, profiles, the
//! measurement store and test inputs. This crate knows nothing about rules or search; it takes
//! model files and returns outputs and nanoseconds.
//!
//! | to do | use |
//! |---|---|
//! | find and load a runtime | [`Backend::load`], [`OnnxRuntime::load`], [`OpenVino::load`] |
//! | run a model once | [`Runtime::open`], [`Session::run`] |
//! | run a model that the runtime's own optimizer breaks | [`Fallback`] |
//! | time several models against each other | [`Session::bind`], [`time_interleaved`], [`Sittings`] |
//! | know where the time of a run goes | [`profile_interleaved`], [`OptimizedGraph`] |
//! | know what a process takes to start with a model | [`Runtime::start_up`], [`Starter`] |
//! | keep measurements between runs | [`Store`], [`MachineKey`] |
//! | make or read inputs | [`Fill`], [`fill_inputs`], [`read_tensor_file`] |
//!
//! ```no_run
//! use regraft_runtime::{ModelSource, OnnxRuntime, Runtime, SessionOptions, Fill, FillOptions, InputSpec, fill_inputs};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = OnnxRuntime::load(None)?;
//! let mut session = runtime.open(ModelSource::path("model.onnx"), &SessionOptions::default())?;
//! let specs = InputSpec::from_values(session.inputs(), |_, _| Some(1))?;
//! let feeds = fill_inputs(Fill::Normal, &specs, &FillOptions::default())?;
//! for tensor in session.run(&feeds)? {
//!     println!("{} {:?}", tensor.dtype(), tensor.shape());
//! }
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
extern crate self as regraft_runtime;

mod backend;
mod clock;
mod data;
mod dtype;
mod error;
mod fallback;
mod feeds;
mod fills;
mod inputs;
mod kernels;
mod library;
mod machine;
mod memory;
mod npz;
mod onnxruntime;
mod openvino;
mod optimized;
mod profile;
mod provider;
mod raw_profile;
mod runtime;
mod sittings;
mod source;
mod staging;
mod startup;
mod stats;
mod store;
mod tensor;
mod timing;

pub use backend::Backend;
pub use clock::Clock;
pub use data::{DataError, NamedTensor, read_npy, read_tensor_file, read_tensor_proto};
pub use dtype::DType;
pub use error::RuntimeError;
pub use fallback::{Fallback, Refusal};
pub use feeds::Feeds;
pub use fills::{Fill, FillOptions, InputSpec, IntRange, fill_inputs};
pub use library::{Candidate, LibraryError, Origin, Product};
pub use machine::MachineKey;
pub use memory::{keep_freed_memory, return_freed_memory};
pub use npz::read_npz;
pub use onnxruntime::{NO_TELEMETRY, OnnxRuntime};
pub use openvino::OpenVino;
pub use optimized::{OptimizedGraph, OptimizedNode};
pub use profile::{NodeProfile, Profile, ProfileOptions, ProfileSubject, Profiling, profile_interleaved};
pub use provider::Provider;
pub use raw_profile::{NodeEvent, ProfiledRun, RawProfile};
pub use runtime::{OptLevel, Runtime, Session, SessionOptions, ValueInfo};
pub use sittings::{Confidence, Sittings, Spread};
pub use source::ModelSource;
pub use startup::{Starter, Startup, answer, peak_bytes};
pub use stats::{Ratio, binned_quantile, median, paired_ratio, quantile};
pub use store::{Filter, Key, Measurement, ProofKey, Store, StoreError, default_store_path};
pub use tensor::{Element, HostTensor, TensorError};
pub use timing::{Samples, TimingOptions, time_interleaved};
