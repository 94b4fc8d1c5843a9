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

impl Artifact {
    /// A model that the runtime can open.
    pub fn runnable(written: Written) -> Result<Artifact, Failure> {
        if written.size() <= IN_MEMORY {
            let form = Form::Bytes(written.to_bytes()?.into());
            return Ok(Artifact { written, form });
        }
        let folder = TempDir::new().map_err(|e| {
            Failure::new(format!("cannot make a temporary folder: {e}")).hint("is the disk full? TMPDIR names another place")
        })?;
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

    /// What the runtime opens, if the whole model can be run.
    pub fn source(&self) -> Option<ModelSource<'_>> {
        match &self.form {
            Form::Bytes(bytes) => Some(ModelSource::bytes(bytes)),
            Form::File(path, _) => Some(ModelSource::path(path)),
            Form::Unserialized => None,
        }
    }
}
