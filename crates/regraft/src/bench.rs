//! `bench`: models timed against each other, interleaved, as deployed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_onnx::{Model, Signature};
use regraft_runtime::{Fallback, Fill, MachineKey, ModelSource, Runtime};
use serde::Serialize;

use crate::data::Data;
use crate::error::Failure;
use crate::optimize::{Contender, Effort, Observer, Phase, time_end_to_end};
use crate::refused::Refused;
use crate::report::{SCHEMA, Speedup};
use crate::runtime::RuntimeChoice;
use crate::sizes::Sizes;
use crate::units::ShapeArg;

/// Sittings with newly opened sessions: where a session lands in memory shifts its times by up to
/// half a percent.
const SITTINGS: usize = 8;
/// Minimum and maximum rounds per sitting, unless the request says otherwise.
const ROUNDS: (usize, usize) = (3, 200);

/// What to time, and how long.
#[derive(Clone, Debug)]
pub struct BenchRequest {
    /// Models; the first is the baseline.
    pub models: Vec<PathBuf>,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// The user's inputs: a folder, or `input:file`.
    pub data: Vec<String>,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Rounds in all; by default as many as the budget allows.
    pub runs: Option<usize>,
    /// Wall time.
    pub budget: Duration,
    /// Seed of made-up inputs and of the interval.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
}

impl BenchRequest {
    /// A request with the defaults of the command line.
    pub fn new(models: Vec<PathBuf>) -> BenchRequest {
        BenchRequest {
            models,
            shapes: Vec::new(),
            binds: Vec::new(),
            data: Vec::new(),
            threads: None,
            runs: None,
            budget: Duration::from_secs(10),
            seed: 0,
            runtime: RuntimeChoice::default(),
        }
    }
}

/// Times of several models.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `regraft` and its version.
    pub tool: String,
    /// Runtime and its version, with its own optimizer fully on unless a model says otherwise.
    pub runtime: String,
    /// Processor.
    pub machine: String,
    /// Threads per operator.
    pub threads: usize,
    /// What the clock reads: CPU time of the thread, or elapsed time.
    pub clock: String,
    /// Sizes of the inputs.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// True if sizes were guessed.
    pub guessed_shapes: bool,
    /// One row per model, in the order given.
    pub models: Vec<Timed>,
    /// Seconds taken.
    pub seconds: f64,
}

/// Time of one model.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// The model.
    pub model: String,
    /// Median time of one run, ns.
    pub median_ns: f64,
    /// How many times faster than the first model.
    pub speedup: Speedup,
    /// How it was run, if the runtime refuses it with its own optimizer fully on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// Times the models.
pub fn bench(request: &BenchRequest, observer: &mut dyn Observer) -> Result<BenchReport, Failure> {
    let start = Instant::now();
    let mut models = Vec::new();
    for path in &request.models {
        observer.phase(Phase::Load, &path.display().to_string());
        models.push(Model::read(path)?);
    }
    let Some(first) = models.first() else { return Err(Failure::new("there is no model to time").hint("name one or more files")) };
    let wanted = Signature::of(first.proto()).inputs;
    for (path, model) in request.models.iter().zip(&models).skip(1) {
        let given = Signature::of(model.proto()).inputs;
        if wanted.iter().any(|w| !given.iter().any(|g| g.name == w.name && g.kind == w.kind)) || given.len() != wanted.len() {
            let failure = Failure::new(format!("{} does not take the inputs of {}", path.display(), request.models[0].display()));
            return Err(failure.hint("models are timed against each other on the same inputs"));
        }
    }
    let runtime = Fallback::new(request.runtime.load()?, request.models.clone());
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let sources: Vec<ModelSource<'_>> = request.models.iter().map(ModelSource::path).collect();
    let data = Data::read(&request.data, first)?;
    let shapes = data.sizes(first, &request.shapes, &request.binds);
    let sizes = Sizes::resolve(first, sources[0], &runtime, &shapes, &request.binds)?;
    drop(models);
    let feeds = data.fitting(&sizes)?.into_iter().next().map_or_else(|| sizes.feeds(Fill::Normal, request.seed), |(_, feeds)| Ok(feeds))?;

    observer.phase(Phase::Choose, &format!("{} models, interleaved", sources.len()));
    let per_sitting = request.runs.map(|runs| runs.div_ceil(SITTINGS.min(runs).max(1)));
    let effort = Effort {
        sittings: request.runs.zip(per_sitting).map_or(SITTINGS, |(runs, rounds)| runs.div_ceil(rounds.max(1))),
        rounds: per_sitting.map_or(ROUNDS, |rounds| (rounds, rounds)),
        // With a given number of runs, there is no time limit.
        until: Instant::now() + if request.runs.is_some() { Duration::from_secs(24 * 3600) } else { request.budget },
    };
    let observed: &dyn Observer = observer;
    let result = time_end_to_end(&Contender::all(&runtime, sources), &feeds, threads, effort, request.seed, &|| observed.interrupted())?;
    let rows = request.models.iter().zip(result.medians.iter().zip(&result.ratios));
    Ok(BenchReport {
        schema: SCHEMA,
        tool: crate::tool(),
        runtime: format!("{} {}", runtime.name(), runtime.version()),
        machine: MachineKey::detect().cpu,
        threads,
        clock: runtime.clock(threads).name().into(),
        shapes: sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect(),
        guessed_shapes: sizes.guessed,
        models: rows
            .map(|(path, (median_ns, ratio))| Timed {
                model: path.display().to_string(),
                median_ns: *median_ns,
                speedup: ratio.map_or(Speedup::NONE, Speedup::from),
                refused: runtime.refusal(path).as_ref().map(Refused::from),
            })
            .collect(),
        seconds: start.elapsed().as_secs_f64(),
    })
}
