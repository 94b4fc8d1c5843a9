//! A rule on all instances with small sizes, each compared by exact expressions.

use std::collections::HashMap;
use std::ops::AddAssign;

use regraft_ir::text;
use regraft_prove::{Exactness, settled};
use regraft_rules::sample::Instance;
use regraft_rules::{Case, Domain, Rule};

/// The outcomes over all combinations of a rule's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Instances whose sides are the same expressions.
    pub equal: u64,
    /// Combinations that the guards refuse.
    pub guarded: u64,
    /// Combinations that the operators of the source refuse (a window larger than the image, or
    /// entirely in the padding).
    pub untyped: u64,
    /// Combinations that equal others with two axes exchanged; whole branches count as one.
    pub mirrored: u64,
    /// Instances that expressions leave open, and on which numbers agree.
    pub undecided: u64,
    /// Instances whose sides differ, or whose target cannot be built.
    pub refuted: u64,
    /// The first refuted one, otherwise the first undecided one, and why.
    pub first: Option<String>,
}

impl Tally {
    /// Combinations examined, without mirrored ones.
    pub fn obligations(&self) -> u64 {
        self.equal + self.undecided + self.refuted + self.guarded + self.untyped
    }

    /// Instances whose sides were compared.
    pub fn compared(&self) -> u64 {
        self.equal + self.undecided + self.refuted
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        let keep = self.first.is_some() && (self.refuted > 0 || other.refuted == 0);
        self.equal += other.equal;
        self.guarded += other.guarded;
        self.untyped += other.untyped;
        self.mirrored += other.mirrored;
        self.undecided += other.undecided;
        self.refuted += other.refuted;
        if !keep {
            self.first = other.first.or(self.first.take());
        }
    }
}

/// Compares both sides of `rule` on every instance with sizes up to `bound` whose first choices are
/// `prefix`. `None` if `stopped` interrupts it.
pub fn validate(rule: &Rule, bound: i64, prefix: &[u64], stopped: &dyn Fn() -> bool) -> Option<Tally> {
    let mut tally = Tally::default();
    for (at, case) in Domain::new(rule, bound, prefix).enumerate() {
        if at % 64 == 0 && stopped() {
            return None;
        }
        match case {
            Case::Untyped => tally.untyped += 1,
            Case::Guarded => tally.guarded += 1,
            Case::Mirrored => tally.mirrored += 1,
            Case::Wrong(why) => tally += Tally { refuted: 1, first: Some(why), ..Tally::default() },
            Case::Instance(instance) => match settled(&instance.before, &instance.after, &HashMap::new()) {
                Exactness::Equal => tally.equal += 1,
                Exactness::Undefined(_) => tally.untyped += 1,
                Exactness::Different { output, element } => {
                    let why = format!("element {element} of output {output} differs in\n{}", shown(&instance));
                    tally += Tally { refuted: 1, first: Some(why), ..Tally::default() };
                }
                Exactness::Undecided(why) => {
                    tally += Tally { undecided: 1, first: Some(format!("{why}, in\n{}", shown(&instance))), ..Tally::default() };
                }
            },
        }
    }
    Some(tally)
}

fn shown(instance: &Instance) -> String {
    format!("{}=>\n{}", text::print(&instance.before), text::print(&instance.after))
}
