//! `Guided`: exact search whose beams take advice.

use regraft_ir::Budget;

use crate::advice::Advisor;
use crate::engine::{Engine, Matcher};
use crate::exact::Exact;
use crate::strategy::{Outcome, Region, Strategy};

/// [`Exact`], where of moves to equally cheap states the beams take the more likely one first.
#[derive(Clone, Copy, Debug)]
pub struct Guided<'g> {
    /// The search.
    pub exact: Exact,
    /// Who says what is likely.
    pub advisor: &'g dyn Advisor,
}

impl Strategy for Guided<'_> {
    fn name(&self) -> &'static str {
        "guided-exact"
    }

    fn is_exhaustive(&self) -> bool {
        true
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.search_regions(engine, matcher, budget).0
    }

    fn search_after(&self, known: &Outcome, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.exact.run((Some(known), Some(self.advisor)), engine, matcher, budget).0
    }

    fn search_regions(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> (Outcome, Vec<Region>) {
        self.exact.run((None, Some(self.advisor)), engine, matcher, budget)
    }
}
