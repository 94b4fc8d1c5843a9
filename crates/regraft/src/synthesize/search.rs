//! Operators for the layers of a specification, without a model: the front of what is fast, small, and
//! accurate after training.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regraft_runtime::MachineKey;
use regraft_synth::{Bindings, Explorer, Filter, Found, Front, Key, Operator, Proposal, Sampler, Spec, Tree, presets, torch, tvm};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::optimize::{Observer, Phase, measure_ceiling};
use crate::report::SCHEMA;
use crate::synthesize::candidates::dense;
use crate::synthesize::kernel::{Bench, Target, check};

/// What to search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Layers, and limits of the search.
    pub spec: Spec,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Wall time.
    pub budget: Duration,
    /// Seed of the search.
    pub seed: u64,
    /// A folder for what is on the front: formulas, ONNX, PyTorch and TVM.
    pub emit: Option<PathBuf>,
    /// Path of the runtime library.
    pub runtime_library: Option<PathBuf>,
}

/// Who says how accurate networks with an operator become.
pub trait Judge {
    /// Accuracies after training, from 0 to 1; none where an operator cannot be trained.
    ///
    /// # Errors
    ///
    /// If nothing can be trained.
    fn judge(&mut self, formulas: &[String]) -> Result<Vec<Option<f64>>, Failure>;
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
    /// All operators that were timed, the fastest first; those that are not faster were not trained.
    pub timed: Vec<Operated>,
    /// Operators of known families that were judged, and such that the search found.
    pub judged: (usize, usize),
    /// Operators that were timed and are not faster.
    pub slower: usize,
    /// Wall time.
    pub seconds: f64,
}

/// An operator, judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operated {
    /// Its formula.
    pub formula: String,
    /// Accuracy of a small network with it, after training; none if it was not trained.
    pub accuracy: Option<f64>,
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

/// How long an operator is timed in each layer.
const LASTS: Duration = Duration::from_millis(80);
/// An operator is trained if it is at least so many times faster.
const FASTER: f64 = 1.05;

/// Looks for operators until the time is up.
///
/// # Errors
///
/// If the specification has no dense layer, nothing in it can be computed, a kernel is wrong, or files
/// cannot be written.
pub fn search(request: &SearchRequest, judge: &mut dyn Judge, observer: &mut dyn Observer) -> Result<SearchReport, Failure> {
    let start = Instant::now();
    let until = start + request.budget;
    observer.phase(Phase::Load, &request.spec.name);
    if let Some(folder) = &request.emit {
        std::fs::create_dir_all(folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())).hint("--emit names a folder"))?;
    }
    let runtime = crate::runtime::load(request.runtime_library.as_deref())?;
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let ceiling = measure_ceiling(runtime.as_ref(), threads)?;
    let mut explorer = Explorer::new(&request.spec, Filter::default());
    let dense = dense(&mut explorer)?;
    let target = Target { runtime: runtime.as_ref(), threads, ceiling };
    let layers = request.spec.layers.iter();
    let benches = layers.map(|layer| Bench::new(target, &dense, layer, LASTS, &explorer.coordinates)).collect::<Result<Vec<_>, _>>()?;
    let places = Bindings::new(&request.spec).layers().to_vec();
    let mut judged = Judged {
        spec: &request.spec,
        target,
        benches,
        places,
        dense: &dense,
        front: Front::default(),
        timed: vec![],
        slower: 0,
        count: (0, 0),
        seen: HashSet::from([dense.key]),
        longest: Duration::ZERO,
        judge,
    };
    let own = judged.described(&dense, &explorer)?;
    let own = Operated { accuracy: judged.judge.judge(std::slice::from_ref(&own.formula))?.pop().flatten(), ..own };

    // Nothing is begun that would end too late, if it takes as long as the longest so far.
    let stop = |longest: Duration, observer: &dyn Observer| Instant::now() + longest >= until || observer.interrupted();
    // Known families and the search take turns.
    let mut families = presets::families(&request.spec).into_iter();
    let mut tree = Tree::new(request.seed);
    let mut sampler = Sampler::new(&mut explorer, request.seed, false);
    let mut searching = true;
    while !stop(judged.longest, observer) {
        let family = families.next();
        if family.is_none() && !searching {
            break;
        }
        if let Some(formula) = family {
            observer.phase(Phase::Measure, &format!("known: {formula}"));
            let operator = Operator::parse(&formula, &mut explorer.coordinates).ok();
            if let Some(found) = operator.and_then(|operator| explorer.judged(operator)).filter(|found| found.key != dense.key) {
                judged.take(&found, &explorer, true)?;
            }
        }
        if searching && !stop(judged.longest, observer) {
            let so_far = format!("{} judged, {} on the front", judged.count.0 + judged.count.1, judged.front.points().len());
            observer.phase(Phase::Search, &so_far);
            match tree.propose(&mut explorer, &mut sampler) {
                Some(proposal) => {
                    let reward = judged.reward(&proposal, &explorer)?;
                    tree.reward(&proposal, reward);
                }
                None => searching = false,
            }
        }
    }
    let (front, slower, count, mut timed) = (judged.front, judged.slower, judged.count, judged.timed);
    timed.sort_by(|a, b| b.faster.total_cmp(&a.faster));
    if count == (0, 0) && slower == 0 && !observer.interrupted() {
        let failure = Failure::new(format!("{}: no operator within the limits was found in time", request.spec.name));
        return Err(failure.hint("give a larger --budget, or wider [limits] in the specification: steps, multiplications, weights"));
    }
    let points: Vec<(Operated, Found)> = front.points().into_iter().map(|(_, point)| point.clone()).collect();
    if let Some(folder) = &request.emit {
        observer.phase(Phase::Write, &folder.display().to_string());
        emit(folder, &points, &explorer)?;
    }
    Ok(SearchReport {
        schema: SCHEMA,
        tool: crate::tool(),
        runtime: format!("{} {}", runtime.name(), runtime.version()),
        machine: MachineKey::detect().cpu,
        threads,
        spec: request.spec.name.clone(),
        dense: own,
        front: points.into_iter().map(|(operated, _)| operated).collect(),
        timed,
        judged: count,
        slower,
        seconds: start.elapsed().as_secs_f64(),
    })
}

