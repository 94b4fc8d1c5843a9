//! The e-graph of a model, grown by the rules.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_saturate::{Alone, Cycles, Growth, Limits, Mcts, Method, Priced as ToExtract, Rules, Saturate, Schedule, Stop};
use regraft_search::{Engine, Matcher};
use serde::Serialize;

use crate::error::Failure;
use crate::priced::{Priced, Wanted};
use crate::units::ShapeArg;

/// A request for an e-graph. `SaturateRequest::new` has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct SaturateRequest {
    /// Model file, or name in the zoo.
    pub model: PathBuf,
    /// How far it grows.
    pub limits: Limits,
    /// How rules take turns.
    pub schedule: Schedule,
    /// What becomes of cycles.
    pub cycles: Cycles,
    /// Measured prices, as `regraft cost export` writes them; the analytic roofline without.
    pub prices: Option<PathBuf>,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// More rules, beside the shipped ones.
    pub rules: Vec<PathBuf>,
}

impl SaturateRequest {
    /// A request with the defaults of the command line.
    pub fn new(model: impl Into<PathBuf>) -> SaturateRequest {
        let (prices, shapes, binds, rules) = Default::default();
        let (limits, schedule, cycles) = (Limits::default(), Schedule::default(), Cycles::default());
        SaturateRequest { model: model.into(), limits, schedule, cycles, prices, shapes, binds, rules }
    }

    fn open(&self) -> Result<Priced, Failure> {
        let SaturateRequest { model, prices, shapes, binds, rules, .. } = self;
        Priced::open(&Wanted { model, prices: prices.as_deref(), machine: None, shapes, binds, rules })
    }
}

/// An e-graph.
#[derive(Clone, Debug)]
pub struct Saturated {
    /// The e-graph in the JSON format of the crate `egraph-serialize`; costs are in nanoseconds, of
    /// each e-node by itself.
    pub json: String,
    /// E-nodes, weights and inputs included.
    pub nodes: usize,
    /// Classes of equal values.
    pub classes: usize,
    /// Rewrites that were applied.
    pub rewrites: usize,
    /// Iterations.
    pub iterations: usize,
    /// Why it grew no more.
    pub stop: Stop,
}

/// Grows the e-graph of a model.
///
/// # Errors
///
/// A model, a rule or a price list that cannot be read; a rule that makes values of different types
/// equal.
pub fn saturate(request: &SaturateRequest, stop: &dyn Fn() -> bool) -> Result<Saturated, Failure> {
    let Priced { graph, library, writable, prices, .. } = request.open()?;
    let rules = Rules::of(&library)?;
    let growth = Growth::new(graph, &rules, &writable, request.limits);
    let mut growth = growth.scheduled(request.schedule).with_cycles(request.cycles);
    let wrong =
        |clash: &dyn std::fmt::Display| Failure::new(clash.to_string()).hint("a rule's sides have one type: `regraft rules check` tells");
    let ended = growth.saturate(&mut || stop()).map_err(|clash| wrong(&clash))?;
    let mut alone = Alone::new(&*prices);
    let named = ToExtract::named(&growth, &mut |space, id| alone.price(space, id) as f64);
    let named = named.map_err(|error| Failure::new(format!("{}: {error}", request.model.display())).hint(error.hint()))?;
    Ok(Saturated {
        json: named.to_json(),
        nodes: growth.space().len(),
        classes: growth.space().classes(),
        rewrites: growth.applied().len(),
        iterations: growth.iterations(),
        stop: ended,
    })
}

/// How to search e-graphs.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// All rules at once.
    Saturation {
        /// How to extract.
        method: Method,
        /// Whether a descent improves what was extracted.
        polish: bool,
    },
    /// One rule after the other, chosen by simulations; its own limits do not count.
    Simulations(Mcts),
}

/// What a search of e-graphs makes of a model.
#[derive(Clone, Debug, Serialize)]
pub struct SearchedEGraphs {
    /// What a run of the model costs, ns.
    pub input: u64,
    /// What a run costs then, ns.
    pub cost: u64,
    /// Rewrites that lead from the model to it, by their names.
    pub rewrites: BTreeMap<String, usize>,
    /// E-nodes, or e-graphs, looked at.
    pub states: u64,
    /// Whether it ran to its end, rather than out of time.
    pub complete: bool,
    /// How long it took, with what is told of its steps.
    pub seconds: f64,
    /// E-graphs on the way, the first before anything was applied; empty unless asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<EGraphStep>,
}

/// An e-graph on the way.
#[derive(Clone, Debug, Serialize)]
pub struct EGraphStep {
    /// E-nodes, weights and inputs included.
    pub nodes: usize,
    /// What is cheapest in it, each e-node priced alone, ns.
    pub cost: f64,
    /// How often rules were applied in the step that led to it, by their names.
    pub applied: BTreeMap<String, usize>,
}

/// Searches the e-graphs of a model, for at most so long; `traced` says whether steps are told.
///
/// # Errors
///
/// A model, a rule or a price list that cannot be read.
pub fn search(
    request: &SaturateRequest,
    by: By,
    time: Duration,
    traced: bool,
    stop: &dyn Fn() -> bool,
) -> Result<SearchedEGraphs, Failure> {
    let Priced { graph, library, writable, prices, .. } = request.open()?;
    let start = Instant::now();
    let mut budget = || stop() || start.elapsed() >= time;
    let mut engine = Engine::new(graph, &*prices);
    let mut matcher = Matcher::new(&library, &writable);
    let input = engine.cost();
    let (mut steps, mut before, mut alone) = (Vec::new(), 0, Alone::new(&*prices));
    let mut observe = |growth: &Growth<'_>| {
        if !traced {
            return;
        }
        let mut applied: BTreeMap<String, usize> = BTreeMap::new();
        for one in growth.applied().iter().skip(before) {
            *applied.entry(growth.rules().rules()[one.rule].name.to_string()).or_default() += 1;
        }
        before = growth.applied().len();
        let priced = ToExtract::of(growth, &mut |space, id| alone.price(space, id) as f64);
        let cost = priced.ok().and_then(|priced| Some(priced.cheapest(Method::Quick, &mut || false).ok()?.1.cost));
        steps.push(EGraphStep { nodes: growth.space().len(), cost: cost.unwrap_or_default(), applied });
    };
    let outcome = match by {
        By::Saturation { method, polish } => {
            let SaturateRequest { limits, schedule, cycles, .. } = *request;
            Saturate { limits, schedule, cycles, method, polish, room: usize::MAX }.observed(
                &mut engine,
                &mut matcher,
                &mut budget,
                &mut observe,
            )
        }
        By::Simulations(mcts) => Mcts { limits: request.limits, ..mcts }.observed(&mut engine, &mut matcher, &mut budget, &mut observe),
    };
    let (mut cost, mut rewrites) = (input, BTreeMap::new());
    if let Some(best) = outcome.scripts.first() {
        cost = best.cost;
        best.moves.iter().for_each(|step| *rewrites.entry(step.patch().cause.to_string()).or_default() += 1);
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(SearchedEGraphs { input, cost, rewrites, states: outcome.visited, complete: outcome.complete, seconds, steps })
}
