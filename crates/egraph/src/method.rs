//! What all methods have in common.

use crate::problem::Problem;
use regraft_ir::Budget;

/// A way to choose nodes.
pub trait Extractor {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// A solution, trimmed to what the roots need; `None` if there is none. The caller checks it.
    fn solve(&self, problem: &Problem, budget: &mut dyn Budget) -> Option<Answer>;
}

/// What a method found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Chosen nodes, at most one per class.
    pub(crate) nodes: Vec<u32>,
    /// What every solution costs at least, in units of the e-graph; `None` if the method shows
    /// none.
    pub(crate) bound: Option<u64>,
}

impl Answer {
    /// A solution that comes without a bound.
    pub(crate) fn unbounded(nodes: Vec<u32>) -> Answer {
        Answer { nodes, bound: None }
    }
}
