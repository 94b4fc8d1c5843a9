//! Exhaustive search with sleep sets (Godefroid, "Partial-Order Methods for the Verification of
//! Concurrent Systems", 1996, chapter 5): of the orders of independent moves, one is tried, and no
//! state is remembered.
//!
//! Whether moves are independent is asked in the state at hand: each must still be possible after
//! the other, and both orders must lead to the same state. That holds for rules of every kind,
//! where an order fixed beforehand (OCGGS, PVLDB 13(11) 2020, Theorem 4) loses graphs if one
//! rewrite enables another through its context.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::engine::{Move, Moves};
use crate::traversal::{Exhaustive, Traversal};

/// Visits every state that at most `steps` moves lead to, permutations of independent moves once.
#[derive(Clone, Copy, Debug)]
pub struct SleepSets {
    /// Longest sequence.
    pub steps: usize,
}

/// Moves by their addresses: a move that the one before left intact stays the same.
type Addresses = FxHashSet<*const Move>;

/// A move that is not tried again below, since every state that it leads to is reached otherwise.
struct Asleep {
    step: Arc<Move>,
    /// The moves that are still possible after it, in the state at hand.
    intact: OnceCell<Addresses>,
}

impl Exhaustive for SleepSets {
    const NAME: &'static str = "sleep-sets";
    const SOUND: bool = true;

    fn steps(&self) -> usize {
        self.steps
    }

    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        explore(traversal, moves, Vec::new());
    }
}

fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &Moves, mut asleep: Vec<Asleep>) {
    if traversal.left() == 0 {
        return;
    }
    for step in moves {
        if asleep.iter().any(|other| Arc::ptr_eq(&other.step, step)) {
            continue;
        }
        if !traversal.enter(step) {
            return;
        }
        let mut intact = OnceCell::new();
        if traversal.left() > 0 {
            let next = traversal.next_moves(moves);
            let after: Addresses = next.iter().map(Arc::as_ptr).collect();
            let possible: Vec<(&Asleep, u128)> = asleep
                .iter()
                .filter(|other| after.contains(&Arc::as_ptr(&other.step)))
                .map(|other| (other, traversal.key_after(&other.step)))
                .collect();
            // Whether this move is still possible after another one shows where both start.
            traversal.leave();
            let below = possible.into_iter().filter(|(other, key)| other.commutes(step, *key, traversal, moves));
            let below = below.map(|(other, _)| Asleep { step: other.step.clone(), intact: OnceCell::new() }).collect();
            traversal.enter_again(step);
            explore(traversal, &next, below);
            intact = OnceCell::from(after);
        }
        traversal.leave();
        asleep.push(Asleep { step: step.clone(), intact });
    }
}

impl Asleep {
    /// Whether a move is still possible after this one, and leads where this one leads after it.
    fn commutes(&self, step: &Arc<Move>, key: u128, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) -> bool {
        traversal.enter_again(&self.step);
        let intact = self.intact.get_or_init(|| traversal.next_moves(moves).iter().map(Arc::as_ptr).collect());
        let commutes = intact.contains(&Arc::as_ptr(step)) && traversal.key_after(step) == key;
        traversal.leave();
        commutes
    }
}
