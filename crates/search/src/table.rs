//! Exhaustive search with a transposition table: a state is explored again only if more moves may
//! follow than before.
//!
//! The key of a state is that of its graph, so permutations of independent moves, detours and ways
//! back all meet in one entry. Unlike the order of OCGGS (PVLDB 13(11) 2020, Theorem 4), this needs
//! no assumption about rules.

use rustc_hash::FxHashMap;

use crate::engine::Moves;
use crate::traversal::{Exhaustive, Traversal};

/// Visits every state that at most `steps` moves lead to.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Longest sequence.
    pub steps: usize,
}

impl Exhaustive for Table {
    const NAME: &'static str = "table";
    const SOUND: bool = true;

    fn steps(&self) -> usize {
        self.steps
    }

    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        let mut explored = FxHashMap::from_iter([(traversal.engine.key(), self.steps)]);
        explore(traversal, moves, &mut explored);
    }
}

/// Explores the current state; `explored` holds how many moves could follow each state when it was
/// explored.
fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &Moves, explored: &mut FxHashMap<u128, usize>) {
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
