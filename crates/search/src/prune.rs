//! Pruning (OCGGS, PVLDB 13(11) 2020, Algorithm 1): of all permutations of a sequence of moves, one
//! is tried.

use crate::engine::Moves;
use crate::ordered::{Order, Ordered};
use crate::traversal::{Exhaustive, Traversal};

/// Tries the sequences of at most `steps` moves whose keys rise.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// Longest sequence.
    pub steps: usize,
    /// Which moves are ordered.
    pub order: Order,
}

impl Exhaustive for Prune {
    const NAME: &'static str = "prune";
    const SOUND: bool = false;

    fn steps(&self) -> usize {
        self.steps
    }

    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        Ordered::new(self.order, false, traversal.library()).explore(traversal, moves);
    }
}
