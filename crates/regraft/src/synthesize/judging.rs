//! Operators judged: times beside the dense layer, weights, accuracy after training, and the front
//! of these three.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use regraft_runtime::{MachineKey, Runtime};
use regraft_synth::{Bindings, Explorer, Found, Front, Key, Layer, Spec};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::optimize::measure_ceiling;
use crate::report::SCHEMA;
use crate::synthesize::candidates::dense;
use crate::synthesize::kernel::{Bench, Target, check};

/// Who says how accurate networks with an operator become.
pub trait Trainer {
    /// What training came to, for operators that are trained together: the worse may be given up
    /// early. None where an operator cannot be trained.
    ///
    /// # Errors
    ///
    /// If nothing can be trained.
    fn train(&mut self, formulas: &[String]) -> Result<Vec<Option<Trained>>, Failure>;
}

/// What training a small network with an operator came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// Share of held-back images that are told right, from 0 to 1.
    pub accuracy: f64,
    /// After so many epochs.
    pub epoch: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchReport {
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
    /// The specification's name.
    pub spec: String,
    /// The layer that the operators replace.
    pub dense: Operated,
    /// Operators that nothing else beats in every respect, the fastest first.
    pub front: Vec<Operated>,
    /// All operators that were timed, the fastest first; those that are not faster were not
    /// trained.
    pub timed: Vec<Operated>,
    /// Wall time.
    pub seconds: f64,
}

/// An operator, judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operated {
    /// Its formula.
    pub formula: String,
    /// Whether it is one of the known families; others were searched.
    pub known: bool,
    /// What training came to; none if it was not trained.
    pub trained: Option<Trained>,
    /// A run of all layers, ns.
    pub ns: f64,
    /// How many times faster than the dense layer it is, for all layers together.
    pub faster: f64,
    /// For each layer of the specification, how many times faster.
    pub layers: Vec<f64>,
    /// Its share of the dense layer's multiplications.
    pub macs: f64,
    /// Its share of the dense layer's weights.
    pub parameters: f64,
}

/// An operator is trained if it is at least so many times faster.
const FASTER: f64 = 1.05;
/// How long an operator is timed in each layer.
const LASTS: Duration = Duration::from_millis(80);

impl Operated {
    /// Whether it is worth training.
    pub fn is_faster(&self) -> bool {
        self.faster >= FASTER
    }

    /// Time, weights, and what is missing to full accuracy: smaller is better.
    pub fn point(&self) -> [f64; 3] {
        [1.0 / self.faster, self.parameters, 1.0 - self.trained.map_or(0.0, |trained| trained.accuracy)]
    }
}

/// The front of those that are faster.
pub fn front(timed: &[Operated]) -> Front<Operated, 3> {
    let mut front = Front::default();
    for operated in timed.iter().filter(|operated| operated.is_faster()) {
        front.offer(operated.point(), operated.clone());
    }
    front
}

/// All that was judged so far.
pub struct Judging<'a, 't> {
    spec: &'a Spec,
    target: Target<'a>,
    benches: Vec<Bench<'a>>,
    /// Small sizes, at which kernels are checked.
    places: Vec<Layer>,
    dense: Found,
    own: Operated,
    timed: Vec<Operated>,
    seen: HashSet<Key>,
    /// The longest that one took, timed and trained.
    longest: Duration,
    /// The longest that timing one took.
    timing: Duration,
    trainer: &'t mut dyn Trainer,
}

impl<'a, 't> Judging<'a, 't> {
    /// Times and trains the dense layer.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be computed.
    pub fn new(
        spec: &'a Spec,
        runtime: &'a dyn Runtime,
        threads: Option<usize>,
        explorer: &mut Explorer<'_>,
        trainer: &'t mut dyn Trainer,
    ) -> Result<Judging<'a, 't>, Failure> {
        if let Some(at) = spec.layers.iter().position(|layer| spec.largest_tensor(layer) * 4.0 > spec.limits.memory as f64) {
            let bytes = crate::units::show_bytes((spec.largest_tensor(&spec.layers[at]) * 4.0) as u64);
            let failure = Failure::new(format!("{}: what layer {} reads or makes takes {bytes}", spec.name, at + 1));
            return Err(failure.hint("smaller sizes, or more `memory` in [limits]"));
        }
        let threads = threads.unwrap_or_else(|| runtime.default_threads());
        let ceiling = measure_ceiling(runtime, threads)?;
        let dense = dense(explorer)?;
        let target = Target { runtime, threads, ceiling };
        let bench = |layer| Bench::new(target, &dense, layer, LASTS, &explorer.coordinates);
        let benches = spec.layers.iter().map(bench).collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let own = timed(&benches, &dense, &dense, true, spec, explorer)?;
        let timing = start.elapsed();
        let trained = trainer.train(std::slice::from_ref(&own.formula))?.pop().flatten();
        let own = Operated { trained, ..own };
        let places = Bindings::new(spec).layers().to_vec();
        let seen = HashSet::from([dense.key]);
        Ok(Judging { spec, target, benches, places, dense, own, timed: vec![], seen, longest: start.elapsed(), timing, trainer })
    }

