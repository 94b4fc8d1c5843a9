//! Exhaustive search with a transposition table: a state is explored again only if more moves may
//! follow than before.
//!
//! The key of a state is that of its graph, so permutations of independent moves, detours and ways
//! back all meet in one entry. Unlike the order of OCGGS (PVLDB 13(11) 2020, Theorem 4), this needs no
//! assumption about rules.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Move, all_moves};
use crate::strategy::{Outcome, Strategy};
use crate::traversal::Traversal;

/// Visits every state that at most `steps` moves lead to.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Longest sequence.
    pub steps: usize,
}

impl Table {
    /// Searches, and shows every state that it visits.
    pub fn visiting<'e>(
        &self,
        engine: &mut Engine<'e>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        visit: &mut dyn FnMut(&Engine<'e>),
    ) -> Outcome {
        let moves = all_moves(engine, matcher);
        let mut explored = FxHashMap::from_iter([(engine.key(), self.steps)]);
        let mut traversal = Traversal::new(engine, matcher, self.steps, budget, visit);
        explore(&mut traversal, &moves, &mut explored);
        traversal.outcome()
    }
}

impl Strategy for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}

/// Explores the current state; `explored` holds how many moves could follow each state when it was
/// explored.
fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &[Arc<Move>], explored: &mut FxHashMap<u128, usize>) {
    if traversal.left() == 0 {
        return;
    }
    for step in moves {
        if !traversal.enter(step) {
            return;
        }
        let (key, left) = (traversal.engine.key(), traversal.left());
        let is_new = explored.get(&key).is_none_or(|before| *before < left);
        if is_new {
            explored.insert(key, left);
            if left > 0 {
                let next = traversal.next_moves(moves);
                explore(traversal, &next, explored);
            }
        }
        traversal.leave();
    }
}
