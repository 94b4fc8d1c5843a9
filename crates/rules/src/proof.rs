//! Proofs of rules as data: what was shown, for which text, on which instances.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::draw::Draw;
use crate::rule::Rule;
use regraft_ir::Trust;

/// First line of a list of proofs.
const HEADER: &str = "regraft proofs 1";

/// The proofs of the shipped rules, compiled in.
pub const SHIPPED_PROOFS: &str = include_str!("../../../rules/library.proofs");

/// What was proved about one rule, and how to replay it: each instance is drawn from its seed, and
/// both its sides have the same normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The rule's name.
    pub rule: Arc<str>,
    /// [`Rule::digest`] of the proved rule.
    pub digest: u128,
    /// How well it is established.
    pub trust: Trust,
    /// The instances.
    pub instances: Vec<Draw>,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:032x} {}", self.rule, self.digest, self.trust)?;
        self.instances.iter().try_for_each(|draw| write!(f, " {draw}"))
    }
}

/// A list of proofs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proofs(Vec<Proof>);

impl Proofs {
    /// The proofs of the shipped rules.
    pub fn shipped() -> Proofs {
        Proofs::parse(SHIPPED_PROOFS)
    }

    /// A list of these proofs.
    pub fn new(proofs: Vec<Proof>) -> Proofs {
        Proofs(proofs)
    }

    /// Reads a list. Malformed lines are ignored: a rule without a proof gains no trust.
    pub fn parse(text: &str) -> Proofs {
        let mut lines = text.lines();
        if lines.next().map(str::trim) != Some(HEADER) {
            return Proofs::default();
        }
        Proofs(lines.filter_map(proof).collect())
    }

    /// The list as text, one proof per line.
    pub fn text(&self) -> String {
        let lines: String = self.0.iter().map(|proof| format!("{proof}\n")).collect();
        format!("{HEADER}\n{lines}")
    }

    /// The proof of exactly this rule, if there is one.
    pub fn of(&self, rule: &Rule) -> Option<&Proof> {
        self.0.iter().find(|proof| proof.rule == rule.name).filter(|proof| proof.digest == rule.digest())
    }

    /// Gives each rule the trust of its proof.
    pub fn grant(&self, rules: &mut [Rule]) {
        let known: HashMap<&str, &Proof> = self.0.iter().map(|proof| (proof.rule.as_ref(), proof)).collect();
        for rule in rules {
            if let Some(proof) = known.get(rule.name.as_ref()).filter(|proof| proof.digest == rule.digest()) {
                rule.trust = proof.trust;
            }
        }
    }
}

fn proof(line: &str) -> Option<Proof> {
    let mut words = line.split_whitespace();
    let (rule, digest, trust) = (words.next()?, words.next()?, words.next()?);
    Some(Proof {
        rule: rule.into(),
        digest: u128::from_str_radix(digest, 16).ok()?,
        trust: trust.parse().ok()?,
        instances: words.map(|draw| draw.parse().ok()).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::sample::Sizes;

    #[test]
    fn a_proof_is_of_one_text() {
        let text = |class: &str| format!(";; a\n(rule r (relu (relu ?x)) => (relu ?x) (numeric {class}) (doc \"d\") (instance (?x 2 3)))");
        let mut rules = parse("t.rules", &text("exact")).unwrap();
        let instances = vec![Draw::new(Sizes::Open, 7), Draw { sizes: Sizes::Known, seed: 0, changes: vec![4, 1] }];
        let proof = Proof { rule: "r".into(), digest: rules[0].digest(), trust: Trust::Proved, instances };
        let proofs = Proofs::new(vec![proof]);
        assert_eq!(Proofs::parse(&proofs.text()), proofs);
        proofs.grant(&mut rules);
        assert_eq!(rules[0].trust, Trust::Proved);
        let mut others = parse("t.rules", &text("reassociates")).unwrap();
        proofs.grant(&mut others);
        assert_eq!((others[0].trust, proofs.of(&others[0])), (Trust::Tested, None));
        for damaged in ["", "regraft proofs 2\n", "regraft proofs 1\nr zz proved open:1", "regraft proofs 1\nr 0 proved open:x\n\n"] {
            assert_eq!(Proofs::parse(damaged), Proofs::default(), "{damaged}");
        }
    }
}
