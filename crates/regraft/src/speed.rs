//! How fast the search engine is: moves applied and undone per second on one core.

use std::time::{Duration, Instant};

use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, Op, OpKind, TensorType};
use regraft_onnx::Speller;
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Matcher, all_moves, next_moves};
use serde::Serialize;

use crate::error::Failure;

/// Moves applied and undone between two readings of the clock.
const BATCH: usize = 256;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct EngineSpeed {
    /// Nodes of the graph, weights and inputs included.
    pub nodes: usize,
    /// Rules.
    pub rules: usize,
    /// Moves available in the graph as it is.
    pub moves: usize,
    /// Moves applied and undone, with key and cost kept up to date.
    pub pairs: u64,
    /// The same per second.
    pub pairs_per_second: f64,
    /// Moves applied and undone, finding the moves of the state in between (incremental matching),
    /// when no surroundings like these have been seen: per second, each move once.
    pub first_expansions_per_second: f64,
    /// The same where they have been.
    pub expansions: u64,
    /// The same per second.
    pub expansions_per_second: f64,
    /// Milliseconds to find all moves of the graph from scratch.
    pub match_all_ms: f64,
    /// True if key and cost at the end equal those at the start, bit for bit.
    pub restored: bool,
}

/// Whether operators can be written in one model.
#[derive(Debug)]
pub struct InModel(pub(crate) Speller);

impl Writable for InModel {
    fn check(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), String> {
        if op.kind() == OpKind::Constant { Ok(()) } else { self.0.can_spell(op, inputs, outputs).map_err(|e| e.to_string()) }
    }
}

/// Applies and undoes every available move of `graph` in turn: for `budget` / 2 without looking for
/// new moves, for `budget` / 2 with.
pub fn measure(
    graph: &Graph,
    speller: Speller,
    library: &Library,
    budget: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<EngineSpeed, Failure> {
    let mut symbols = Vec::new();
    for ty in graph.inputs().iter().filter_map(|id| graph.ty(id.out())) {
        ty.shape.iter().for_each(|d| d.symbols(&mut symbols));
    }
    let prices = Roofline::new(symbols.into_iter().map(|s| (s.to_string(), 1)).collect::<Bindings>());
    let writable = InModel(speller);
    let mut engine = Engine::new(graph.clone(), &prices);
    let mut matcher = Matcher::new(library, &writable);
    let (key, cost) = (engine.key(), engine.cost());
    let matching = Instant::now();
    let moves = all_moves(&mut engine, &mut matcher);
    let match_all_ms = matching.elapsed().as_secs_f64() * 1e3;
    let each: Vec<_> = moves.iter().cloned().collect();
    if each.is_empty() {
        return Err(Failure::new("no rule applies to this model: there is nothing to apply and undo").hint("try another model"));
    }

    // Prices are computed, and rules matched, once per kind of place; a search visits each of them
    // many times.
    let first = Instant::now();
    for step in &each {
        engine.apply(step);
        std::hint::black_box(next_moves(&mut engine, &mut matcher, &moves));
        engine.undo();
    }
    let first_expansions_per_second = each.len() as f64 / first.elapsed().as_secs_f64().max(1e-9);
    let (pairs, seconds) = repeat(budget / 2, stop, &each, BATCH, |step| {
        engine.apply(step);
        engine.undo();
    });
    let (expansions, matching_seconds) = repeat(budget / 2, stop, &each, 1, |step| {
        engine.apply(step);
        std::hint::black_box(next_moves(&mut engine, &mut matcher, &moves));
        engine.undo();
    });
    let fresh = Engine::new(engine.graph().clone(), &prices);
    let restored = (engine.key(), engine.cost()) == (key, cost) && (fresh.key(), fresh.cost()) == (key, cost);
    Ok(EngineSpeed {
        nodes: graph.len(),
        rules: library.rules().len(),
        moves: each.len(),
        pairs,
        pairs_per_second: pairs as f64 / seconds,
        first_expansions_per_second,
        expansions,
        expansions_per_second: expansions as f64 / matching_seconds,
        match_all_ms,
        restored,
    })
}

/// Calls `work` on the items in turn until time is up; returns how often, and the seconds it took.
fn repeat<T>(budget: Duration, stop: &dyn Fn() -> bool, items: &[T], batch: usize, mut work: impl FnMut(&T)) -> (u64, f64) {
    let start = Instant::now();
    let mut count = 0u64;
    let mut turn = items.iter().cycle();
    loop {
        for item in turn.by_ref().take(batch) {
            work(item);
        }
        count += batch as u64;
        if start.elapsed() >= budget || stop() {
            return (count, start.elapsed().as_secs_f64().max(1e-9));
        }
    }
}
