//! Errors.

use std::path::PathBuf;

use regraft_onnx::{FixedError, LoadError, OpsetError};

/// Why a certificate could not be judged; whether it holds is a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertifyError {
    /// A file cannot be read: a wrong path, or a file system error.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// One of the models cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The input cannot have the sizes that the certificate fixes.
    #[error(transparent)]
    Sizes(#[from] FixedError),
    /// The input cannot be converted to the opset the certificate names.
    #[error(transparent)]
    Opset(#[from] OpsetError),
    /// The certificate uses the layout of another version of the program.
    #[error("the certificate has layout {found}, this version reads {}", crate::format::VERSION)]
    Version {
        /// The layout it names.
        found: String,
    },
}

/// Why a text is not a certificate, or is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}
