//! Runs `check` on two models, as its command does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prost::Message;
use regraft::Requirement;
use regraft::certificate::Source;
use regraft::check::CheckRequest;
use regraft::optimize::Silent;
use regraft_equate::Effort;
use regraft_ir::Trust;
use regraft_onnx::proto::ModelProto;

use super::claim::{Claim, claim};

/// A folder for models under check.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// An empty one.
    pub fn new() -> Result<Desk> {
        Ok(Desk { folder: tempfile::tempdir().context("a temporary folder")? })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a model.
    pub fn put(&self, name: &str, model: &ModelProto) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, model.encode_to_vec()).context("a model cannot be written")?;
        Ok(path)
    }

    /// The claim about two models, from the models alone.
    pub fn ask(&self, a: &ModelProto, b: &ModelProto) -> Result<Claim> {
        let (a, b) = (self.put("a.onnx", a)?, self.put("b.onnx", b)?);
        check(CheckRequest { certificate: Source::Nowhere, ..CheckRequest::new(a, b) })
    }

    /// The claim about two models that rests on a certificate alone.
    pub fn ask_certificate(&self, a: &Path, b: &Path, certificate: &str) -> Result<Claim> {
        let file = self.path("forged.certificate");
        std::fs::write(&file, certificate).context("a certificate cannot be written")?;
        let effort = Effort { failures: 0, ..Effort::default() };
        check(CheckRequest { certificate: Source::File(file), effort, ..CheckRequest::new(a, b) })
    }
}

/// The claim. Nothing is claimed of a model that cannot be read.
fn check(request: CheckRequest) -> Result<Claim> {
    let request = CheckRequest { proofs_only: true, require: Some(Requirement { trust: Trust::Proved, exact: false }), ..request };
    Ok(regraft::check(&request, &mut Silent).map_or(Claim::Refused, |report| claim(&report)))
}
