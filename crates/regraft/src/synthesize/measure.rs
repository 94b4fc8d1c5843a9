//! Choices of operators, measured as whole models.

use std::path::Path;
use std::time::{Duration, Instant};

use regraft_ir::{Graph, Patch, PatchValue, ValueId};
use regraft_onnx::proto::StringStringEntryProto;
use regraft_onnx::{WriteOptions, Written};
use regraft_runtime::{Feeds, HostTensor, ModelSource, SessionOptions};
use regraft_synth::fit::{Effort as Fitting, Fit};
use regraft_synth::{Explorer, Layer as Numbers, Loops};

use crate::error::Failure;
use crate::optimize::{Contender, Effort, Observer, Phase, time_end_to_end};
use crate::report::Speedup;
use crate::synthesize::candidates::Candidate;
use crate::synthesize::choose::{self, Choice, Item};
use crate::synthesize::layers::Kind;
use crate::synthesize::teach::{Activations, Lesson};
use crate::synthesize::{APPROXIMATES, Fits, Hunted, Point, Work, kernel};

/// Choices that are measured as a whole.
const POINTS: usize = 10;
/// Choices that are measured after an interruption.
const AFTER_INTERRUPTION: usize = 3;
/// The share of the budget after which fits are left as they are.
const REFINING: f64 = 0.92;
/// Times that the operators of a choice are fitted together.
const SWEEPS: usize = 4;

/// Measures choices as whole models.
pub struct Measure<'a, 's> {
    pub work: &'a Work<'a>,
    pub written: &'a Written,
    pub fits: &'a Fits,
    pub found: &'a [Hunted],
    pub kinds: &'a [Kind],
    pub explorers: &'a [Explorer<'s>],
    /// What the layers read in the model's runs.
    pub activations: &'a Activations,
    /// Runs that operators are fitted to, and that errors are measured on.
    pub fitted: &'a [Feeds],
    pub measured: &'a [Feeds],
    /// Of the input's file.
    pub digest: &'a str,
}

/// For each layer the operator in its place, with weights.
type Taught<'a> = Vec<Option<(&'a Candidate, Fit)>>;

/// A model with layers replaced.
struct Assembled {
    written: Written,
    /// Values of the model, and what takes their place.
    replaced: Vec<(ValueId, ValueId)>,
}

impl Assembled {
    fn bytes(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.written.to_bytes()?)
    }

    /// Where a value of the model is now.
    fn place(&self, value: ValueId) -> ValueId {
        self.replaced.iter().find(|(old, _)| *old == value).map_or(value, |(_, new)| *new)
    }
}