    /// How many more can be judged until then, if each takes as long as the longest so far, the
    /// dense layer included; and whether they can be trained. Where there was no time to train any,
    /// all are only timed.
    pub fn room(&self, until: Instant) -> (usize, bool) {
        let left = until.saturating_duration_since(Instant::now());
        let of = |longest: Duration| (left.as_secs_f64() / longest.as_secs_f64().max(1e-3)) as usize;
        match of(self.longest) {
            0 if self.timed.iter().all(|operated| operated.trained.is_none()) => (of(self.timing), false),
            room => (room, true),
        }
    }

    /// The longest that one took.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// How far it is, for people.
    pub fn so_far(&self) -> String {
        format!("{} timed, {} on the front", self.timed.len(), front(&self.timed).points().len())
    }

    /// Judges operators together, each with whether it is known, with training or without; their
    /// ranks among all, 0 for those that are not faster or were judged before.
    ///
    /// # Errors
    ///
    /// If a kernel is wrong or impossibly fast, or nothing can be trained.
    pub fn take(&mut self, operators: &[(&Found, bool)], training: bool, explorer: &Explorer<'_>) -> Result<Vec<f64>, Failure> {
        let start = Instant::now();
        let mut places = vec![None; operators.len()];
        let first = self.timed.len();
        for ((found, known), place) in operators.iter().zip(&mut places) {
            if self.seen.insert(found.key) {
                check(found, &self.places, &explorer.coordinates, self.target.runtime)?;
                *place = Some(self.timed.len());
                let start = Instant::now();
                self.timed.push(timed(&self.benches, found, &self.dense, *known, self.spec, explorer)?);
                self.timing = self.timing.max(start.elapsed());
            }
        }
        let faster: Vec<usize> = (first..self.timed.len()).filter(|at| self.timed[*at].is_faster()).collect();
        let formulas: Vec<String> = faster.iter().map(|at| self.timed[*at].formula.clone()).collect();
        if training && !formulas.is_empty() {
            for (at, trained) in faster.iter().zip(self.trainer.train(&formulas)?) {
                self.timed[*at].trained = trained;
            }
        }
        if training {
            self.longest = self.longest.max(start.elapsed() / (self.timed.len() - first).max(1) as u32);
        }
        let front = front(&self.timed);
        let rank = |at: usize| Some(&self.timed[at]).filter(|operated| operated.is_faster()).map(|operated| front.rank(&operated.point()));
        Ok(places.into_iter().map(|place| place.and_then(rank).unwrap_or(0.0)).collect())
    }

    /// What was found, in so much time.
    pub fn report(self, elapsed: Duration) -> SearchReport {
        let runtime = self.target.runtime;
        SearchReport {
            schema: SCHEMA,
            tool: crate::tool(),
            runtime: format!("{} {}", runtime.name(), runtime.version()),
            machine: MachineKey::detect().cpu,
            threads: self.target.threads,
            spec: self.spec.name.clone(),
            dense: self.own,
            front: vec![],
            timed: self.timed,
            seconds: elapsed.as_secs_f64(),
        }
        .sorted()
    }
}

impl SearchReport {
    /// With the fastest first, and their front.
    pub(crate) fn sorted(mut self) -> SearchReport {
        self.timed.sort_by(|a, b| b.faster.total_cmp(&a.faster));
        self.front = front(&self.timed).points().into_iter().map(|(_, operated)| operated.clone()).collect();
        self
    }
}

/// Times of an operator in all layers.
fn timed(
    benches: &[Bench<'_>],
    found: &Found,
    dense: &Found,
    known: bool,
    spec: &Spec,
    explorer: &Explorer<'_>,
) -> Result<Operated, Failure> {
    let formula = found.operator.show(&explorer.coordinates);
    let (mut ns, mut dense_ns, mut layers) = (0.0, 0.0, vec![]);
    for (bench, layer) in benches.iter().zip(&spec.layers) {
        let timed = bench.time(found, &explorer.coordinates)?;
        let timed = timed.ok_or_else(|| Failure::new(format!("the runtime does not take {formula}")))?;
        ns += timed.ns * layer.count as f64;
        dense_ns += timed.layer_ns * layer.count as f64;
        layers.push(timed.layer_ns / timed.ns);
    }
    let (faster, macs, parameters) = (dense_ns / ns, found.plan.macs / dense.plan.macs, found.parameters / dense.parameters);
    Ok(Operated { formula, known, trained: None, ns, faster, layers, macs, parameters })
}
