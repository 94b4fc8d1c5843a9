//! Cost-based backtracking search (TASO, SOSP 2019, section 5), with its published defects fixed:
//! the start state is a candidate from the beginning, every state has a collision-resistant key,
//! and a re-created node costs what the original did.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use regraft_cost::Ns;
use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Move, all_moves, next_moves};
use crate::greedy::Greedy;
use crate::strategy::{Outcome, Script, Strategy};

/// Best-first search over states whose cost stays below `alpha` times the best cost so far.
#[derive(Clone, Copy, Debug)]
pub struct Backtrack {
    /// States above `alpha` times the best cost are dropped.
    pub alpha: f64,
    /// Maximum number of states expanded.
    pub expansions: usize,
    /// Maximum number of scripts returned.
    pub keep: usize,
    /// Starts from the result of steepest descent rather than from the input: whole networks have
    /// hundreds of independent matches, and best-first search alone would spend its budget on their
    /// combinations.
    pub descend_first: bool,
}

impl Default for Backtrack {
    fn default() -> Backtrack {
        Backtrack { alpha: 1.05, expansions: 60, keep: 4, descend_first: true }
    }
}

/// A state as the path to it, shared with its ancestors.
struct State {
    parent: Option<Rc<State>>,
    step: Option<Arc<Move>>,
    /// Moves of this state, found when it is expanded; most states never are.
    moves: OnceCell<Vec<Arc<Move>>>,
    cost: Ns,
    key: u128,
}

impl State {
    fn path(&self) -> Vec<Arc<Move>> {
        let mut path: Vec<Arc<Move>> = self.step.iter().cloned().collect();
        let mut at = self.parent.clone();
        while let Some(state) = at {
            path.extend(state.step.iter().cloned());
            at = state.parent.clone();
        }
        path.reverse();
        path
    }
}

impl Strategy for Backtrack {
    fn name(&self) -> &'static str {
        "backtrack"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let start = engine.depth();
        let base = Script { moves: Vec::new(), cost: engine.cost(), key: engine.key() };
        let mut best: Vec<Script> = vec![base];
        let mut prefix = Vec::new();
        let mut visited = 0;
        if self.descend_first {
            let descent = Greedy::default().search(engine, matcher, budget);
            visited += descent.visited;
            for script in descent.scripts {
                prefix = script.moves.clone();
                remember(&mut best, script, self.keep);
            }
            prefix.iter().for_each(|m| engine.apply(m));
        }
        let root_depth = engine.depth();
        let moves = all_moves(engine, matcher);
        let root = Rc::new(State { parent: None, step: None, moves: OnceCell::from(moves), cost: engine.cost(), key: engine.key() });
        let mut seen = FxHashSet::from_iter([root.key]);
        // Ties go to the state found first.
        let mut queue = BinaryHeap::from([(Reverse(root.cost), Reverse(0usize))]);
        let mut states = vec![root];
        let (mut expanded, mut complete) = (0, true);
        while let Some((Reverse(cost), Reverse(at))) = queue.pop() {
            if expanded >= self.expansions || budget.exhausted() {
                complete = false;
                break;
            }
            let bound = (best[0].cost as f64 * self.alpha) as Ns;
            if cost > bound {
                continue;
            }
            expanded += 1;
            let state = states[at].clone();
            for step in state.path() {
                engine.apply(&step);
            }
            let moves = state.moves.get_or_init(|| match state.parent.as_ref().and_then(|p| p.moves.get()) {
                Some(before) => next_moves(engine, matcher, before),
                None => all_moves(engine, matcher),
            });
            for step in moves {
                engine.apply(step);
                visited += 1;
                let (cost, key) = (engine.cost(), engine.key());
                if cost as f64 <= best[0].cost as f64 * self.alpha && seen.insert(key) {
                    let child = State { parent: Some(state.clone()), step: Some(step.clone()), moves: OnceCell::new(), cost, key };
                    if best.len() < self.keep || best.last().is_some_and(|worst| cost < worst.cost) {
                        let moves = prefix.iter().cloned().chain(child.path()).collect();
                        remember(&mut best, Script { moves, cost, key }, self.keep);
                    }
                    queue.push((Reverse(cost), Reverse(states.len())));
                    states.push(Rc::new(child));
                }
                engine.undo();
            }
            while engine.depth() > root_depth {
                engine.undo();
            }
        }
        while engine.depth() > start {
            engine.undo();
        }
        Outcome { scripts: best, visited, complete }
    }
}

fn remember(best: &mut Vec<Script>, script: Script, keep: usize) {
    if best.iter().any(|b| b.key == script.key) {
        return;
    }
    let at = best.partition_point(|b| b.cost <= script.cost);
    best.insert(at, script);
    best.truncate(keep.max(1));
}
