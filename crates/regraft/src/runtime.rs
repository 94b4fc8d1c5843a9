//! The runtime that models are optimized for: the only place that chooses it.

use std::path::Path;
use std::sync::Arc;

use regraft_runtime::{OnnxRuntime, Runtime, Starter};

use crate::error::Failure;

/// Its name, as rules and reports call it.
pub const TARGET: &str = "onnxruntime";

/// Loads it from this library, or from its usual locations.
///
/// # Errors
///
/// No library, or none that can be used; the hint says where it was looked for.
pub fn load(library: Option<&Path>) -> Result<Arc<dyn Runtime>, Failure> {
    load_with(library, None)
}

/// The same, with a program that starts processes of their own ([`Runtime::start_up`]).
///
/// # Errors
///
/// As for [`load`].
pub fn load_with(library: Option<&Path>, starter: Option<Starter>) -> Result<Arc<dyn Runtime>, Failure> {
    Ok(Arc::new(OnnxRuntime::load(library)?.started_by(starter)))
}
