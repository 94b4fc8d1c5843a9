//! Which laws follow from the others.

use regraft_rules::Rule;
use regraft_rules::sample::{Instance, Sizes, draw_sized};

use crate::derivation::Derivation;
use crate::laws::Laws;
use crate::search::{Limits, derive, derive_by_all};

/// Draws per wanted instance: guards refuse many.
const DRAWS: u64 = 40;

/// Derivations of a rule from laws, one per instance, without using the rule itself; `None` if some
/// instance has none, or there is no instance.
///
/// Takes `wanted` instances with symbolic sizes, and as many with some symbolic sizes. This shows
/// nothing about the rule at other ranks, attributes and numbers of operands. Deterministic in
/// `seed`. Every derivation was replayed.
pub fn redundant(rule: &Rule, laws: &Laws, wanted: usize, seed: u64, limits: &Limits) -> Option<Vec<Derivation>> {
    let others = laws.filter(|law| law.name != rule.name);
    let mut derivations = Vec::new();
    for sizes in [Sizes::Open, Sizes::Some] {
        let seeds = (0..wanted as u64 * DRAWS).map(|at| seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let instances = seeds.filter_map(|seed| draw_sized(rule, seed, sizes).ok()).take(wanted);
        for Instance { before, after, .. } in instances {
            let derivation = derive(&before, &after, &others, limits).or_else(|_| derive_by_all(&before, &after, &others, limits)).ok()?;
            derivation.replay(&before, &after, &others).ok()?;
            derivations.push(derivation);
        }
    }
    (!derivations.is_empty()).then_some(derivations)
}
