//! Dynamic programming plus pruning (OCGGS, PVLDB 13(11) 2020, Algorithm 2): a state takes over the
//! moves of the one before.
//!
//! The engine takes over moves in every search, and looks around the change for others. What is
//! particular here is what is *not* looked at: a move that is new, and takes away nothing that the
//! latest move made (Theorem 5, which holds for monotone moves alone).

use crate::budget::Budget;
use crate::engine::{Engine, Matcher};
use crate::ordered::{Order, Ordered};
use crate::strategy::{Outcome, Strategy};
use crate::traversal::Traversal;

/// Tries the sequences of at most `steps` moves whose keys rise, and in which each move was possible
/// before the latest one or takes away what that made.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    /// Longest sequence.
    pub steps: usize,
    /// Which moves are ordered.
    pub order: Order,
}

impl Dpp {
    /// Searches, and shows every state that it visits.
    pub fn visiting<'e>(
        &self,
        engine: &mut Engine<'e>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        visit: &mut dyn FnMut(&Engine<'e>),
    ) -> Outcome {
        let mut ordered = Ordered::new(self.order, true, matcher.library());
        let mut traversal = Traversal::new(engine, matcher, self.steps, budget, visit);
        ordered.explore(&mut traversal);
        traversal.outcome()
    }
}

impl Strategy for Dpp {
    fn name(&self) -> &'static str {
        "dpp"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}
