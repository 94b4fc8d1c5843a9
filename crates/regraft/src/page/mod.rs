//! `page`: what was done to a model, as one HTML file that needs no other and no network.
//!
//! | part | from |
//! |---|---|
//! | verdict, rules, trials, check, what was not done | the report |
//! | changes, each drawn before and after | the certificate, replayed on the input |
//! | where the time goes | the runtime's own profile of both models |
//!
//! Tables are plain HTML. Drawings are laid out in the browser by dagre, when they are looked at.

mod changes;
mod html;
mod plain;
mod times;

use std::path::{Path, PathBuf};

use regraft_certify::Certificate;
use regraft_onnx::Model;

use crate::error::Failure;
use crate::optimize::{Observer, Phase};
use crate::report::Report;
use crate::runtime;
use changes::Change;
use html::Page;
pub use html::escaped;
use times::Times;

/// What to show.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The report.
    pub report: PathBuf,
    /// The model that was optimized; by default, the one that the report names.
    pub input: Option<PathBuf>,
    /// What was written; by default, the one that the report names.
    pub output: Option<PathBuf>,
    /// Whether to profile both models.
    pub profile: bool,
    /// Path of the runtime library.
    pub runtime_library: Option<PathBuf>,
}

/// A report as HTML. What cannot be shown, for want of a model or a certificate, is said there.
///
/// # Errors
///
/// A report that cannot be read.
pub fn page(request: &PageRequest, observer: &mut dyn Observer) -> Result<String, Failure> {
    Ok(shown(request, observer)?.to_html())
}

/// The same as text, for a terminal.
///
/// # Errors
///
/// A report that cannot be read.
pub fn text(request: &PageRequest, observer: &mut dyn Observer) -> Result<String, Failure> {
    Ok(shown(request, observer)?.to_text())
}

/// What there is to show.
fn shown(request: &PageRequest, observer: &mut dyn Observer) -> Result<Page, Failure> {
    let report = Report::read(&request.report)?;
    let beside = |named: &str| found(&request.report, named);
    let input = request.input.clone().unwrap_or_else(|| beside(&report.input));
    let output = request.output.clone().or_else(|| report.output.as_deref().map(beside));
    observer.phase(Phase::Load, &input.display().to_string());
    let changes = changed(&input, &report, &beside);
    let times = match (&output, request.profile) {
        (_, false) => Err("no profile was asked for".into()),
        (None, _) => Err("nothing was written".into()),
        (Some(output), true) => profiled((&input, output), request, &report, observer).map_err(|failure| failure.cause),
    };
    Ok(Page { report, changes, times })
}

/// A file that a report names: relative names are those of the folder that the command ran in, or of the
/// report's own.
fn found(report: &Path, named: &str) -> PathBuf {
    let path = PathBuf::from(named);
    let folder = report.parent().unwrap_or(Path::new(""));
    let beside = path.file_name().map(|name| folder.join(name));
    if path.exists() { path } else { beside.filter(|beside| beside.exists()).unwrap_or(path) }
}

/// The changes that the certificate tells of, or why they are not known.
fn changed(input: &Path, report: &Report, beside: &dyn Fn(&str) -> PathBuf) -> Result<Vec<Change>, String> {
    let Some(named) = &report.certificate else { return Err("no certificate was written".into()) };
    let path = beside(named);
    let bytes = std::fs::read(&path).map_err(|e| format!("the certificate {} cannot be read: {e}", path.display()))?;
    let certificate = Certificate::parse(&bytes).map_err(|e| e.to_string())?.map_err(|broken| broken.to_string())?;
    let model = Model::read(input).map_err(|e| e.to_string())?;
    let model = if certificate.fixed.is_empty() { model } else { model.at_sizes(&certificate.fixed).map_err(|e| e.to_string())? };
    let model = match certificate.opset {
        Some(version) => model.at_opset(version).map_err(|e| e.to_string())?,
        None => model,
    };
    changes::of(model.graph(), &certificate, report)
}

/// Where the time of both models goes.
fn profiled(models: (&Path, &Path), request: &PageRequest, report: &Report, observer: &mut dyn Observer) -> Result<Times, Failure> {
    observer.phase(Phase::Measure, "where the time goes");
    let runtime = runtime::load_with(request.runtime_library.as_deref(), None)?;
    times::of(&*runtime, models, report)
}
