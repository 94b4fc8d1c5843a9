//! Who answers what a replay asks.

use regraft_ir::folded::{Differences, Folded};
use regraft_prove::{Verdict, equal};

use crate::region::Region;

/// Who is asked, and believed.
pub trait Oracle {
    /// Whether the sides of a region are equal.
    fn equal(&mut self, region: &Region) -> Verdict {
        equal(&region.before, &region.after)
    }
    /// How far written constants are from their expressions.
    fn differences(&mut self, folded: &[Folded]) -> Vec<Differences> {
        Folded::all_differences(&folded.iter().collect::<Vec<_>>())
    }
}

/// Works everything out.
pub struct Prover;

impl Oracle for Prover {}
