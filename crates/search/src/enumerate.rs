//! All sequences of moves (ENU in OCGGS, PVLDB 13(11) 2020, section 4): what every other exhaustive
//! search is measured against.

use crate::engine::Moves;
use crate::traversal::{Exhaustive, Traversal};

/// Tries every sequence of at most `steps` moves, in depth-first order, whether it has been in a
/// state before or not.
#[derive(Clone, Copy, Debug)]
pub struct Enumerate {
    /// Longest sequence.
    pub steps: usize,
}

impl Exhaustive for Enumerate {
    const NAME: &'static str = "enumerate";
    const SOUND: bool = true;

    fn steps(&self) -> usize {
        self.steps
    }

    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        explore(traversal, moves);
    }
}

fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
    if traversal.left() == 0 {
        return;
    }
    for step in moves {
        if !traversal.enter(step) {
            return;
        }
        if traversal.left() > 0 {
            let next = traversal.next_moves(moves);
            explore(traversal, &next);
        }
        traversal.leave();
    }
}