struct Judged<'a, 'j> {
    spec: &'a Spec,
    target: Target<'a>,
    benches: Vec<Bench<'a>>,
    places: Vec<regraft_synth::Layer>,
    dense: &'a Found,
    /// By time, weights, and what is missing to full accuracy.
    front: Front<(Operated, Found), 3>,
    timed: Vec<Operated>,
    slower: usize,
    count: (usize, usize),
    seen: HashSet<Key>,
    longest: Duration,
    judge: &'j mut dyn Judge,
}

impl Judged<'_, '_> {
    /// Times of an operator in all layers.
    fn described(&self, found: &Found, explorer: &Explorer<'_>) -> Result<Operated, Failure> {
        let (mut ns, mut dense_ns, mut layers) = (0.0, 0.0, vec![]);
        for (bench, layer) in self.benches.iter().zip(&self.spec.layers) {
            let timed = bench.time(found, &explorer.coordinates)?;
            let timed =
                timed.ok_or_else(|| Failure::new(format!("the runtime does not take {}", found.operator.show(&explorer.coordinates))))?;
            ns += timed.ns * layer.count as f64;
            dense_ns += timed.layer_ns * layer.count as f64;
            layers.push(timed.layer_ns / timed.ns);
        }
        Ok(Operated {
            formula: found.operator.show(&explorer.coordinates),
            accuracy: None,
            ns,
            faster: dense_ns / ns,
            layers,
            macs: found.plan.macs / self.dense.plan.macs,
            parameters: found.parameters / self.dense.parameters,
        })
    }

    /// Judges an operator; its rank among all.
    fn take(&mut self, found: &Found, explorer: &Explorer<'_>, known: bool) -> Result<f64, Failure> {
        if !self.seen.insert(found.key) {
            return Ok(0.0);
        }
        let start = Instant::now();
        let rank = self.taken(found, explorer, known);
        self.longest = self.longest.max(start.elapsed());
        rank
    }

    fn taken(&mut self, found: &Found, explorer: &Explorer<'_>, known: bool) -> Result<f64, Failure> {
        check(found, &self.places, &explorer.coordinates, self.target.runtime)?;
        let operated = self.described(found, explorer)?;
        if operated.faster < FASTER {
            self.timed.push(operated);
            self.slower += 1;
            return Ok(0.0);
        }
        let accuracy = self.judge.judge(std::slice::from_ref(&operated.formula))?.pop().flatten();
        let count = if known { &mut self.count.0 } else { &mut self.count.1 };
        *count += 1;
        let operated = Operated { accuracy, ..operated };
        self.timed.push(operated.clone());
        let at = [1.0 / operated.faster, operated.parameters, 1.0 - accuracy.unwrap_or(0.0)];
        self.front.offer(at, (operated, found.clone()));
        Ok(self.front.rank(&at))
    }

    fn reward(&mut self, proposal: &Proposal, explorer: &Explorer<'_>) -> Result<f64, Failure> {
        self.take(&proposal.found, explorer, false)
    }
}

/// Writes what is on the front: for each operator its formula, a model and a module of PyTorch for each
/// layer, and an expression of TVM for the first.
fn emit(folder: &Path, points: &[(Operated, Found)], explorer: &Explorer<'_>) -> Result<(), Failure> {
    let coordinates = &explorer.coordinates;
    for (at, (operated, found)) in points.iter().enumerate() {
        let file = |suffix: &str| folder.join(format!("operator-{:02}{suffix}", at + 1));
        crate::file::write_atomic(&file(".txt"), format!("{}\n", operated.formula).as_bytes())?;
        let mut graphs = Vec::new();
        for (layer, sizes) in explorer.spec().layers.iter().enumerate() {
            let model = crate::synthesize::kernel::standing_alone(found, sizes, coordinates)?;
            crate::file::write_atomic(&file(&format!("-layer-{}.onnx", layer + 1)), &model)?;
            let dims = regraft_synth::Dims::of(sizes);
            let graph = regraft_synth::graph(&found.operator, &found.plan, regraft_synth::Spelling::Convolution, &dims, coordinates);
            graphs.push(graph.map_err(Failure::new)?);
        }
        if let Some(source) = torch::source(&operated.formula, &graphs) {
            crate::file::write_atomic(&file(".py"), source.as_bytes())?;
        }
        let first = &explorer.spec().layers[0];
        if let Some(expression) = tvm::expression(&found.operator, &found.plan, first, coordinates) {
            crate::file::write_atomic(&file("-tvm.py"), expression.as_bytes())?;
        }
    }
    Ok(())
}
