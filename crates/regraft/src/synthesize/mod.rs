//! `synthesize`: layers of a model replaced by other linear operators, fitted to what the layers
//! compute. The result approximates the model; it is never equal to it.
//!
//! For each kind of layer, operators are looked for that run faster here ([`candidates`]); each is
//! fitted to each layer on what the layer reads when the model runs ([`teach`]); which layer gets
//! which operator is chosen for a series of errors, and every choice is measured as a whole.

mod candidates;
mod choose;
mod emit;
mod judging;
mod kernel;
mod layers;
mod measure;
mod pieces;
mod search;
mod teach;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_certify::FileDigest;
use regraft_cost::Ceiling;
use regraft_onnx::{Model, WriteOptions};
use regraft_runtime::{Feeds, Fill, MachineKey, ModelSource, Runtime};
use regraft_synth::fit::{Effort as Fitting, Fit};
use regraft_synth::{Explorer, Spec};
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::error::Failure;
use crate::optimize::{Observer, Phase, measure_ceiling};
use crate::report::{SCHEMA, Speedup};
use crate::runtime::RuntimeChoice;
use crate::sizes::Sizes;
use crate::units::ShapeArg;

use candidates::{Candidate, Hunt, Tried};
use kernel::Target;
use layers::{Kind, Layer};
use measure::Measure;
use teach::{Activations, Lesson};

pub use judging::{Operated, SearchReport, Trained, Trainer};
pub use pieces::{draw, join};
pub use search::{SearchRequest, judge, search};

/// What to do.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model.
    pub model: PathBuf,
    /// Where the result goes.
    pub output: PathBuf,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// The user's inputs.
    pub data: Vec<String>,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Wall time.
    pub budget: Duration,
    /// The largest error of the outputs, relative to their size.
    pub max_error: f64,
    /// Seed of inputs and of the search.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
}

impl Request {
    /// A request with the defaults of the command line.
    pub fn new(model: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Request {
        Request {
            model: model.into(),
            output: output.into(),
            shapes: Vec::new(),
            binds: Vec::new(),
            data: Vec::new(),
            threads: None,
            budget: Duration::from_secs(600),
            max_error: 0.01,
            seed: 0,
            runtime: RuntimeChoice::default(),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of the layout.
    pub schema: u32,
    /// `regraft` and its version.
    pub tool: String,
    /// Runtime and its version.
    pub runtime: String,
    /// Processor.
    pub machine: String,
    /// Threads per operator.
    pub threads: usize,
    /// The model.
    pub model: String,
    /// Convolutions and products that no operator can replace: they stride, have groups or no known
    /// weights, or are small.
    pub others: usize,
    /// What was tried for each kind of layer.
    pub kinds: Vec<KindReport>,
    /// Choices that were measured, the smallest error first.
    pub front: Vec<Point>,
    /// The place in `front` of the one that was written; none if the input was.
    pub written: Option<usize>,
    /// The largest error that was asked for.
    pub max_error: f64,
    /// Whether the inputs on which errors were measured were the user's.
    pub real_inputs: bool,
    /// Wall time.
    pub seconds: f64,
}

impl Report {
    /// Whether the time was over before anything could be fitted: then nothing is known of errors.
    pub fn ended_early(&self) -> bool {
        let fitted = self.kinds.iter().flat_map(|kind| &kind.operators).any(|operator| !operator.errors.is_empty());
        !fitted && self.kinds.iter().any(|kind| !kind.operators.is_empty() || kind.timed == 0)
    }
}

/// What was tried for one kind of layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KindReport {
    /// Its sizes.
    pub layer: String,
    /// How many layers have them.
    pub count: usize,
    /// A run of the layer by itself, ns.
    pub ns: f64,
    /// Operators of a known family that fit its sizes.
    pub known: usize,
    /// Operators that the search drew.
    pub drawn: usize,
    /// Operators that were timed.
    pub timed: usize,
    /// Those that were fitted, the fastest first.
    pub operators: Vec<OperatorReport>,
}

/// An operator that was fitted to the layers of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperatorReport {
    /// Its formula.
    pub formula: String,
    /// How many times faster than the layer it is.
    pub faster: f64,
    /// Its share of the layer's multiplications.
    pub macs: f64,
    /// Its share of the layer's weights.
    pub parameters: f64,
    /// The errors of its fits, relative to the layer's outputs, one for each layer.
    pub errors: Vec<f64>,
}

/// A choice of operators, measured as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The error of the model's outputs, relative to their size.
    pub error: f64,
    /// How many times faster than the input the model is.
    pub speedup: Speedup,
    /// Weights, as a share of those of the layers that could be replaced.
    pub parameters: f64,
    /// How many layers were replaced.
    pub replaced: usize,
}

