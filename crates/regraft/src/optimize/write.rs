//! Fifth stage: writes the winner, or the input again, with a certificate beside it; and saves the
//! findings in the store.

use std::path::Path;

use regraft_certify::{Certificate, ModelDigest, Trail};
use regraft_onnx::{Model, WriteOptions};

use crate::certificate::{beside, discard};
use crate::diff::computing_nodes;
use crate::error::Failure;
use crate::optimize::certify::trails;
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::validate::Decision;

/// What was written.
pub struct Output {
    /// Bytes, external data included.
    pub bytes: u64,
    /// Nodes that compute.
    pub nodes: usize,
    /// The certificate, if one was written.
    pub certificate: Option<String>,
}

/// Writes the decision. The certificate of an earlier output is removed first.
pub fn write(run: &mut Run<'_>, decision: &Decision) -> Result<Output, Failure> {
    let (request, model) = (&run.job.request, &run.job.input.model);
    run.phase(Phase::Write, &request.output.display().to_string());
    let old = [Some(beside(&request.output)), request.certificate.clone()];
    old.iter().flatten().filter(|path| **path != request.output).try_for_each(|path| discard(path))?;
    let (bytes, nodes, trails) = match decision.winner() {
        Some(winner) => {
            let written = &winner.artifact.written;
            let saved = written.save(&request.output, model.has_external_data());
            saved.map_err(|e| Failure::new(e).hint("check the output path with -o"))?;
            let trails = trails(&winner.script.graphs(model.graph()), &run.job.rules.library);
            (written.size(), computing_nodes(&written.proto), trails)
        }
        None => {
            copy_input(model, &request.input, &request.output)?;
            // A certificate without steps covers a copy of the input: any tampering is reported as
            // well.
            (model.size(), computing_nodes(model.proto()), Some(Vec::new()))
        }
    };
    let certificate = certify(run, trails)?;
    let record = std::mem::take(&mut run.record);
    if !request.untimed && !run.evaluator.prices().is_recorded() {
        record.keep(run.job, run.evaluator.prices_mut(), &decision.comparison.candidates, decision.winner())?;
    }
    Ok(Output { bytes, nodes, certificate })
}

/// Writes the certificate, if requested.
fn certify(run: &mut Run<'_>, trails: Option<Vec<Trail>>) -> Result<Option<String>, Failure> {
    let (request, input) = (&run.job.request, &run.job.input);
    let (Some(path), Some(digest)) = (&request.certificate, &input.digest) else { return Ok(None) };
    let Some(trails) = trails else {
        run.journal.warnings.push("no certificate was written: a rewrite reads a value of unknown type".into());
        return Ok(None);
    };
    let output = ModelDigest::of(&request.output)?;
    let (fixed, opset) = (input.fixed.clone(), input.opset);
    let certificate = Certificate { tool: crate::tool(), input: digest.clone(), output, fixed, opset, trails };
    crate::file::write_atomic(path, certificate.to_text().as_bytes())?;
    Ok(Some(path.display().to_string()))
}

/// Writes the input again, under the output's name. External data goes along.
fn copy_input(model: &Model, input: &Path, output: &Path) -> Result<(), Failure> {
    if model.has_external_data() {
        let saved = model.save(model.graph(), output, &WriteOptions::default());
        return saved.map(|_| ()).map_err(|e| Failure::new(e).hint("check the output path with -o"));
    }
    crate::file::copy_atomic(input, output)
}
