//! The runtimes that models can be optimized for.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LibraryError, OnnxRuntime, OpenVino, Runtime, Starter};

/// A runtime that models can be optimized for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// ONNX Runtime, on processors.
    #[default]
    OnnxRuntime,
    /// OpenVINO, on processors.
    OpenVino,
}

impl Backend {
    /// Each of them.
    pub const ALL: [Backend; 2] = [Backend::OnnxRuntime, Backend::OpenVino];

    /// Its name, as rules, reports and the command line call it.
    pub fn name(self) -> &'static str {
        match self {
            Backend::OnnxRuntime => "onnxruntime",
            Backend::OpenVino => "openvino",
        }
    }

    /// Loads it from this library, or from its usual locations. `starter` starts processes of their
    /// own ([`Runtime::start_up`]).
    ///
    /// # Errors
    ///
    /// No library, or none that can be used; the hint says where it was looked for.
    pub fn load(self, library: Option<&Path>, starter: Option<Starter>) -> Result<Arc<dyn Runtime>, LibraryError> {
        Ok(match self {
            Backend::OnnxRuntime => Arc::new(OnnxRuntime::load(library)?.started_by(starter)),
            Backend::OpenVino => Arc::new(OpenVino::load(library)?.started_by(starter)),
        })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Backend, String> {
        let names = || Backend::ALL.map(Backend::name).join(", ");
        Backend::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(|| format!("no runtime `{name}`; there are {}", names()))
    }
}
