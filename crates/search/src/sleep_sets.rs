//! Exhaustive search with sleep sets (Godefroid, "Partial-Order Methods for the Verification of
//! Concurrent Systems", 1996, chapter 5): of the orders of independent moves, one is tried, and no
//! state is remembered.
//!
//! Whether moves are independent is asked in the state at hand: each must still be possible after the
//! other, and both orders must lead to the same state. That holds for rules of every kind, where an
//! order fixed beforehand (OCGGS, PVLDB 13(11) 2020, Theorem 4) loses graphs if one rewrite enables
//! another through its context.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Move, all_moves};
use crate::strategy::{Outcome, Strategy};
use crate::traversal::Traversal;

/// Visits every state that at most `steps` moves lead to, permutations of independent moves once.
#[derive(Clone, Copy, Debug)]
pub struct SleepSets {
    /// Longest sequence.
    pub steps: usize,
}

/// Moves by their addresses: a move that the one before left intact stays the same.
type Moves = FxHashSet<*const Move>;

/// A move that is not tried again below, since every state that it leads to is reached otherwise.
struct Asleep {
    step: Arc<Move>,
    /// The moves that are still possible after it, in the state at hand.
    intact: OnceCell<Moves>,
}

impl SleepSets {
    /// Searches, and shows every state that it visits.
    pub fn visiting<'e>(
        &self,
        engine: &mut Engine<'e>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        visit: &mut dyn FnMut(&Engine<'e>),
    ) -> Outcome {
        let moves = all_moves(engine, matcher);
        let mut traversal = Traversal::new(engine, matcher, self.steps, budget, visit);
        explore(&mut traversal, &moves, Vec::new());
        traversal.outcome()
    }
}

impl Strategy for SleepSets {
    fn name(&self) -> &'static str {
        "sleep-sets"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}

fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &[Arc<Move>], mut asleep: Vec<Asleep>) {
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
            let after: Moves = next.iter().map(Arc::as_ptr).collect();
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
    fn commutes(&self, step: &Arc<Move>, key: u128, traversal: &mut Traversal<'_, '_, '_>, moves: &[Arc<Move>]) -> bool {
        traversal.enter_again(&self.step);
        let intact = self.intact.get_or_init(|| traversal.next_moves(moves).iter().map(Arc::as_ptr).collect());
        let commutes = intact.contains(&Arc::as_ptr(step)) && traversal.key_after(step) == key;
        traversal.leave();
        commutes
    }
}
