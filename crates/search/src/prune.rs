//! Pruning (OCGGS, PVLDB 13(11) 2020, Algorithm 1): of all permutations of a sequence of moves, one is
//! tried.

use crate::budget::Budget;
use crate::engine::{Engine, Matcher};
use crate::ordered::{Order, Ordered};
use crate::strategy::{Outcome, Strategy};
use crate::traversal::Traversal;

/// Tries the sequences of at most `steps` moves whose keys rise.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// Longest sequence.
    pub steps: usize,
    /// Which moves are ordered.
    pub order: Order,
}

impl Prune {
    /// Searches, and shows every state that it visits.
    pub fn visiting<'e>(
        &self,
        engine: &mut Engine<'e>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        visit: &mut dyn FnMut(&Engine<'e>),
    ) -> Outcome {
        let mut ordered = Ordered::new(self.order, false, matcher.library());
        let mut traversal = Traversal::new(engine, matcher, self.steps, budget, visit);
        ordered.explore(&mut traversal);
        traversal.outcome()
    }
}

impl Strategy for Prune {
    fn name(&self) -> &'static str {
        "prune"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}
