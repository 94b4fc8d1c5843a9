//! What `check` claims about a pair, and what it assumes: the one place that knows its wording.

use regraft::check::CheckReport;
use regraft_ir::Trust;

/// An assumption that would make two different expressions equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clause {
    /// Floats are reals: nothing is rounded, and nothing overflows.
    Reals,
    /// Inputs, and everything computed from them, are finite numbers, and functions are defined
    /// where they are used.
    Finite,
    /// Sizes of the same name are equal.
    Sizes,
    /// Sums of integers along axes fit their type.
    Sums,
}

/// Names of clauses in the catalogue, and words by which a verdict refers to them.
const CLAUSES: &[(Clause, &str, &[&str])] = &[
    (Clause::Reals, "reals", &["real", "round"]),
    (Clause::Finite, "finite", &["finite", "real", "defined", "divisor", "overflow"]),
    (Clause::Sizes, "sizes", &["size"]),
    (Clause::Sums, "sums", &["sums of integers"]),
];

impl Clause {
    /// The clause of this name in the catalogue.
    pub fn from_name(name: &str) -> Option<Clause> {
        CLAUSES.iter().find(|c| c.1 == name).map(|c| c.0)
    }

    /// Its name in the catalogue.
    pub fn name(self) -> &'static str {
        CLAUSES.iter().find(|c| c.0 == self).map_or("", |c| c.1)
    }

    /// Whether a verdict with this assumption assumes the clause.
    fn is_named_by(self, assumption: &str) -> bool {
        CLAUSES.iter().any(|c| c.0 == self && c.2.iter().any(|word| assumption.contains(word)))
    }
}

/// A claim about a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Equal, unconditionally.
    Exact,
    /// Equal under these assumptions.
    Assuming(Vec<String>),
    /// Equal up to rounded constants.
    Bounded,
    /// No claim.
    Refused,
}

/// A report's claim: its word, and any assumptions that follow `proved`.
pub fn claim(report: &CheckReport) -> Claim {
    match report.known() {
        _ if !report.same => Claim::Refused,
        Trust::Bounded => Claim::Bounded,
        Trust::Proved if report.assumptions().is_empty() => Claim::Exact,
        Trust::Proved => Claim::Assuming(report.assumptions().to_vec()),
        _ => Claim::Refused,
    }
}

/// The judgement of a claim about a pair that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is false.
    Wrong,
    /// It names an assumption under which it is true, or is documented to make it.
    Excused,
    /// It is not a proof.
    NoProof,
}

impl Claim {
    /// Judges the claim about a pair that differs unless `clause` is assumed.
    pub fn judge(&self, clause: Option<Clause>) -> Judgement {
        let named = |assumptions: &[String]| clause.is_some_and(|c| assumptions.iter().any(|a| c.is_named_by(a)));
        match self {
            Claim::Bounded | Claim::Refused => Judgement::NoProof,
            Claim::Assuming(assumptions) if named(assumptions) => Judgement::Excused,
            Claim::Exact | Claim::Assuming(_) => Judgement::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assumption_excuses_what_it_explains() {
        let assuming = |text: &str| Claim::Assuming(vec![text.into()]);
        assert_eq!(assuming("floats as reals").judge(Some(Clause::Reals)), Judgement::Excused);
        assert_eq!(assuming("floats as reals").judge(None), Judgement::Wrong);
        assert_eq!(assuming("sizes named alike are equal").judge(Some(Clause::Reals)), Judgement::Wrong);
        assert_eq!((Claim::Exact.judge(None), Claim::Bounded.judge(None)), (Judgement::Wrong, Judgement::NoProof));
    }
}
