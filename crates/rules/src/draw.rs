//! How to reproduce an instance of a rule: a seed, and the changes to what it draws.

use std::fmt;
use std::str::FromStr;

use crate::changes::changes;
use crate::draft::Draft;
use crate::rule::Rule;
use crate::sample::{Instance, Miss, Sizes, draw_sized, feeds, rewritten};

/// An instance of a rule: drawn from its instance clause, then changed step by step where the
/// clause is too narrow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Draw {
    /// What stands for sizes.
    pub sizes: Sizes,
    /// The seed of the random choices.
    pub seed: u64,
    /// The changes, each by its index among all possible ones.
    pub changes: Vec<u32>,
}

impl Draw {
    /// An unchanged instance.
    pub fn new(sizes: Sizes, seed: u64) -> Draw {
        Draw { sizes, seed, changes: Vec::new() }
    }

    /// The instance, which is the same every time.
    pub fn instance(&self, rule: &Rule) -> Result<Instance, Miss> {
        if self.changes.is_empty() {
            return draw_sized(rule, self.seed, self.sizes);
        }
        let none = || Miss::Draw("there is no such change".into());
        let drawn = draw_sized(rule, self.seed, Sizes::Known)?;
        let mut draft = Draft::of(&drawn.before).ok_or_else(none)?;
        for change in &self.changes {
            draft = changes(&draft).into_iter().nth(*change as usize).ok_or_else(none)?;
        }
        changed(rule, &draft, self)
    }
}

/// The instance of a changed source.
pub(crate) fn changed(rule: &Rule, draft: &Draft, draw: &Draw) -> Result<Instance, Miss> {
    let known = draw.sizes == Sizes::Known;
    let (before, roots) =
        if known { draft.graph() } else { draft.opened() }.ok_or_else(|| Miss::Draw("the source is not well typed".into()))?;
    let instance = rewritten(&rule.anywhere(), before, &roots)?;
    let feeds = feeds(&instance.before, draw.seed);
    Ok(Instance { feeds, ..instance })
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = match self.sizes {
            Sizes::Known => "known",
            Sizes::Some => "some",
            Sizes::Open => "open",
        };
        write!(f, "{sizes}:{}", self.seed)?;
        self.changes.iter().try_for_each(|change| write!(f, "/{change}"))
    }
}

impl FromStr for Draw {
    type Err = String;

    fn from_str(text: &str) -> Result<Draw, String> {
        let wrong = || format!("`{text}` is no instance: `known:SEED`, `some:SEED` or `open:SEED`, then `/CHANGE` as often as needed");
        let (sizes, rest) = text.split_once(':').ok_or_else(wrong)?;
        let sizes = match sizes {
            "known" => Sizes::Known,
            "some" => Sizes::Some,
            "open" => Sizes::Open,
            _ => return Err(wrong()),
        };
        let mut numbers = rest.split('/');
        let seed = numbers.next().and_then(|seed| seed.parse().ok()).ok_or_else(wrong)?;
        let changes = numbers.map(|change| change.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        Ok(Draw { sizes, seed, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_read_back() {
        for draw in [Draw::new(Sizes::Open, 7), Draw { sizes: Sizes::Known, seed: u64::MAX, changes: vec![3, 0, 41] }] {
            assert_eq!(draw.to_string().parse(), Ok(draw));
        }
        for wrong in ["", "7", "open", "open:x", "open:7/", "none:7"] {
            assert!(wrong.parse::<Draw>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
