//! Dynamic programming plus pruning (OCGGS, PVLDB 13(11) 2020, Algorithm 2): a state takes over the
//! moves of the one before.
//!
//! The engine takes over moves in every search, and looks around the change for others. What is
//! particular here is what is *not* looked at: a move that is new, and takes away nothing that the
//! latest move made (Theorem 5, which holds for monotone moves alone).

use crate::engine::Moves;
use crate::ordered::{Order, Ordered};
use crate::traversal::{Exhaustive, Traversal};

/// Tries the sequences of at most `steps` moves whose keys rise, and in which each move was
/// possible before the latest one or takes away what that made.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    /// Longest sequence.
    pub steps: usize,
    /// Which moves are ordered.
    pub order: Order,
}

impl Exhaustive for Dpp {
    const NAME: &'static str = "dpp";
    const SOUND: bool = false;

    fn steps(&self) -> usize {
        self.steps
    }

    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        Ordered::new(self.order, true, traversal.library()).explore(traversal, moves);
    }
}
