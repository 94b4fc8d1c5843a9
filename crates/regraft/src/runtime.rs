//! The runtime that models are optimized for: the one place that picks it.

use std::path::Path;
use std::sync::Arc;

use regraft_runtime::{OnnxRuntime, Runtime};

use crate::error::Failure;

/// Its name, as rules and reports call it.
pub const TARGET: &str = "onnxruntime";

/// Loads it from this library, or from where it is found.
///
/// # Errors
///
/// No library, or none that can be used; the hint tells where it was looked for.
pub fn load(library: Option<&Path>) -> Result<Arc<dyn Runtime>, Failure> {
    Ok(Arc::new(OnnxRuntime::load(library)?))
}
