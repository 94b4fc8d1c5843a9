//! The runtimes that models are optimized for: the only place that loads one.

use std::path::PathBuf;
use std::sync::Arc;

use regraft_runtime::{Backend, Runtime, Starter};

use crate::error::Failure;

/// A runtime, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeChoice {
    /// Which one.
    pub backend: Backend,
    /// Its library; by default, that in its usual locations.
    pub library: Option<PathBuf>,
}

impl RuntimeChoice {
    /// Loads it.
    ///
    /// # Errors
    ///
    /// No library, or none that can be used; the hint says where it was looked for.
    pub fn load(&self) -> Result<Arc<dyn Runtime>, Failure> {
        self.load_with(None)
    }

    /// The same, with a program that starts processes of their own ([`Runtime::start_up`]).
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    pub fn load_with(&self, starter: Option<Starter>) -> Result<Arc<dyn Runtime>, Failure> {
        Ok(self.backend.load(self.library.as_deref(), starter)?)
    }
}
