//! `cost calibrate`: measures models, keeps their prices, and says how well prices predict.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regraft_cost::{Calibration, CostModel, Gain, Measured, Target, Total};
use regraft_onnx::Model;
use regraft_rules::Numeric;
use regraft_runtime::{Fill, MachineKey, ModelSource, Runtime, Store, default_store_path};
use serde::Serialize;

use crate::error::Failure;
use crate::optimize::{self, Contender, Effort, Observer, Request, clean};
use crate::report::SCHEMA;
use crate::runtime::RuntimeChoice;
use crate::sizes::Sizes;

/// What is calibrated by default: one network of every kind in the zoo.
pub const DEFAULT_MODELS: [&str; 12] = [
    "squeezenet-1.1",
    "resnet-18",
    "resnet-50",
    "resnext-50",
    "inception-v3",
    "mobilenet-v2",
    "mobilenet-v3-large",
    "vgg-19",
    "alexnet",
    "bert-base",
    "vit-base",
    "gpt2-block",
];
/// Time per model for the whole runs that predictions are compared with.
const MEASURING: Duration = Duration::from_secs(3);

/// What to calibrate on.
#[derive(Clone, Debug)]
pub struct CalibrateRequest {
    /// Model files.
    pub models: Vec<PathBuf>,
    /// Also optimize each, and compare predicted with measured gains.
    pub gains: bool,
    /// Wall time per model.
    pub budget: Duration,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
    /// Path of the measurement store.
    pub cost_store: Option<PathBuf>,
}

/// Predictions and measurements of several models.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `regraft` and its version.
    pub tool: String,
    /// Runtime and its version.
    pub runtime: String,
    /// Processor.
    pub machine: String,
    /// Threads per operator.
    pub threads: usize,
    /// Predicted and measured times and gains.
    #[serde(flatten)]
    pub calibration: Calibration,
    /// Median of the absolute errors of totals (0.1: 10 %).
    pub median_error: Option<f64>,
    /// The measurement store.
    pub store: String,
    /// Seconds taken.
    pub seconds: f64,
}

/// Measures the models one after the other. Results stay in the store. An interruption takes effect
/// after the current model.
pub fn calibrate(request: &CalibrateRequest, observer: &mut dyn Observer) -> Result<CalibrationReport, Failure> {
    let start = Instant::now();
    let runtime = request.runtime.load()?;
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let store = match &request.cost_store {
        Some(path) => path.clone(),
        None => default_store_path()?,
    };
    let mut calibration = Calibration::default();
    for path in &request.models {
        if observer.interrupted() {
            break;
        }
        one(request, path, &store, (&*runtime, threads), &mut calibration, observer)?;
    }
    Ok(CalibrationReport {
        schema: SCHEMA,
        tool: crate::tool(),
        runtime: format!("{} {}", runtime.name(), runtime.version()),
        machine: MachineKey::detect().cpu,
        threads,
        median_error: calibration.median_error(),
        calibration,
        store: store.display().to_string(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn one(
    request: &CalibrateRequest,
    path: &Path,
    store: &Path,
    (runtime, threads): (&dyn Runtime, usize),
    calibration: &mut Calibration,
    observer: &mut dyn Observer,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::new)?;
    let name = path.file_stem().map_or_else(|| path.display().to_string(), |s| s.to_string_lossy().into_owned());
    let mut run = Request::new(path, folder.path().join("out.onnx"));
    (run.threads, run.seed, run.budget) = (Some(threads), request.seed, request.budget);
    (run.runtime, run.cost_store) = (request.runtime.clone(), Some(store.to_path_buf()));
    if !request.gains {
        // Without rules only the input is measured.
        run.rules.deny = Numeric::NAMES.iter().map(|(name, _)| (*name).to_string()).collect();
    }
    let done = optimize::optimize(&run, observer)?;

    let model = Model::read(path)?;
    let source = ModelSource::path(path);
    let sizes = Sizes::resolve(&model, source, runtime, &[], &[])?;
    let prices = Measured::load(sizes.symbols.clone(), &Store::open_frozen(store)?, &Target::here(runtime, threads as u32))?;
    let predicted = prices.total(&clean(model.graph()).0) as f64;
    let effort = Effort { sittings: 3, rounds: (5, 40), until: Instant::now() + MEASURING };
    let feeds = sizes.feeds(Fill::Normal, request.seed)?;
    let times = optimize::time_end_to_end(&[Contender { runtime, model: source }], &feeds, threads, effort, request.seed, &|| false)?;
    calibration.totals.push(Total { model: name.clone(), predicted, measured: times.medians[0] });
    if let Some(ratio) = done.predicted_speedup {
        let measured = done.speedup.median;
        calibration.gains.push(Gain { model: name, predicted_before: predicted, predicted_after: predicted / ratio, measured });
    }
    Ok(())
}
