//! Why a runtime failed.

use std::path::PathBuf;

use crate::{DType, LibraryError, TensorError};

/// Why a model could not be opened or run. The message says where and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum RuntimeError {
    /// The runtime's library is missing or unusable: the installation's fault.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The runtime refuses the model: the model's fault, or an operator that this runtime lacks.
    #[error("{runtime} cannot load {model}: {cause}")]
    Load { runtime: String, model: String, cause: String },
    /// The runtime failed while running: the model's or its inputs' fault.
    #[error("{runtime} failed while running {model}: {cause}")]
    Run { runtime: String, model: String, cause: String },
    /// A process of its own could not be started with a model, or failed.
    #[error("{program} was started with {model} and failed: {cause}", program = .program.display(), model = .model.display())]
    Start { program: PathBuf, model: PathBuf, cause: String },
    /// A process of its own died of a model: a defect of the runtime.
    #[error("{model} makes the runtime crash ({status})", model = .model.display())]
    Crashed { model: PathBuf, status: std::process::ExitStatus },
    /// An input has no value: the caller's fault.
    #[error("input `{input}` of {model} has no value; give one for each of: {expected}")]
    MissingInput { model: String, input: String, expected: String },
    /// A value is given for something that is not an input: the caller's fault.
    #[error("{model} has no input `{input}`; its inputs are: {expected}")]
    UnknownInput { model: String, input: String, expected: String },
    /// A value does not fit its input: the caller's fault.
    #[error("input `{input}` of {model} is {declared}, the value given is {given}")]
    InputMismatch { model: String, input: String, declared: String, given: String },
    /// A value is of a kind that this crate does not support (text, sequences, maps, small floats).
    #[error("{role} `{name}` of {model} is {kind}; only dense numeric and boolean tensors are supported")]
    UnsupportedValue { model: String, role: &'static str, name: String, kind: String },
    /// A timed run was requested before any input values were bound: a bug in the caller.
    #[error("no input values are bound for {model}; call `bind` before `run_bound`")]
    NotBound { model: String },
    /// A profile was requested from a session that does not record one: a bug in the caller.
    #[error("{model} was opened without profiling; set `SessionOptions::profile`")]
    NotProfiling { model: String },
    /// The profile that the runtime wrote cannot be read: a runtime version that this program does
    /// not know.
    #[error("the profile {file} written by {runtime} cannot be read: {cause}", file = .file.display())]
    Profile { runtime: String, file: PathBuf, cause: String },
    /// The optimized graph that the runtime wrote cannot be read.
    #[error("the optimized graph of {model} cannot be read: {cause}")]
    OptimizedGraph { model: String, cause: String },
    /// A tensor is malformed.
    #[error("{place}: {source}")]
    Tensor { place: String, source: TensorError },
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// An input's dimension has no value to run with: the caller's fault.
    #[error("dimension {axis}{symbol} of input `{input}` is not known; give its shape, e.g. `--shape {input}:1,3,224,224`")]
    UnboundDim { input: String, axis: usize, symbol: String },
    /// This crate cannot make up inputs of this type.
    #[error("cannot make values for input `{input}` of {dtype}; give it a value from a file")]
    CannotFill { input: String, dtype: DType },
}

impl RuntimeError {
    /// Whether the same may well succeed in another process.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Library(error) if error.passes())
    }
}

/// One line of a runtime's message: ONNX Runtime's may hold line breaks and surplus blanks.
pub(crate) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
