//! What was found about two graphs.

use regraft_ir::Trust;
use regraft_prove::Premises;

/// A value at which the proof stops: its operands are matched, but the value is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The value of the second graph, by its name if it has one, and its operator.
    pub value: String,
    /// Its likely counterpart in the first graph, if there is a guess.
    pub beside: Option<String>,
    /// Why that was not shown.
    pub why: String,
}

/// The findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Equivalence {
    /// Names of outputs that are not known to be equal.
    pub open: Vec<String>,
    /// Where proofs stop, operands first; empty if nothing is open.
    pub gaps: Vec<Gap>,
    /// Constants that were folded.
    pub rounded: usize,
    /// The largest deviation of such a constant from the expression it stands for, relative to the
    /// largest magnitude in it.
    pub bound: f64,
    /// What the proofs assume.
    pub premises: Premises,
    /// Values of the second graph computed by the same operators on equal operands as in the first.
    pub same: usize,
    /// Values that were proved equal to others.
    pub shown: usize,
    /// Number of questions put to the prover.
    pub asked: usize,
}

impl Equivalence {
    /// How well it is known that the graphs are equal.
    pub fn trust(&self) -> Trust {
        match (self.open.is_empty(), self.rounded) {
            (false, _) => Trust::Unproved,
            (true, 0) => Trust::Proved,
            (true, _) => Trust::Bounded,
        }
    }
}
