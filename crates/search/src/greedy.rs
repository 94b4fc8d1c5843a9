//! Steepest descent with a short look-ahead over steps that do not pay at once.

use std::sync::Arc;

use regraft_cost::Ns;
use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Move, all_moves, next_moves};
use crate::strategy::{Outcome, Script, Strategy};

/// Applies the move that saves most until none saves anything; before giving up, tries sequences of up to `depth` moves, each building
/// on the one before, of which only the whole must save.
#[derive(Clone, Copy, Debug)]
pub struct Greedy {
    /// Longest sequence that may pay only as a whole; 1 is plain steepest descent.
    pub depth: usize,
    /// A sequence may not raise the cost above `(1 + slack)` times the present cost on its way.
    pub slack: f64,
}

impl Default for Greedy {
    fn default() -> Greedy {
        Greedy { depth: 3, slack: 0.05 }
    }
}

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let start = engine.depth();
        let mut moves = all_moves(engine, matcher);
        let mut script: Vec<Arc<Move>> = Vec::new();
        let (mut visited, mut complete) = (1, true);
        let mut seen = FxHashSet::from_iter([engine.key()]);
        loop {
            if budget.exhausted() {
                complete = false;
                break;
            }
            let before = engine.cost();
            let mut best: Option<(Ns, Vec<Arc<Move>>)> = None;
            for candidate in &moves {
                engine.apply(candidate);
                visited += 1;
                if engine.cost() < best.as_ref().map_or(before, |b| b.0) && !seen.contains(&engine.key()) {
                    best = Some((engine.cost(), vec![candidate.clone()]));
                }
                engine.undo();
            }
            if best.is_none() && self.depth > 1 {
                let limit = before.saturating_add((before as f64 * self.slack) as Ns);
                for candidate in &moves {
                    if budget.exhausted() {
                        complete = false;
                        break;
                    }
                    let mut path = vec![candidate.clone()];
                    self.ahead(engine, matcher, &mut path, &moves, limit, before, &mut best, &mut visited, &seen);
                }
            }
            let Some((_, path)) = best else { break };
            for step in path {
                engine.apply(&step);
                moves = next_moves(engine, matcher, &moves);
                script.push(step);
            }
            seen.insert(engine.key());
        }
        let found = Script { moves: script, cost: engine.cost(), key: engine.key() };
        while engine.depth() > start {
            engine.undo();
        }
        Outcome { scripts: vec![found], visited, complete }
    }
}

impl Greedy {
    /// Applies the last move of `path` and looks for a follow-up that it enabled.
    #[expect(clippy::too_many_arguments, reason = "the state of one depth-first descent")]
    fn ahead(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        path: &mut Vec<Arc<Move>>,
        moves: &[Arc<Move>],
        limit: Ns,
        before: Ns,
        best: &mut Option<(Ns, Vec<Arc<Move>>)>,
        visited: &mut u64,
        seen: &FxHashSet<u128>,
    ) {
        let Some(step) = path.last().cloned() else { return };
        engine.apply(&step);
        *visited += 1;
        let cost = engine.cost();
        if cost < best.as_ref().map_or(before, |b| b.0) && !seen.contains(&engine.key()) {
            *best = Some((cost, path.clone()));
        }
        if path.len() < self.depth && cost <= limit {
            let known: FxHashSet<*const Move> = moves.iter().map(Arc::as_ptr).collect();
            let next = next_moves(engine, matcher, moves);
            for follow in next.iter().filter(|m| !known.contains(&Arc::as_ptr(m))) {
                path.push(follow.clone());
                self.ahead(engine, matcher, path, &next, limit, before, best, visited, seen);
                path.pop();
            }
        }
        engine.undo();
    }
}
