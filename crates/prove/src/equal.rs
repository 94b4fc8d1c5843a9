//! Equality of two graphs, for all sizes.

use regraft_ir::Graph;

use crate::Verdict;

/// Whether `before` and `after` give the same outputs (by position) for the same inputs (by name), whatever the sizes that their symbols stand for.
pub fn equal(before: &Graph, after: &Graph) -> Verdict {
    if before.inputs() == after.inputs() && before.outputs().is_empty() && after.outputs().is_empty() {
        return Verdict::Proved;
    }
    Verdict::Unproved("no prover".into())
}
