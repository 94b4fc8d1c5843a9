//! Extraction by tree cost.

use crate::method::{Answer, Extractor};
use crate::problem::Problem;
use regraft_ir::Budget;

/// Takes the cheapest tree of each class, as the extractor of egg does: what is shared is counted
/// as often as it occurs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tree;

impl Extractor for Tree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn solve(&self, problem: &Problem, _: &mut dyn Budget) -> Option<Answer> {
        Some(Answer::unbounded(tree(problem)?))
    }
}

/// The solution made of the cheapest trees, if any.
pub(crate) fn tree(problem: &Problem) -> Option<Vec<u32>> {
    let knuth = problem.knuth(|node| problem.cost_of(node) as f64);
    problem.trimmed(&knuth.derivation.by)
}
