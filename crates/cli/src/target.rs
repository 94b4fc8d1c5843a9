//! Options that say which runtime models run on.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use regraft::runtime::RuntimeChoice;
use regraft_runtime::Backend;

/// A runtime, and where it is.
#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// The runtime that models run on
    #[arg(long, value_name = "RUNTIME", default_value_t, value_parser = backend(), help_heading = "Target")]
    target: Backend,
    #[command(flatten)]
    library: LibraryArgs,
}

/// Where a runtime is.
#[derive(Debug, Args)]
pub struct LibraryArgs {
    /// The runtime's library file [default: that of its Python package; REGRAFT_ONNXRUNTIME or
    /// REGRAFT_OPENVINO names another]
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    runtime_library: Option<PathBuf>,
}

impl RuntimeArgs {
    /// What they say.
    pub fn choice(&self) -> RuntimeChoice {
        self.library.of(self.target)
    }
}

impl LibraryArgs {
    /// This runtime, from there.
    pub fn of(&self, backend: Backend) -> RuntimeChoice {
        RuntimeChoice { backend, library: self.runtime_library.clone() }
    }

    /// The file, if one is named.
    pub fn file(&self) -> Option<PathBuf> {
        self.runtime_library.clone()
    }

    /// The default runtime, from there.
    pub fn choice(&self) -> RuntimeChoice {
        self.of(Backend::default())
    }
}

fn backend() -> impl TypedValueParser<Value = Backend> {
    PossibleValuesParser::new(backends()).try_map(|name| name.parse())
}

/// The runtimes, as values of an option.
pub fn backends() -> [PossibleValue; Backend::ALL.len()] {
    Backend::ALL.map(|backend| PossibleValue::new(backend.name()).help(backend.about()))
}
