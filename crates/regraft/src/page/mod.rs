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

use regraft_certify::{Certificate, ModelDigest};
use regraft_onnx::Model;
use serde_json::json;

use crate::error::Failure;
use crate::optimize::{Observer, Phase};
use crate::report::Report;
use crate::runtime::RuntimeChoice;
use changes::{Change, Changed};
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
    /// Library of the runtime that the report tells of.
    pub library: Option<PathBuf>,
}

/// What was made of a report.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its text.
    pub text: String,
    /// What it cannot tell, and why.
    pub missing: Vec<String>,
}

/// A report as HTML. What cannot be shown, for want of a model or a certificate, is said there.
///
/// # Errors
///
/// A report that cannot be read, or a model that is another than the one that it is about.
pub fn page(request: &PageRequest, observer: &mut dyn Observer) -> Result<Made, Failure> {
    let page = shown(request, observer)?;
    Ok(Made { text: page.to_html(), missing: page.missing() })
}

/// The same as text, for a terminal.
///
/// # Errors
///
/// As those of [`page`].
pub fn text(request: &PageRequest, observer: &mut dyn Observer) -> Result<Made, Failure> {
    let page = shown(request, observer)?;
    Ok(Made { text: page.to_text(), missing: page.missing() })
}

/// What each node of the result takes, as data for model-explorer, which shows it beside the model:
/// times in microseconds by the name of the node.
///
/// # Errors
///
/// A report that cannot be read, no result, or one that the runtime does not run.
pub fn node_data(request: &PageRequest, observer: &mut dyn Observer) -> Result<Made, Failure> {
    let report = Report::read(&request.report)?;
    let certificate = certificate(&request.report, &report).ok();
    let Some(model) = output(request, &report, certificate.as_ref())?.ok() else {
        return Err(Failure::new(format!("{} tells of no result", request.report.display())).hint("only what was written can be profiled"));
    };
    observer.phase(Phase::Measure, "where the time goes");
    let runtime = runtime_of(&report, request.library.clone())?.load()?;
    let times = times::of_nodes(&*runtime, &model, &report)?;
    let value = |ns: f64| json!({ "value": (ns / 10.0).round() / 100.0 });
    let results: serde_json::Map<String, serde_json::Value> = times.into_iter().map(|(name, ns)| (name, value(ns))).collect();
    let gradient = json!([{ "stop": 0, "bgColor": "#ffffff" }, { "stop": 1, "bgColor": "#f0a060" }]);
    let data = json!({ "name": "time, µs", "results": results, "gradient": gradient });
    Ok(Made { text: format!("{data:#}\n"), missing: Vec::new() })
}

/// What there is to show.
fn shown(request: &PageRequest, observer: &mut dyn Observer) -> Result<Page, Failure> {
    let report = Report::read(&request.report)?;
    let certificate = certificate(&request.report, &report);
    let known = certificate.as_ref().ok();
    let named = Named { given: request.input.as_deref(), named: &report.input, role: "input" };
    let input = named.file(&request.report, known.map(|known| &known.certificate.input))?;
    let output = output(request, &report, known)?;
    observer.phase(Phase::Load, &report.input);
    let times = match (&input, &output, request.profile) {
        (_, _, false) => Err("no profile was asked for".into()),
        (Err(why), ..) | (_, Err(why), _) => Err(why.clone()),
        (Ok(input), Ok(output), true) => profiled((input, output), request, &report, observer).map_err(|failure| failure.cause),
    };
    let changed = certificate.and_then(|certificate| {
        let changes = changes(&input?, &report, &certificate.certificate)?;
        Ok(Changed { changes, ..certificate })
    });
    Ok(Page { report, changed, times })
}

/// A model that a report is about.
struct Named<'a> {
    /// Where it is, if somebody says so.
    given: Option<&'a Path>,
    /// Where the report says that it is.
    named: &'a str,
    role: &'static str,
}

impl Named<'_> {
    /// Its file: where it is said to be, or beside the report; the one with this digest, if that is
    /// known. Otherwise, why there is none.
    ///
    /// # Errors
    ///
    /// What was given is another model.
    fn file(&self, report: &Path, digest: Option<&ModelDigest>) -> Result<Result<PathBuf, String>, Failure> {
        let is_it = |path: &Path| path.is_file() && digest.is_none_or(|digest| ModelDigest::of(path).is_ok_and(|found| found == *digest));
        if let Some(given) = self.given {
            if given.is_file() && !is_it(given) {
                let failure = Failure::new(format!("{} is not the {} that {} is about", given.display(), self.role, report.display()));
                return Err(failure.hint("its certificate names the files by their digests"));
            }
            return Ok(Ok(given.to_path_buf()));
        }
        let named = PathBuf::from(self.named);
        let beside = named.file_name().map(|name| report.with_file_name(name));
        // Without a digest, a file of that name beside the report may be what was written.
        let places = std::iter::once(named.clone()).chain(beside.filter(|_| digest.is_some() || self.role == "output"));
        let found = places.into_iter().find(|path| is_it(path));
        Ok(found.ok_or_else(|| format!("the {} {} is not here, or is another model now", self.role, named.display())))
    }
}

/// The file of what was written.
fn output(request: &PageRequest, report: &Report, known: Option<&Changed>) -> Result<Result<PathBuf, String>, Failure> {
    match (&request.output, &report.output) {
        (None, None) => Ok(Err("nothing was written".into())),
        (given, named) => {
            let named = Named { given: given.as_deref(), named: named.as_deref().unwrap_or_default(), role: "output" };
            named.file(&request.report, known.map(|known| &known.certificate.output))
        }
    }
}

/// The certificate of a report, without its changes, or why there is none.
fn certificate(path: &Path, report: &Report) -> Result<Changed, String> {
    let Some(named) = &report.certificate else { return Err("no certificate was written".into()) };
    let named = PathBuf::from(named);
    let beside = named.file_name().map(|name| path.with_file_name(name)).filter(|beside| !named.exists() && beside.exists());
    let file = beside.unwrap_or(named);
    let bytes = std::fs::read(&file).map_err(|e| format!("the certificate {} cannot be read: {e}", file.display()))?;
    let certificate = Certificate::parse(&bytes).map_err(|e| e.to_string())?.map_err(|broken| broken.to_string())?;
    Ok(Changed { changes: Vec::new(), file, bytes: bytes.len() as u64, certificate })
}

/// The changes that a certificate tells of, or why they are not known.
fn changes(input: &Path, report: &Report, certificate: &Certificate) -> Result<Vec<Change>, String> {
    let model = Model::read(input).map_err(|e| e.to_string())?;
    let model = if certificate.fixed.is_empty() { model } else { model.at_sizes(&certificate.fixed).map_err(|e| e.to_string())? };
    let model = match certificate.opset {
        Some(version) => model.at_opset(version).map_err(|e| e.to_string())?,
        None => model,
    };
    changes::of(model.graph(), certificate, report)
}

/// The runtime that a report tells of.
fn runtime_of(report: &Report, library: Option<PathBuf>) -> Result<RuntimeChoice, Failure> {
    let name = report.runtime.split(' ').next().unwrap_or_default();
    Ok(RuntimeChoice { backend: name.parse().map_err(Failure::new)?, library })
}

/// Where the time of both models goes.
fn profiled(models: (&Path, &Path), request: &PageRequest, report: &Report, observer: &mut dyn Observer) -> Result<Times, Failure> {
    observer.phase(Phase::Measure, "where the time goes");
    let runtime = runtime_of(report, request.library.clone())?.load()?;
    times::of(&*runtime, models, report)
}
