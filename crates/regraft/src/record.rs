//! `cost record`: what a later search on another machine wants to know of this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use regraft_cost::{Recording, Target};
use regraft_ir::Kernel;
use regraft_runtime::{MachineKey, Runtime, Store};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::error::Failure;
use crate::optimize::{Observer, rehearse};
use crate::report::SCHEMA;
use crate::runtime::RuntimeChoice;
use crate::units::ShapeArg;

/// What to record, and how long.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// Model files.
    pub models: Vec<PathBuf>,
    /// Sizes of inputs, if there is one model.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols: every combination is recorded.
    pub binds: Vec<(String, Vec<i64>)>,
    /// Wall time per model.
    pub budget: Duration,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Seed of made-up inputs.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
}

/// What was recorded.
#[derive(Clone, Debug, Serialize)]
pub struct RecordReport {
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
    /// Models, at each of their sizes.
    pub models: Vec<RecordedRow>,
    /// Prices of operators.
    pub prices: usize,
    /// The file, once it is written.
    pub file: String,
}

/// One model at one of its sizes.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedRow {
    /// The model.
    pub model: String,
    /// Sizes of its inputs.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Median of whole runs, ns.
    pub run_ns: f64,
    /// Distance between the quartiles of whole runs, ns.
    pub spread_ns: f64,
    /// Whole runs.
    pub runs: usize,
    /// Rewritten models that were profiled for the prices of their operators.
    pub variants: usize,
    /// Standard deviation of what the prices say of these, against what was measured, relative.
    pub error: f64,
}

/// A recording, and what the user should know of it.
#[derive(Debug)]
pub struct Recorded {
    /// The recording.
    pub recording: Recording,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Measures models, and their operators and those that one rule after the other would make of them,
/// in a store of their own. `None` if it was interrupted: half a recording is none.
///
/// # Errors
///
/// A model that cannot be read or run.
pub fn record(request: &RecordRequest, observer: &mut dyn Observer) -> Result<Option<Recorded>, Failure> {
    let runtime = request.runtime.load()?;
    record_on(&runtime, request, observer)
}

/// The same on a runtime chosen by the caller.
pub(crate) fn record_on(
    runtime: &Arc<dyn Runtime>,
    request: &RecordRequest,
    observer: &mut dyn Observer,
) -> Result<Option<Recorded>, Failure> {
    if request.models.len() > 1 && !(request.shapes.is_empty() && request.binds.is_empty()) {
        let failure = Failure::new("sizes were given for more than one model");
        return Err(failure.hint("record each model alone, or leave --shape and --bind out"));
    }
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let folder = tempfile::tempdir().map_err(Failure::new)?;
    let store = folder.path().join("costs.sqlite");
    let (mut models, mut warnings) = (Vec::new(), Vec::new());
    let mut kernels: FxHashMap<String, Kernel> = FxHashMap::default();
    for model in &request.models {
        let (recorded, more) = rehearse(request, runtime, (model, &store, threads), &mut kernels, observer)?;
        models.extend(recorded);
        warnings.extend(more);
        if observer.interrupted() {
            return Ok(None);
        }
    }
    let target = Target::here(&**runtime, threads as u32);
    let measurements = Store::open_frozen(&store)?.list(&target.filter())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX));
    let about = (crate::tool(), MachineKey::detect().cpu);
    let recording = Recording::new(about, target, now, models, &measurements, &kernels);
    Ok(Some(Recorded { recording, warnings }))
}

/// Writes a recording: all of it, or nothing.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(recording: &Recording, file: &Path) -> Result<RecordReport, Failure> {
    crate::file::write_atomic(file, recording.to_text().as_bytes())?;
    let row = |model: &regraft_cost::RecordedModel| RecordedRow {
        model: model.name.clone(),
        shapes: model.shapes.clone(),
        run_ns: model.run_ns,
        spread_ns: model.spread_ns,
        runs: model.runs,
        variants: model.variants,
        error: model.error,
    };
    Ok(RecordReport {
        schema: SCHEMA,
        tool: recording.tool.clone(),
        runtime: recording.target.runtime.clone(),
        machine: recording.device.clone(),
        threads: recording.target.threads as usize,
        models: recording.models.iter().map(row).collect(),
        prices: recording.prices.len(),
        file: file.display().to_string(),
    })
}
