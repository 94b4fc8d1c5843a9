//! Where a model comes from.

use std::fmt;
use std::path::{Path, PathBuf};

/// A model to open: a file, or bytes in memory.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ModelSource<'a> {
    /// A model file. External data is found relative to its directory.
    Path(&'a Path),
    /// A serialized model, with the base directory of its external data, if it has any.
    Bytes {
        /// The serialized `ModelProto`.
        bytes: &'a [u8],
        /// Directory of the external data files.
        base: Option<&'a Path>,
    },
}

impl<'a> ModelSource<'a> {
    /// A model file.
    pub fn path<P: AsRef<Path> + ?Sized>(path: &'a P) -> Self {
        Self::Path(path.as_ref())
    }

    /// A serialized model without external data.
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self::Bytes { bytes, base: None }
    }

    /// A serialized model whose external data is in `base`.
    pub fn bytes_in(bytes: &'a [u8], base: &'a Path) -> Self {
        Self::Bytes { bytes, base: Some(base) }
    }

    /// The file, or a description of the bytes, for messages.
    pub fn place(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.to_path_buf(),
            Self::Bytes { .. } => PathBuf::from(self.to_string()),
        }
    }
}

impl fmt::Display for ModelSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Bytes { bytes, .. } => write!(f, "<model in memory, {} bytes>", bytes.len()),
        }
    }
}

impl fmt::Debug for ModelSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelSource({self})")
    }
}