/// Shares of the budget: for finding operators, and for fitting them.
const HUNTING: f64 = 0.25;
const FITTING: f64 = 0.4;
/// Runs of the model on which operators are fitted, and on which the result's error is measured.
const RUNS: (usize, usize) = (4, 2);
/// A layer whose last fits, so many, have errors above this is not fitted any more.
const HOPELESS: (usize, f64) = (3, 0.5);
/// How long operators are fitted after an interruption.
const MOMENT: Duration = Duration::from_secs(5);
/// The entry of a model's metadata that names the model which it approximates, by its file's
/// digest.
pub const APPROXIMATES: &str = "regraft.approximates";

/// Looks for operators, fits them, chooses, and writes the fastest model within the error.
///
/// # Errors
///
/// If the model cannot be read or run, no layer of it can be replaced, or the result cannot be
/// written.
pub fn synthesize(request: &Request, observer: &mut dyn Observer) -> Result<Report, Failure> {
    let start = Instant::now();
    crate::file::check_writable(&request.output, "-o")?;
    observer.phase(Phase::Load, &request.model.display().to_string());
    let model = Model::read(&request.model)?;
    let runtime = request.runtime.load()?;
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let source = ModelSource::path(&request.model);
    let data = Data::read(&request.data, &model)?;
    let shapes = data.sizes(&model, &request.shapes, &request.binds);
    let sizes = Sizes::resolve(&model, source, runtime.as_ref(), &shapes, &request.binds)?;
    let (layers, others) = layers::layers(model.graph(), &sizes.symbols);
    if layers.is_empty() {
        let failure = Failure::new(format!("{}: no layer that an operator could replace", request.model.display()));
        return Err(
            failure.hint("that is a product with known weights and at least 8 features, or such a convolution with stride 1 and no groups that keeps height and width")
        );
    }
    let given: Vec<Feeds> = data.fitting(&sizes)?.into_iter().map(|(_, feeds)| feeds).collect();
    let real_inputs = !given.is_empty();
    if given.len() == 1 {
        let failure = Failure::new("--data has one input: operators cannot be fitted to it and measured on it, too");
        return Err(failure.hint("give several; of three, one is held back to measure on. Without --data, inputs are made up"));
    }
    let made = |seed: usize| sizes.feeds(Fill::Normal, request.seed + seed as u64);
    let runs = if real_inputs { given } else { (0..RUNS.0 + RUNS.1).map(made).collect::<Result<_, _>>()? };
    // What errors are measured on was not fitted to.
    let (fitted, measured) = runs.split_at(runs.len() - (runs.len() / 3).max(1));
    let ceiling = measure_ceiling(runtime.as_ref(), threads)?;
    let work = Work { request, model: &model, runtime: runtime.as_ref(), threads, ceiling, layers: &layers, start };

    let kinds = kinds(&layers);
    let specs: Vec<Spec> = kinds.iter().map(Kind::spec).collect();
    let mut explorers: Vec<Explorer<'_>> = specs.iter().map(candidates::explorer).collect();
    let found = work.hunt(&kinds, &mut explorers, observer)?;

    let written = model.write(model.graph(), &WriteOptions::default())?;
    let values = work.layers.iter().map(|layer| layer.x).collect::<Vec<_>>();
    let activations = Activations::of(&written, &values, fitted, runtime.as_ref())?;
    let fits = work.fit(&kinds, &found, &activations, &explorers, observer);
    let reports = work.reports(&kinds, &found, &fits, &explorers);

    let digest = FileDigest::of(&request.model, String::new())?.hash.to_string();
    let measure = Measure {
        work: &work,
        written: &written,
        fits: &fits,
        found: &found,
        kinds: &kinds,
        explorers: &explorers,
        activations: &activations,
        fitted,
        measured,
        digest: &digest,
    };
    let (points, models) = measure.front(observer)?;
    let within = (0..points.len()).filter(|at| points[*at].error <= request.max_error && points[*at].speedup.low > 1.0);
    let best = within.max_by(|a, b| points[*a].speedup.median.total_cmp(&points[*b].speedup.median));
    observer.phase(Phase::Write, &request.output.display().to_string());
    match best {
        Some(best) => crate::file::write_atomic(&request.output, &models[best])?,
        None => crate::file::copy_atomic(&request.model, &request.output)?,
    }
    Ok(Report {
        schema: SCHEMA,
        tool: crate::tool(),
        runtime: format!("{} {}", runtime.name(), runtime.version()),
        machine: MachineKey::detect().cpu,
        threads,
        model: request.model.display().to_string(),
        others,
        kinds: reports,
        front: points,
        written: best,
        max_error: request.max_error,
        real_inputs,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The kinds of some layers, those that take most first.
fn kinds(layers: &[Layer]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = layers.iter().map(|layer| layer.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let total = |kind: &Kind| kind.macs() * layers.iter().filter(|layer| layer.kind == *kind).count() as f64;
    kinds.sort_by(|a, b| total(b).total_cmp(&total(a)));
    kinds
}

/// Candidates for one kind of layer, and what was tried.
type Hunted = (Vec<Candidate>, Tried);
/// For each layer, its fits with the places of their candidates.
type Fits = Vec<Vec<(usize, Fit)>>;

/// What all stages share.
struct Work<'a> {
    request: &'a Request,
    model: &'a Model,
    runtime: &'a dyn Runtime,
    threads: usize,
    ceiling: Ceiling,
    layers: &'a [Layer],
    start: Instant,
}

impl Work<'_> {
    fn until(&self, share: f64) -> Instant {
        self.start + self.request.budget.mul_f64(share)
    }

    fn count(&self, kind: &Kind) -> usize {
        self.layers.iter().filter(|layer| layer.kind == *kind).count()
    }

    fn hunt(&self, kinds: &[Kind], explorers: &mut [Explorer<'_>], observer: &mut dyn Observer) -> Result<Vec<Hunted>, Failure> {
        let target = Target { runtime: self.runtime, threads: self.threads, ceiling: self.ceiling };
        let hunt = Hunt { target, seed: self.request.seed };
        let weight = |kind: &Kind| kind.macs() * self.count(kind) as f64;
        let total: f64 = kinds.iter().map(weight).sum();
        let budget = self.request.budget.mul_f64(HUNTING);
        let mut found = Vec::new();
        for (kind, explorer) in kinds.iter().zip(explorers) {
            observer.phase(Phase::Search, &format!("operators for {}", kind.show()));
            let until = Instant::now() + candidates::share(budget, weight(kind), total);
            let observed: &dyn Observer = observer;
            found.push(hunt.candidates(kind, explorer, until, &|| observed.interrupted())?);
        }
        Ok(found)
    }

    /// Fits the candidates of each layer's kind to the layer, what matters most first.
    fn fit(
        &self,
        kinds: &[Kind],
        found: &[Hunted],
        activations: &Activations,
        explorers: &[Explorer<'_>],
        observer: &mut dyn Observer,
    ) -> Fits {
        let mut fits: Fits = vec![Vec::new(); self.layers.len()];
        // After an interruption there is still a moment for what was found.
        let hurried = observer.interrupted();
        let until = if hurried { Instant::now() + MOMENT } else { self.until(HUNTING + FITTING) };
        // Those with many weights first: what is fast is worth nothing where it is far off.
        let order = |(candidates, _): &Hunted| {
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            order.sort_by(|a, b| candidates[*b].found.parameters.total_cmp(&candidates[*a].found.parameters));
            order
        };
        let orders: Vec<Vec<usize>> = found.iter().map(order).collect();
        let most = orders.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..most {
            for (k, kind) in kinds.iter().enumerate() {
                let (candidates, _) = &found[k];
                let Some(&place) = orders[k].get(at) else { continue };
                let of_kind = (0..self.layers.len()).filter(|layer| self.layers[*layer].kind == *kind);
                for layer in of_kind {
                    let last = fits[layer].iter().rev().take(HOPELESS.0);
                    if last.filter(|(_, fit)| fit.error > HOPELESS.1).count() == HOPELESS.0 {
                        continue;
                    }
                    if Instant::now() >= until || observer.interrupted() && !hurried {
                        return fits;
                    }
                    observer.phase(Phase::Measure, &format!("fitting {} to {}", candidates.len(), kind.show()));
                    let go_on = || Instant::now() < until;
                    let effort = if kind.parameters() > 1e6 { Fitting { rounds: 6, steps: 6 } } else { Fitting::default() };
                    let lesson = Lesson { layer, of: &self.layers[layer], activations, read: activations, effort };
                    if let Some(fit) = lesson.taught(&candidates[place], None, &explorers[k].coordinates, &go_on) {
                        fits[layer].push((place, fit));
                    }
                }
            }
        }
        fits
    }

    fn reports(&self, kinds: &[Kind], found: &[Hunted], fits: &Fits, explorers: &[Explorer<'_>]) -> Vec<KindReport> {
        let report = |(k, kind): (usize, &Kind)| {
            let (candidates, tried) = &found[k];
            let operator = |(place, candidate): (usize, &Candidate)| {
                let errors = (0..self.layers.len()).filter(|layer| self.layers[*layer].kind == *kind);
                let errors = errors.flat_map(|layer| fits[layer].iter().filter(|(at, _)| *at == place).map(|(_, fit)| fit.error)).collect();
                OperatorReport {
                    formula: candidate.found.operator.show(&explorers[k].coordinates),
                    faster: 1.0 / candidate.share(),
                    macs: candidate.found.plan.macs / kind.macs(),
                    parameters: candidate.found.parameters / kind.parameters(),
                    errors,
                }
            };
            KindReport {
                layer: kind.show(),
                count: self.count(kind),
                ns: candidates.first().map_or(0.0, |candidate| candidate.timed.layer_ns),
                known: tried.known,
                drawn: tried.drawn,
                timed: tried.timed,
                operators: candidates.iter().enumerate().map(operator).collect(),
            }
        };
        kinds.iter().enumerate().map(report).collect()
    }
}