impl Measure<'_, '_> {
    /// Choices for a series of errors, measured; the smallest error first, each faster than the
    /// input and those before. With each, its model.
    pub fn front(&self, observer: &mut dyn Observer) -> Result<(Vec<Point>, Vec<Vec<u8>>), Failure> {
        let input = self.written.to_bytes()?;
        let expected = self.outputs(&input, self.measured)?;
        let mut items = self.items();
        self.sensitivities(&mut items, &expected, observer)?;
        let mut made: Vec<(f64, Choice, Vec<u8>)> = Vec::new();
        for choice in choose::choices(&items, POINTS) {
            // After an interruption a few choices are still measured: what was found is not lost.
            if observer.interrupted() && made.len() >= AFTER_INTERRUPTION {
                break;
            }
            observer.phase(Phase::Check, &format!("{} layers replaced", choice.iter().flatten().count()));
            let bytes = self.assembled(&self.taught(&choice))?.bytes()?;
            let error = difference(&expected, &self.outputs(&bytes, self.measured)?);
            made.push((error, choice, bytes));
        }
        made.sort_by(|a, b| a.0.total_cmp(&b.0));
        if made.is_empty() {
            return Ok((vec![], vec![]));
        }
        self.refine(&mut made, &input, &expected, observer)?;
        made.sort_by(|a, b| a.0.total_cmp(&b.0));
        observer.phase(Phase::Choose, &format!("{} models, interleaved", made.len()));
        let sources: Vec<ModelSource<'_>> =
            std::iter::once(ModelSource::bytes(&input)).chain(made.iter().map(|(_, _, bytes)| ModelSource::bytes(bytes))).collect();
        let contenders = Contender::all(self.work.runtime, sources);
        let effort = Effort { sittings: 4, rounds: (3, 60), until: self.work.until(1.0).max(Instant::now() + Duration::from_secs(5)) };
        let observed: &dyn Observer = observer;
        let (work, seed) = (self.work, self.work.request.seed);
        let timed = time_end_to_end(&contenders, &self.measured[0], work.threads, effort, seed, &|| observed.interrupted())?;
        let whole: f64 = work.layers.iter().map(|layer| layer.kind.parameters()).sum();
        let mut points = Vec::new();
        let mut models = Vec::new();
        for ((error, choice, bytes), ratio) in made.into_iter().zip(timed.ratios.into_iter().skip(1)) {
            let speedup = ratio.map_or(Speedup::NONE, Speedup::from);
            if speedup.median <= points.last().map_or(1.0, |before: &Point| before.speedup.median) {
                continue;
            }
            let kept = |(layer, option): (usize, &Option<usize>)| match option {
                Some(option) => self.candidate(layer, *option).0.found.parameters,
                None => work.layers[layer].kind.parameters(),
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
            let bytes = self.assembled(&self.taught(&choice))?.bytes()?;
            let error = difference(expected, &self.outputs(&bytes, self.measured)?);
            let own = items[layer].options[best].1.max(1e-12);
            items[layer].sensitivity = error * error / own;
        }
        Ok(())
    }

    /// Fits the operators of choices once more, in the models that they make: to what each layer
    /// computed before, from what it reads now. Those whose errors are nearest to what is asked
    /// come first.
    fn refine(
        &self,
        made: &mut [(f64, Choice, Vec<u8>)],
        input: &[u8],
        expected: &[Vec<HostTensor>],
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let until = self.work.until(REFINING);
        let asked = self.work.request.max_error.max(1e-6);
        let mut order: Vec<usize> = (0..made.len()).collect();
        order.sort_by(|a, b| (made[*a].0 / asked).ln().abs().total_cmp(&(made[*b].0 / asked).ln().abs()));
        let lessons = self.outputs(input, self.fitted)?;
        for at in order {
            let mut taught = self.taught(&made[at].1);
            let mut best = difference(&lessons, &self.outputs(&made[at].2, self.fitted)?);
            for sweep in 0..SWEEPS {
                if Instant::now() >= until || observer.interrupted() {
                    return Ok(());
                }
                observer.phase(Phase::Measure, &format!("fitting {} layers together, {}", taught.iter().flatten().count(), sweep + 1));
                self.taught_together(&mut taught, until)?;
                let bytes = self.assembled(&taught)?.bytes()?;
                let error = difference(&lessons, &self.outputs(&bytes, self.fitted)?);
                if error >= best {
                    break;
                }
                best = error;
                made[at].0 = difference(expected, &self.outputs(&bytes, self.measured)?);
                made[at].2 = bytes;
            }
        }
        Ok(())
    }

    /// One sweep over all layers that are replaced.
    fn taught_together(&self, taught: &mut Taught<'_>, until: Instant) -> Result<(), Failure> {
        let assembled = self.assembled(taught)?;
        let values: Vec<ValueId> = self.work.layers.iter().map(|layer| assembled.place(layer.x)).collect();
        let read = Activations::of(&assembled.written, &values, self.fitted, self.work.runtime)?;
        for (layer, option) in taught.iter_mut().enumerate() {
            let Some((candidate, fit)) = option else { continue };
            let effort = Fitting { rounds: 3, steps: 6 };
            let lesson = Lesson { layer, of: &self.work.layers[layer], activations: self.activations, read: &read, effort };
            let coordinates = &self.explorers[self.kind(layer)].coordinates;
            if let Some(better) = lesson.taught(candidate, Some(&*fit), coordinates, &|| Instant::now() < until) {
                *fit = better;
            }
        }
        Ok(())
    }

    /// A choice as operators with weights.
    fn taught(&self, choice: &Choice) -> Taught<'_> {
        let one = |(layer, option): (usize, &Option<usize>)| {
            option.map(|option| {
                let (candidate, fit) = self.candidate(layer, option);
                (candidate, fit.clone())
            })
        };
        choice.iter().enumerate().map(one).collect()
    }

    /// The model with some layers replaced.
    fn assembled(&self, taught: &Taught<'_>) -> Result<Assembled, Failure> {
        let mut graph: Graph = self.work.model.graph().clone();
        // All at once, at the end: a layer may read what another one writes.
        let mut replaced = Vec::new();
        for (layer, option) in taught.iter().enumerate() {
            let Some((candidate, fit)) = option else { continue };
            let place = &self.work.layers[layer];
            let coordinates = &self.explorers[self.kind(layer)].coordinates;
            let dims = place.dims(coordinates.spec);
            let numbers = Numbers { values: coordinates.spec.layers[0].values.clone(), count: 1 };
            let loops =
                Loops::at(&candidate.found.operator, &numbers, coordinates).ok_or_else(|| Failure::new("a size is no whole number"))?;
            let y = kernel::add(&mut graph, place.x, &candidate.found, &fit.weights, &dims, &loops.weights, coordinates)?;
            let y = kernel::add_bias(&mut graph, y, &fit.bias, place.bias, &place.kind)?;
            replaced.push((place.node.out(), y));
        }
        let replace = replaced.iter().map(|(old, new)| (*old, PatchValue::Old(*new))).collect();
        graph.apply(&Patch { cause: "synthesize".into(), create: vec![], replace });
        let options = WriteOptions { allow_growth: Some(self.work.model.size() + (64 << 20)), ..WriteOptions::default() };
        let mut written = self.work.model.write(&graph, &options)?;
        let entry = StringStringEntryProto { key: Some(APPROXIMATES.into()), value: Some(self.digest.into()) };
        written.proto.metadata_props.retain(|other| other.key() != APPROXIMATES);
        written.proto.metadata_props.push(entry);
        Ok(Assembled { written, replaced })
    }

    /// What a model computes in some runs.
    fn outputs(&self, model: &[u8], runs: &[Feeds]) -> Result<Vec<Vec<HostTensor>>, Failure> {
        let folder = self.work.request.model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut session = self.work.runtime.open(ModelSource::bytes_in(model, folder), &SessionOptions::default())?;
        runs.iter().map(|feeds| Ok(session.run(feeds)?)).collect()
    }
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
