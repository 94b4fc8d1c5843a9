//! The verdict on a foreign rule.

use std::fmt;

use regraft_ir::{Trust, text};

use crate::evaluate::Difference;
use crate::family::Family;
use crate::guard::Guards;

/// Whether a rule is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// For all sizes that make both sides well-typed.
    True,
    /// For the sizes that satisfy the guards, which are the weakest found; not for all.
    TrueIf(Guards),
    /// Not under any known guards.
    False,
    /// No verdict, and why.
    Unjudged(String),
}

impl fmt::Display for Soundness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Soundness::True => f.write_str("true for all shapes"),
            Soundness::TrueIf(guards) => write!(f, "true if {guards}"),
            Soundness::False => f.write_str("false"),
            Soundness::Unjudged(why) => write!(f, "not judged: {why}"),
        }
    }
}

/// Sizes for which the sides of a rule differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// Names and sizes of the variables and constants.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// Groups of the convolutions, in order of computation.
    pub groups: Vec<i64>,
    /// Where the sides differ.
    pub difference: Difference,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, shape)) in self.shapes.iter().enumerate() {
            write!(f, "{}{name}{shape:?}", if at == 0 { "" } else { " " })?;
        }
        if self.groups.iter().any(|g| *g != 1) {
            write!(f, ", groups {:?}", self.groups)?;
        }
        write!(f, ": {}", self.difference)
    }
}

/// Both sides of a rule in one of its families, as graphs in the text format of `regraft-ir`. They
/// have the same inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The left side.
    pub before: String,
    /// The right side.
    pub after: String,
}

impl Pair {
    pub(crate) fn of(family: &Family) -> Pair {
        Pair { before: text::print(&family.before), after: text::print(&family.after) }
    }
}

/// Everything found out about a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Index of the rule in the file, from 0.
    pub number: usize,
    /// The rule as algebra; see [`algebra`](crate::algebra).
    pub algebra: String,
    /// Whether it is true.
    pub soundness: Soundness,
    /// How that is known. `ProvedInRange`: for the families of sizes that occurred, of which there
    /// are more; kernels and numbers of groups are fixed in each.
    pub trust: Trust,
    /// Why a rule that holds on all instances was not proved.
    pub unproved: Option<String>,
    /// Why the rule is false, or why it needs its guards.
    pub counterexample: Option<Counterexample>,
    /// Instances that satisfy the guards and on which both sides were computed.
    pub instances: usize,
    /// Families of sizes of these instances, among those examined.
    pub families: usize,
    /// How many of them were proved.
    pub proofs: usize,
    /// Both sides in the families chosen for proof: all of them, unless there are too many.
    pub pairs: Vec<Pair>,
    /// The kinds of the variables, for every typing tried.
    pub typings: Vec<String>,
    /// The first rule of the file that is equal up to variable names.
    pub same_as: Option<usize>,
}

impl Judgement {
    /// Records that both sides were derived from each other in all of [`Judgement::pairs`], by
    /// proved steps: a rule that was only tested then counts as proved.
    pub fn take_derivations(&mut self) {
        if self.trust == Trust::Tested && !self.pairs.is_empty() {
            (self.trust, self.proofs, self.unproved) = (Trust::ProvedInRange, self.pairs.len(), None);
        }
    }
}
