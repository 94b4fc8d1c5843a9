//! A written model, in the form that the runtime opens.

use std::path::PathBuf;

use bytes::Bytes;
use regraft_onnx::{Model, Written};
use regraft_runtime::ModelSource;
use tempfile::TempDir;

use crate::error::Failure;

/// Larger models are passed as files: a protobuf message is limited to 2 GiB.
const IN_MEMORY: u64 = 1_800_000_000;

/// A written model.
#[derive(Debug)]
pub struct Artifact {
    /// The model, decoded, for saving.
    pub written: Written,
    form: Form,
}

/// What the runtime opens.
#[derive(Debug)]
enum Form {
    /// The serialized model.
    Bytes(Bytes),
    /// A file with its data beside it, removed when dropped.
    File(PathBuf, #[expect(dead_code, reason = "keeps the folder alive")] TempDir),
    /// Nothing: the whole model is never run.
    Unserialized,
}

/// What to do if a temporary file cannot be written.
const HINT: &str = "is the disk full? TMPDIR names another place";

fn folder() -> Result<TempDir, Failure> {
    TempDir::new().map_err(|e| Failure::new(format!("cannot make a temporary folder: {e}")).hint(HINT))
}

impl Artifact {
    /// A model that the runtime can open.
    pub fn runnable(written: Written) -> Result<Artifact, Failure> {
        if written.size() <= IN_MEMORY {
            let form = Form::Bytes(written.to_bytes()?.into());
            return Ok(Artifact { written, form });
        }
        let folder = folder()?;
        let path = folder.path().join("model.onnx");
        written.save(&path, true)?;
        Ok(Artifact { written, form: Form::File(path, folder) })
    }

    /// A model that is never run as a whole.
    pub fn unserialized(written: Written) -> Artifact {
        Artifact { written, form: Form::Unserialized }
    }

    /// The model, read back.
    pub fn read(&self) -> Result<Model, Failure> {
        match &self.form {
            Form::Bytes(bytes) => Model::from_bytes(bytes.clone(), None).map_err(Failure::from),
            Form::File(path, _) => Model::read(path).map_err(Failure::from),
            Form::Unserialized => Model::from_proto(self.written.proto.clone()).map_err(Failure::from),
        }
    }

    /// The model as a file of its own, as it would be saved: its folder is removed when dropped.
    pub fn saved(&self, external: bool) -> Result<(TempDir, PathBuf), Failure> {
        let folder = folder()?;
        let path = folder.path().join("model.onnx");
        match &self.form {
            Form::Bytes(bytes) if !external => std::fs::write(&path, bytes).map_err(|e| Failure::new(e).hint(HINT))?,
            _ => self.written.save(&path, external)?,
        }
        Ok((folder, path))
    }

    /// What the runtime opens, if the whole model can be run.
    pub fn source(&self) -> Option<ModelSource<'_>> {
        match &self.form {
            Form::Bytes(bytes) => Some(ModelSource::bytes(bytes)),
            Form::File(path, _) => Some(ModelSource::path(path)),
            Form::Unserialized => None,
        }
    }
}
