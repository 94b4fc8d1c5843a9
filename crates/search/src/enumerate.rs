//! All sequences of moves (ENU in OCGGS, PVLDB 13(11) 2020, section 4): what every other exhaustive
//! search is measured against.

use std::sync::Arc;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Move, all_moves};
use crate::strategy::{Outcome, Strategy};
use crate::traversal::Traversal;

/// Tries every sequence of at most `steps` moves, in depth-first order, whether it has been in a
/// state before or not.
#[derive(Clone, Copy, Debug)]
pub struct Enumerate {
    /// Longest sequence.
    pub steps: usize,
}

impl Enumerate {
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
        explore(&mut traversal, &moves);
        traversal.outcome()
    }
}

impl Strategy for Enumerate {
    fn name(&self) -> &'static str {
        "enumerate"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}

fn explore(traversal: &mut Traversal<'_, '_, '_>, moves: &[Arc<Move>]) {
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
