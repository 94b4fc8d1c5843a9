//! The source of answers that a replay relies on.

use regraft_ir::folded::{Differences, Folded};
use regraft_prove::{Verdict, equal};

use crate::region::Region;

/// Answers the questions of a replay, and is trusted.
pub trait Oracle {
    /// Whether the sides of a region are equal.
    fn equal(&mut self, region: &Region) -> Verdict {
        equal(&region.before, &region.after)
    }
    /// How far stored constants are from their expressions.
    fn differences(&mut self, folded: &[Folded]) -> Vec<Differences> {
        Folded::all_differences(&folded.iter().collect::<Vec<_>>())
    }
}

/// Computes every answer.
pub struct Prover;

impl Oracle for Prover {}
