//! A written model on its way to the runtime.

use std::path::PathBuf;

use bytes::Bytes;
use regraft_onnx::{Model, Written};
use regraft_runtime::ModelSource;
use tempfile::TempDir;

use crate::error::Failure;

/// Models above this are handed over as files: one protobuf message ends at 2 GiB.
const IN_MEMORY: u64 = 1_800_000_000;

/// A complete model, in memory or in a temporary folder.
#[derive(Debug)]
pub enum Artifact {
    /// Serialized.
    Bytes(Bytes),
    /// A file with its data beside it, removed when dropped.
    File(PathBuf, #[expect(dead_code, reason = "keeps the folder alive")] TempDir),
}

impl Artifact {
    /// The form that fits the model's size.
    pub fn new(written: &Written) -> Result<Artifact, Failure> {
        if written.size() <= IN_MEMORY {
            return written.to_bytes().map(|bytes| Artifact::Bytes(bytes.into())).map_err(Failure::from);
        }
        let folder = TempDir::new().map_err(|e| {
            Failure::new(format!("cannot make a temporary folder: {e}")).hint("is the disk full? TMPDIR names another place")
        })?;
        let path = folder.path().join("model.onnx");
        written.save(&path, true)?;
        Ok(Artifact::File(path, folder))
    }

    /// The model, read back.
    pub fn read(&self) -> Result<Model, Failure> {
        match self {
            Artifact::Bytes(bytes) => Model::from_bytes(bytes.clone(), None),
            Artifact::File(path, _) => Model::read(path),
        }
        .map_err(Failure::from)
    }

    /// What the runtime opens.
    pub fn source(&self) -> ModelSource<'_> {
        match self {
            Artifact::Bytes(bytes) => ModelSource::bytes(bytes),
            Artifact::File(path, _) => ModelSource::path(path),
        }
    }
}
