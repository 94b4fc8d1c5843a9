//! The runtimes that models can be optimized for.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LibraryError, OnnxRuntime, OpenVino, Provider, Runtime, Starter};

/// A runtime that models can be optimized for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Backend {
    /// ONNX Runtime, on one of its execution providers.
    OnnxRuntime(Provider),
    /// OpenVINO, on processors.
    OpenVino,
}

impl Backend {
    /// Each of them.
    pub const ALL: [Backend; 4] = [
        Backend::OnnxRuntime(Provider::Cpu),
        Backend::OnnxRuntime(Provider::Cuda),
        Backend::OnnxRuntime(Provider::Xnnpack),
        Backend::OpenVino,
    ];

    /// Those that this machine may have: each library, and of the execution providers of ONNX
    /// Runtime those that its library was built with.
    pub fn candidates() -> Vec<Backend> {
        let providers = OnnxRuntime::load(None).map_or_else(|_| vec![Provider::default()], |runtime| runtime.providers());
        Backend::ALL.into_iter().filter(|backend| !matches!(backend, Backend::OnnxRuntime(p) if !providers.contains(p))).collect()
    }

    /// Its name, as reports and the command line call it: that of the library, which rules go by,
    /// and after a colon that of another execution provider than the library's own.
    pub fn name(self) -> &'static str {
        match self {
            Backend::OnnxRuntime(Provider::Cpu) => "onnxruntime",
            Backend::OnnxRuntime(Provider::Cuda) => "onnxruntime:cuda",
            Backend::OnnxRuntime(Provider::Xnnpack) => "onnxruntime:xnnpack",
            Backend::OpenVino => "openvino",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Backend::OnnxRuntime(Provider::Cpu) => "ONNX Runtime on processors",
            Backend::OnnxRuntime(Provider::Cuda) => "ONNX Runtime on a graphics processor of NVIDIA's",
            Backend::OnnxRuntime(Provider::Xnnpack) => "ONNX Runtime with XNNPACK on processors",
            Backend::OpenVino => "OpenVINO on processors",
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
            Backend::OnnxRuntime(provider) => Arc::new(OnnxRuntime::load(library)?.on(provider)?.started_by(starter)),
            Backend::OpenVino => Arc::new(OpenVino::load(library)?.started_by(starter)),
        })
    }
}

impl Default for Backend {
    fn default() -> Self {
        Backend::OnnxRuntime(Provider::default())
    }
}

impl From<Backend> for String {
    fn from(backend: Backend) -> String {
        backend.name().to_owned()
    }
}

impl TryFrom<String> for Backend {
    type Error = String;

    fn try_from(name: String) -> Result<Backend, String> {
        name.parse()
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
