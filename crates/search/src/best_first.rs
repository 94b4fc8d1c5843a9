//! `BestFirst`: search of the cheapest state first, as TASO and MetaFlow have it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use regraft_cost::Ns;
use rustc_hash::FxHashSet;

use crate::best::Best;
use crate::engine::{Engine, Matcher, Move};
use crate::lineage::State;
use regraft_ir::Budget;

/// Best-first search over states whose cost stays below `alpha` times the best cost so far.
pub(crate) struct BestFirst<'a> {
    /// States above `alpha` times the best cost are dropped.
    pub(crate) alpha: f64,
    /// Maximum number of states expanded.
    pub(crate) expansions: usize,
    /// Longest sequence of moves, from the state where the search starts.
    pub(crate) steps: usize,
    /// The moves that are tried.
    pub(crate) admits: &'a dyn Fn(&Engine<'_>, &Move) -> bool,
}

impl BestFirst<'_> {
    /// Searches from the engine's current state, to which `prefix` has led, and offers what is
    /// found. The number of states visited, and whether the search ended by itself.
    pub(crate) fn search(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        prefix: &[Arc<Move>],
        best: &mut Best,
    ) -> (u64, bool) {
        let start = engine.depth();
        let root = State::root(engine);
        let mut seen = FxHashSet::from_iter([root.key]);
        // Ties go to the state found first.
        let mut queue = BinaryHeap::from([(Reverse(root.cost), Reverse(0usize))]);
        let mut states: Vec<Rc<State>> = vec![root];
        let (mut expanded, mut visited) = (0, 0);
        while let Some((Reverse(cost), Reverse(at))) = queue.pop() {
            if expanded >= self.expansions || budget.exhausted() {
                return (visited, false);
            }
            let state = states[at].clone();
            if cost > (best.cost() as f64 * self.alpha) as Ns || state.steps >= self.steps {
                continue;
            }
            expanded += 1;
            state.enter(engine);
            for step in state.moves(engine, matcher) {
                if !(self.admits)(engine, step) {
                    continue;
                }
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
            engine.rewind(start);
        }
        (visited, true)
    }
}
