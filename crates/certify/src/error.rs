//! Errors.

use std::path::PathBuf;

use regraft_onnx::{LoadError, OpsetError};

/// Why nothing can be said about a certificate; whether it holds is a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertifyError {
    /// A file cannot be read: the user's place, or the file system's fault.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// One of the models cannot be understood.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The input cannot be brought to the opset that the certificate names.
    #[error(transparent)]
    Opset(#[from] OpsetError),
    /// The certificate has a layout of another version of the program.
    #[error("the certificate has layout {found}, this version reads {}", crate::format::VERSION)]
    Version {
        /// The layout that it names.
        found: String,
    },
}

/// Why a text is no certificate, or not the one that was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}
