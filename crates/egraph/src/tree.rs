//! Extraction by tree cost.

use crate::budget::Budget;
use crate::method::{Answer, Extractor};
use crate::problem::Problem;

/// Takes the cheapest tree of each class, as the extractor of egg does: what is shared is counted as
/// often as it occurs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tree;

impl Extractor for Tree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn solve(&self, problem: &Problem, _: &mut dyn Budget) -> Option<Answer> {
        let knuth = problem.knuth(|node| problem.cost_of(node) as f64);
        Some(Answer::unbounded(problem.trimmed(&knuth.derivation.by)?))
    }
}
