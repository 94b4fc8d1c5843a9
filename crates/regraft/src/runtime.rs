//! The runtime that models are optimized for: the only place that chooses it.

use std::path::Path;
use std::sync::Arc;

use regraft_runtime::{OnnxRuntime, Runtime};

use crate::error::Failure;

/// Its name, as rules and reports call it.
pub const TARGET: &str = "onnxruntime";

/// Loads it from this library, or from its usual locations.
///
/// # Errors
///
/// No library, or none that can be used; the hint says where it was looked for.
pub fn load(library: Option<&Path>) -> Result<Arc<dyn Runtime>, Failure> {
    Ok(Arc::new(OnnxRuntime::load(library)?))
}
