//! Why a model cannot be read or written: one line of cause, a place, and a hint.

use std::fmt;
use std::io;
use std::path::PathBuf;

use regraft_ir::onnx::NoSpelling;

/// Why a model could not be read. Always the input's fault; never a bug in this crate.
#[derive(Debug)]
pub struct LoadError {
    /// The model file, if it came from one.
    pub file: Option<PathBuf>,
    /// Where in the model, if the fault concerns one graph or node.
    pub location: Option<Location>,
    /// What is wrong.
    pub fault: Box<LoadFault>,
}

/// A graph, and perhaps one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the graph.
    pub graph: String,
    /// The node: its name or operator, its position (from 1), and how many there are.
    pub node: Option<(String, usize, usize)>,
}

/// What is wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFault {
    /// The file system refused.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The bytes are not a protobuf `ModelProto`.
    #[error("this is not an ONNX model: {0}")]
    NotOnnx(String),
    /// The bytes stop in the middle of a field.
    #[error("the model is cut off: `{field}` at byte {at} claims {need} bytes, {have} are left")]
    Truncated {
        /// The field that is cut off.
        field: String,
        /// Its position in the file.
        at: u64,
        /// Bytes claimed.
        need: u64,
        /// Bytes left.
        have: u64,
    },
    /// Too large for protobuf.
    #[error("the model file has {0} bytes; protobuf ends at 2 GiB")]
    TooLarge(u64),
    /// A model without a graph.
    #[error("the model has no graph")]
    NoGraph,
    /// A node or output reads a value that nothing defines.
    #[error("{reader} reads `{value}`, which nothing defines")]
    Undefined {
        /// The reader: a node's input, or a graph output.
        reader: String,
        /// The value's name.
        value: String,
    },
    /// Two definitions of one name.
    #[error("`{value}` is defined twice: by {first} and by {second}")]
    Duplicate {
        /// The value's name.
        value: String,
        /// The first definition.
        first: String,
        /// The second definition.
        second: String,
    },
    /// The nodes cannot be ordered.
    #[error("the graph has a cycle through `{0}`")]
    Cycle(String),
    /// External tensor data is missing or shorter than declared.
    #[error("tensor `{tensor}` needs {need} bytes of `{file}`, which {}", if *have > 0 { format!("has {have}") } else { "is missing or empty".into() })]
    ExternalData {
        /// The tensor's name.
        tensor: String,
        /// The data file.
        file: PathBuf,
        /// Bytes the file must have.
        need: u64,
        /// Bytes it has.
        have: u64,
    },
    /// External tensor data cannot be located.
    #[error("tensor `{tensor}` has external data at `{location}`: {why}")]
    ExternalPlace {
        /// The tensor's name.
        tensor: String,
        /// The location as written.
        location: String,
        /// What is wrong with it.
        why: String,
    },
    /// External tensor data of a model that was not read from a file.
    #[error("tensor `{tensor}` has external data at `{location}`, and the model is no file, so there is no folder to look in")]
    NoFolder {
        /// The tensor's name.
        tensor: String,
        /// The location as written.
        location: String,
    },
    /// An element type that no version of ONNX defines.
    #[error("tensor `{tensor}` has the unknown element type {code}")]
    DType {
        /// The tensor's name.
        tensor: String,
        /// The code found.
        code: i32,
    },
    /// Data that does not fit the declared type and shape.
    #[error("tensor `{tensor}` of {ty} needs {need} bytes, {have} are stored")]
    TensorBytes {
        /// The tensor's name.
        tensor: String,
        /// Element type and shape.
        ty: String,
        /// Bytes that the type and shape need.
        need: u64,
        /// Bytes stored.
        have: u64,
    },
    /// A negative or absurd size.
    #[error("tensor `{tensor}` has the impossible shape {shape:?}")]
    Shape {
        /// The tensor's name.
        tensor: String,
        /// The sizes.
        shape: Vec<i64>,
    },
}

impl LoadError {
    pub(crate) fn new(fault: LoadFault) -> LoadError {
        LoadError { file: None, location: None, fault: Box::new(fault) }
    }

    pub(crate) fn at(location: Location, fault: LoadFault) -> LoadError {
        LoadError { file: None, location: Some(location), fault: Box::new(fault) }
    }

    /// How to fix it, if there is advice.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.fault.as_ref() {
            LoadFault::Io(e) if e.kind() == io::ErrorKind::NotFound => "check the path",
            LoadFault::Io(_) => "pass a file written by an ONNX exporter, that may be read",
            LoadFault::Empty | LoadFault::Truncated { .. } => "the export or the download did not finish; fetch the file again",
            LoadFault::NotOnnx(_) => "pass a file written by an ONNX exporter",
            LoadFault::TooLarge(_) => "save it with external data (`save_as_external_data=True` in the `onnx` package)",
            LoadFault::NoGraph => "the file may be another kind of protobuf; export it again",
            LoadFault::Undefined { .. } => "the exporter may have dropped an initializer; check the model with `onnx.checker`",
            LoadFault::Duplicate { .. } => "every value needs one definition; check the model with `onnx.checker`",
            LoadFault::Cycle(_) => "a node reads, perhaps through others, what it computes itself; export it again",
            LoadFault::ExternalData { .. } => "copy the data file beside the model, complete",
            LoadFault::ExternalPlace { .. } => "data files must lie in the model's folder or below it",
            LoadFault::NoFolder { .. } => "give the model by its path, not as bytes",
            LoadFault::DType { .. } => "the file is damaged, or written for a newer ONNX than this program knows",
            LoadFault::TensorBytes { .. } | LoadFault::Shape { .. } => "the weights are damaged; export the model again",
        })
    }
}

impl From<LoadFault> for LoadError {
    fn from(fault: LoadFault) -> LoadError {
        LoadError::new(fault)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph `{}`", self.graph)?;
        match &self.node {
            Some((name, at, of)) => write!(f, ", node `{name}`, {at} of {of}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        let file = self.file.as_ref().map(|p| p.display().to_string());
        let location = self.location.as_ref().map(ToString::to_string);
        match (file, location) {
            (Some(file), Some(location)) => write!(f, " ({file}: {location})")?,
            (Some(one), None) | (None, Some(one)) => write!(f, " ({one})")?,
            (None, None) => {}
        }
        match self.hint() {
            Some(hint) => write!(f, "; hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.fault.as_ref() {
            LoadFault::Io(e) => Some(e),
            _ => None,
        }
    }
}

/// Why a graph could not be written as an ONNX model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An operator cannot be expressed at the model's opset version. The rewrite that made it
    /// should not have been applied.
    #[error("`{value}`: {source}")]
    NoSpelling {
        /// A result of the node.
        value: String,
        /// The operator, and why.
        source: NoSpelling,
    },
    /// Two different values must carry one name.
    #[error("the name `{0}` is needed for two different values")]
    NameConflict(String),
    /// The nodes cannot be ordered.
    #[error("the rewritten graph has a cycle through `{0}`")]
    Cycle(String),
    /// Too large for one protobuf message.
    #[error("the model needs {0} bytes; one protobuf message ends at 2 GiB, so save it with external data")]
    TooLarge(u64),
    /// The file system refused. Nothing was written at the target path.
    #[error("cannot write `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}
