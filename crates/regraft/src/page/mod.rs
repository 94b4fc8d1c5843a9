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
use serde_json::json;

use crate::error::Failure;
use crate::optimize::{Observer, Phase};
use crate::report::Report;
use crate::runtime;
use changes::Changed;
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

/// What each node of the result takes, as data for model-explorer, which shows it beside the model:
/// times in microseconds by the name of the node.
///
/// # Errors
///
/// A report that cannot be read, no result, or one that the runtime does not run.
pub fn node_data(request: &PageRequest, observer: &mut dyn Observer) -> Result<String, Failure> {
    let report = Report::read(&request.report)?;
    let named = report.output.as_deref().map(|named| found(&request.report, named));
    let Some(model) = request.output.clone().or(named) else {
        return Err(Failure::new(format!("{} tells of no result", request.report.display())).hint("only what was written can be profiled"));
    };
    observer.phase(Phase::Measure, "where the time goes");
    let runtime = runtime::load_with(request.runtime_library.as_deref(), None)?;
    let times = times::of_nodes(&*runtime, &model, &report)?;
    let value = |ns: f64| json!({ "value": (ns / 10.0).round() / 100.0 });
    let results: serde_json::Map<String, serde_json::Value> = times.into_iter().map(|(name, ns)| (name, value(ns))).collect();
    let gradient = json!([{ "stop": 0, "bgColor": "#ffffff" }, { "stop": 1, "bgColor": "#f0a060" }]);
    let data = json!({ "name": "time, µs", "results": results, "gradient": gradient });
    Ok(format!("{data:#}\n"))
}

/// What there is to show.
fn shown(request: &PageRequest, observer: &mut dyn Observer) -> Result<Page, Failure> {
    let report = Report::read(&request.report)?;
    let beside = |named: &str| found(&request.report, named);
    let input = request.input.clone().unwrap_or_else(|| beside(&report.input));
    let output = request.output.clone().or_else(|| report.output.as_deref().map(beside));
    observer.phase(Phase::Load, &input.display().to_string());
    let changed = changed(&input, &report, &beside);
    let times = match (&output, request.profile) {
        (_, false) => Err("no profile was asked for".into()),
        (None, _) => Err("nothing was written".into()),
        (Some(output), true) => profiled((&input, output), request, &report, observer).map_err(|failure| failure.cause),
    };
    Ok(Page { report, changed, times })
}

/// A file that a report names: relative names are those of the folder that the command ran in, or of the
/// report's own.
fn found(report: &Path, named: &str) -> PathBuf {
    let path = PathBuf::from(named);
    let folder = report.parent().unwrap_or(Path::new(""));
    let beside = path.file_name().map(|name| folder.join(name));
    if path.exists() { path } else { beside.filter(|beside| beside.exists()).unwrap_or(path) }
}

/// The certificate and the changes that it tells of, or why they are not known.
fn changed(input: &Path, report: &Report, beside: &dyn Fn(&str) -> PathBuf) -> Result<Changed, String> {
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
    let changes = changes::of(model.graph(), &certificate, report)?;
    Ok(Changed { changes, file: path, bytes: bytes.len() as u64, certificate })
}

/// Where the time of both models goes.
fn profiled(models: (&Path, &Path), request: &PageRequest, report: &Report, observer: &mut dyn Observer) -> Result<Times, Failure> {
    observer.phase(Phase::Measure, "where the time goes");
    let runtime = runtime::load_with(request.runtime_library.as_deref(), None)?;
    times::of(&*runtime, models, report)
}
