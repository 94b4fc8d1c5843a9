//! The default: steepest descent, in two ways.

use crate::budget::Budget;
use crate::engine::{Engine, Matcher};
use crate::greedy::Greedy;
use crate::strategy::{Outcome, Strategy};

/// The better of two descents: one that always takes what saves most, and one that makes no pieces
/// before nothing else saves. The first may put a convolution into a fast form that keeps it from being
/// merged with its neighbours; the second may merge what is faster apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
}

impl Strategy for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let greedy = Greedy { steps: self.steps, ..Greedy::default() };
        let mut found = greedy.search(engine, matcher, budget);
        if budget.exhausted() {
            return Outcome { complete: false, ..found };
        }
        let other = Greedy { pieces_last: true, ..greedy }.search(engine, matcher, budget);
        found.visited += other.visited;
        found.complete &= other.complete;
        found.scripts.extend(
            other.scripts.into_iter().filter(|script| found.scripts.iter().all(|known| known.key != script.key)).collect::<Vec<_>>(),
        );
        found.scripts.sort_by_key(|script| script.cost);
        found
    }
}
