//! Cost-based backtracking search (TASO, SOSP 2019, section 5), with its published defects fixed:
//! the start state is a candidate from the beginning, every state has a collision-resistant key,
//! and a re-created node costs what the original did.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use regraft_cost::Ns;
use rustc_hash::FxHashSet;

use crate::best::Best;
use crate::budget::Budget;
use crate::engine::{Engine, Matcher};
use crate::greedy::Greedy;
use crate::lineage::State;
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

impl Strategy for Backtrack {
    fn name(&self) -> &'static str {
        "backtrack"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let start = engine.depth();
        let mut best = Best::from(Script { moves: Vec::new(), cost: engine.cost(), key: engine.key() }).keeping(self.keep);
        let mut prefix = Vec::new();
        let mut visited = 0;
        if self.descend_first {
            let descent = Greedy::default().search(engine, matcher, budget);
            visited += descent.visited;
            for script in descent.scripts {
                prefix = script.moves.clone();
                best.offer(script.cost, script.key, || script.moves);
            }
            prefix.iter().for_each(|m| engine.apply(m));
        }
        let root_depth = engine.depth();
        let root = State::root(engine);
        let mut seen = FxHashSet::from_iter([root.key]);
        // Ties go to the state found first.
        let mut queue = BinaryHeap::from([(Reverse(root.cost), Reverse(0usize))]);
        let mut states: Vec<Rc<State>> = vec![root];
        let (mut expanded, mut complete) = (0, true);
        while let Some((Reverse(cost), Reverse(at))) = queue.pop() {
            if expanded >= self.expansions || budget.exhausted() {
                complete = false;
                break;
            }
            let bound = (best.cost() as f64 * self.alpha) as Ns;
            if cost > bound {
                continue;
            }
            expanded += 1;
            let state = states[at].clone();
            state.enter(engine);
            for step in state.moves(engine, matcher) {
                engine.apply(step);
                visited += 1;
                let (cost, key) = (engine.cost(), engine.key());
                if cost as f64 <= best.cost() as f64 * self.alpha && seen.insert(key) {
                    let child = state.child(step, engine);
                    best.offer(cost, key, || prefix.iter().cloned().chain(child.path()).collect());
                    queue.push((Reverse(cost), Reverse(states.len())));
                    states.push(child);
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
        Outcome { scripts: best.into_scripts(), visited, complete }
    }
}
