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
mod pieces;
mod search;
mod teach;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regraft_cost::Ceiling;
use regraft_ir::{Dim, Graph, Patch, PatchValue};
use regraft_onnx::proto::StringStringEntryProto;
use regraft_onnx::{Model, WriteOptions, Written};
use regraft_runtime::{Feeds, Fill, HostTensor, MachineKey, ModelSource, Runtime, SessionOptions};
use regraft_synth::fit::{Effort as Fitting, Fit};
use regraft_synth::{Coordinates, Dims, Explorer, Layer as Numbers, Loops, Spec};
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::error::Failure;
use crate::optimize::{Effort, Observer, Phase, measure_ceiling, time_end_to_end};
use crate::report::{SCHEMA, Speedup};
use crate::sizes::Sizes;
use crate::units::ShapeArg;

use candidates::{Candidate, Hunt, Tried};
use choose::{Choice, Item};
use kernel::Target;
use layers::{Kind, Layer};
use teach::{Activations, taught};

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
    /// Path of the runtime library.
    pub runtime_library: Option<PathBuf>,
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
            runtime_library: None,
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
    /// Convolutions that no operator can replace: they stride, have groups, or have no known weights.
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
const HUNTING: f64 = 0.35;
const FITTING: f64 = 0.4;
/// Runs of the model on which operators are fitted, and on which the result's error is measured.
const RUNS: (usize, usize) = (4, 2);
/// How long operators are fitted after an interruption.
const MOMENT: Duration = Duration::from_secs(5);
/// Choices that are measured after an interruption.
const AFTER_INTERRUPTION: usize = 3;
/// The entry of a model's metadata that names the model which it approximates, by its file's digest.
pub const APPROXIMATES: &str = "regraft.approximates";
/// Choices that are measured as a whole.
const POINTS: usize = 10;

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
    let runtime = crate::runtime::load(request.runtime_library.as_deref())?;
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let source = ModelSource::path(&request.model);
    let data = Data::read(&request.data, &model)?;
    let shapes = data.sizes(&model, &request.shapes, &request.binds);
    let sizes = Sizes::resolve(&model, source, runtime.as_ref(), &shapes, &request.binds)?;
    let (layers, others) = layers::layers(model.graph(), &sizes.symbols);
    if layers.is_empty() {
        let failure = Failure::new(format!("{}: no layer that an operator could replace", request.model.display()));
        return Err(
            failure.hint("that is a convolution with known weights, at least 8 channels, stride 1, no groups, that keeps height and width")
        );
    }
    let given: Vec<Feeds> = data.fitting(&sizes)?.into_iter().map(|(_, feeds)| feeds).collect();
    let real_inputs = !given.is_empty();
    let made = |seed: usize| sizes.feeds(Fill::Normal, request.seed + seed as u64);
    let runs = if real_inputs { given } else { (0..RUNS.0 + RUNS.1).map(made).collect::<Result<_, _>>()? };
    // What errors are measured on was not fitted to, where there is enough.
    let held_back = if runs.len() > 1 { (runs.len() / 3).max(1) } else { 0 };
    let (fitted, measured) = runs.split_at(runs.len() - held_back);
    let measured = if measured.is_empty() { fitted } else { measured };
    let ceiling = measure_ceiling(runtime.as_ref(), threads)?;
    let work = Work { request, model: &model, runtime: runtime.as_ref(), threads, ceiling, layers: &layers, start };

    let kinds = kinds(&layers);
    let specs: Vec<Spec> = kinds.iter().map(Kind::spec).collect();
    let mut explorers: Vec<Explorer<'_>> = specs.iter().map(candidates::explorer).collect();
    let found = work.hunt(&kinds, &mut explorers, observer)?;

    let written = model.write(model.graph(), &WriteOptions::default())?;
    let activations = Activations::of(&written, &layers, fitted, runtime.as_ref())?;
    let fits = work.fit(&kinds, &found, &activations, &explorers, observer);
    let reports = work.reports(&kinds, &found, &fits, &explorers);

    let digest = blake3::hash(&std::fs::read(&request.model).map_err(Failure::new)?).to_hex().to_string();
    let measure = Measure {
        work: &work,
        written: &written,
        fits: &fits,
        found: &found,
        kinds: &kinds,
        explorers: &explorers,
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
        let most = found.iter().map(|(candidates, _)| candidates.len()).max().unwrap_or(0);
        for at in 0..most {
            for (k, kind) in kinds.iter().enumerate() {
                let (candidates, _) = &found[k];
                // From both ends of the front alternately: fast ones, and accurate ones.
                let place = if at % 2 == 0 { at / 2 } else { candidates.len().wrapping_sub(1 + at / 2) };
                if at >= candidates.len() {
                    continue;
                }
                let of_kind = (0..self.layers.len()).filter(|layer| self.layers[*layer].kind == *kind);
                for layer in of_kind {
                    if Instant::now() >= until || observer.interrupted() && !hurried {
                        return fits;
                    }
                    observer.phase(Phase::Measure, &format!("fitting {} to {}", candidates.len(), kind.show()));
                    let go_on = || Instant::now() < until;
                    let effort = if kind.macs() / (kind.height * kind.width) as f64 > 1e6 {
                        Fitting { rounds: 6, steps: 6 }
                    } else {
                        Fitting::default()
                    };
                    let coordinates = &explorers[k].coordinates;
                    if let Some(fit) = taught(layer, self.layers, &candidates[place], activations, coordinates, effort, &go_on) {
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
                    parameters: candidate.found.parameters / kind_parameters(kind),
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

fn kind_parameters(kind: &Kind) -> f64 {
    (kind.channels * kind.outputs * kind.window * kind.window) as f64
}

/// Measures choices as whole models.
struct Measure<'a, 's> {
    work: &'a Work<'a>,
    written: &'a Written,
    fits: &'a Fits,
    found: &'a [Hunted],
    kinds: &'a [Kind],
    explorers: &'a [Explorer<'s>],
    measured: &'a [Feeds],
    /// Of the input's file.
    digest: &'a str,
}

impl Measure<'_, '_> {
    /// Choices for a series of errors, measured; the smallest error first, each faster than those
    /// before. With each, its model.
    fn front(&self, observer: &mut dyn Observer) -> Result<(Vec<Point>, Vec<Vec<u8>>), Failure> {
        let input = self.written.to_bytes()?;
        let expected = self.outputs(&input)?;
        let mut items = self.items();
        self.sensitivities(&mut items, &expected, observer)?;
        let mut made: Vec<(f64, Choice, Vec<u8>)> = Vec::new();
        for choice in choose::choices(&items, POINTS) {
            // After an interruption a few choices are still measured: what was found is not lost.
            if observer.interrupted() && made.len() >= AFTER_INTERRUPTION {
                break;
            }
            observer.phase(Phase::Check, &format!("{} layers replaced", choice.iter().flatten().count()));
            let bytes = self.assembled(&choice)?;
            let error = difference(&expected, &self.outputs(&bytes)?);
            made.push((error, choice, bytes));
        }
        made.sort_by(|a, b| a.0.total_cmp(&b.0));
        if made.is_empty() {
            return Ok((vec![], vec![]));
        }
        observer.phase(Phase::Choose, &format!("{} models, interleaved", made.len()));
        let sources: Vec<ModelSource<'_>> =
            std::iter::once(ModelSource::bytes(&input)).chain(made.iter().map(|(_, _, bytes)| ModelSource::bytes(bytes))).collect();
        let effort = Effort { sittings: 4, rounds: (3, 60), until: self.work.until(1.0).max(Instant::now() + Duration::from_secs(5)) };
        let observed: &dyn Observer = observer;
        let (work, seed) = (self.work, self.work.request.seed);
        let timed = time_end_to_end(work.runtime, &sources, &self.measured[0], work.threads, effort, seed, &|| observed.interrupted())?;
        let whole: f64 = work.layers.iter().map(|layer| kind_parameters(&layer.kind)).sum();
        let mut points = Vec::new();
        let mut models = Vec::new();
        for ((error, choice, bytes), ratio) in made.into_iter().zip(timed.ratios.into_iter().skip(1)) {
            let speedup = ratio.map_or(Speedup::NONE, Speedup::from);
            if points.last().is_some_and(|before: &Point| before.speedup.median >= speedup.median) {
                continue;
            }
            let kept = |(layer, option): (usize, &Option<usize>)| match option {
                Some(option) => self.candidate(layer, *option).0.found.parameters,
                None => kind_parameters(&work.layers[layer].kind),
            };
            let parameters = choice.iter().enumerate().map(kept).sum::<f64>() / whole;
            points.push(Point { error, speedup, parameters, replaced: choice.iter().flatten().count() });
            models.push(bytes);
        }
        Ok((points, models))
    }

    fn kind(&self, layer: usize) -> usize {
        self.kinds.iter().position(|kind| *kind == self.work.layers[layer].kind).unwrap_or_default()
    }

    /// The candidate and fit that are a layer's option.
    fn candidate(&self, layer: usize, option: usize) -> (&Candidate, &Fit) {
        let (place, fit) = &self.fits[layer][option];
        (&self.found[self.kind(layer)].0[*place], fit)
    }

    fn items(&self) -> Vec<Item> {
        let item = |layer: usize| {
            let options = (0..self.fits[layer].len()).map(|option| {
                let (candidate, fit) = self.candidate(layer, option);
                (candidate.timed.ns - candidate.timed.layer_ns, fit.error * fit.error)
            });
            Item { options: options.collect(), sensitivity: 1.0 }
        };
        (0..self.work.layers.len()).map(item).collect()
    }

    /// How much an error of each layer moves the outputs, by trying its most accurate operator.
    fn sensitivities(&self, items: &mut [Item], expected: &[Vec<HostTensor>], observer: &mut dyn Observer) -> Result<(), Failure> {
        let until = self.work.until(0.9);
        for layer in 0..items.len() {
            let best = (0..items[layer].options.len()).min_by(|a, b| items[layer].options[*a].1.total_cmp(&items[layer].options[*b].1));
            let Some(best) = best.filter(|_| Instant::now() < until && !observer.interrupted()) else { continue };
            observer.phase(Phase::Check, &format!("how much layer {} of {} matters", layer + 1, items.len()));
            let mut choice = vec![None; items.len()];
            choice[layer] = Some(best);
            let error = difference(expected, &self.outputs(&self.assembled(&choice)?)?);
            let own = items[layer].options[best].1.max(1e-12);
            items[layer].sensitivity = error * error / own;
        }
        Ok(())
    }

    /// The model with some layers replaced.
    fn assembled(&self, choice: &Choice) -> Result<Vec<u8>, Failure> {
        let mut graph: Graph = self.work.model.graph().clone();
        // All at once, at the end: a layer may read what another one writes.
        let mut replace = Vec::new();
        for (layer, option) in choice.iter().enumerate() {
            let Some(option) = option else { continue };
            let place = &self.work.layers[layer];
            let kind = self.kind(layer);
            let (candidate, fit) = self.candidate(layer, *option);
            let coordinates = &self.explorers[kind].coordinates;
            let dims = dims(place, coordinates);
            let numbers = Numbers { values: coordinates.spec.layers[0].values.clone(), count: 1 };
            let loops =
                Loops::at(&candidate.found.operator, &numbers, coordinates).ok_or_else(|| Failure::new("a size is no whole number"))?;
            let y = kernel::add(&mut graph, place.x, &candidate.found, &fit.weights, &dims, &loops.weights, coordinates)?;
            let mut y = kernel::add_bias(&mut graph, y, &fit.bias)?;
            if let Some(bias) = place.bias {
                y = kernel::add_bias_value(&mut graph, y, bias, place.kind.outputs)?;
            }
            replace.push((place.node.out(), PatchValue::Old(y)));
        }
        graph.apply(&Patch { cause: "synthesize".into(), create: vec![], replace: replace.into() });
        let options = WriteOptions { allow_growth: Some(self.work.model.size() + (64 << 20)), ..WriteOptions::default() };
        let mut written = self.work.model.write(&graph, &options)?;
        let entry = StringStringEntryProto { key: Some(APPROXIMATES.into()), value: Some(self.digest.into()) };
        written.proto.metadata_props.retain(|other| other.key() != APPROXIMATES);
        written.proto.metadata_props.push(entry);
        Ok(written.to_bytes()?)
    }

    /// What a model computes in the runs on which errors are measured.
    fn outputs(&self, model: &[u8]) -> Result<Vec<Vec<HostTensor>>, Failure> {
        let folder = self.work.request.model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut session = self.work.runtime.open(ModelSource::bytes_in(model, folder), &SessionOptions::default())?;
        self.measured.iter().map(|feeds| Ok(session.run(feeds)?)).collect()
    }
}

/// The variables' sizes where a layer stands.
fn dims(layer: &Layer, coordinates: &Coordinates<'_>) -> Dims {
    let numbers = coordinates.spec.variables.iter().zip(&coordinates.spec.layers[0].values);
    let dim = |name: &str, own: u64| match name {
        "N" => layer.shape[0].clone(),
        "H" => layer.shape[2].clone(),
        "W" => layer.shape[3].clone(),
        _ => Dim::from(own as i64),
    };
    Dims::new(numbers.map(|(variable, own)| dim(&variable.name, *own)).collect())
}

/// The largest error of an output, relative to its size, over all runs.
fn difference(expected: &[Vec<HostTensor>], found: &[Vec<HostTensor>]) -> f64 {
    let outputs = expected.first().map_or(0, Vec::len);
    let error = |output: usize| {
        let (mut off, mut size) = (0.0, 0.0);
        for (expected, found) in expected.iter().zip(found) {
            let (expected, found) = (expected[output].to_f64(), found[output].to_f64());
            off += expected.iter().zip(&found).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            size += expected.iter().map(|a| a * a).sum::<f64>();
        }
        (off / size.max(f64::MIN_POSITIVE)).sqrt()
    };
    (0..outputs).map(error).fold(0.0, f64::max)
}
