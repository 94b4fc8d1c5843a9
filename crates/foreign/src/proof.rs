//! Proofs of rules whose instances all hold: one per family of sizes.

use std::collections::BTreeMap;

use regraft_ir::Trust;
use regraft_prove::equal;

use crate::census::census;
use crate::family::{Family, family};
use crate::guard::Guards;
use crate::instance::Instance;
use crate::judge::Trial;
use crate::judgement::Pair;
use crate::kind::{Kind, MOST_TYPINGS};
use crate::plan::{Leaf, Plan};

/// Default maximum number of families of a rule to put to the prover.
pub const MOST_PROOFS: usize = 16;

/// Maximum number of instances whose families are examined.
const MOST_SAMPLED: usize = 80;

/// The prover's result for a rule.
pub(crate) struct Proof {
    /// What is known about the rule.
    pub trust: Trust,
    /// Why no proof was found.
    pub unproved: Option<String>,
    /// Families of sizes of its instances.
    pub families: usize,
    /// How many of them were proved.
    pub proofs: usize,
    /// Both sides in the families chosen for proof.
    pub pairs: Vec<Pair>,
}

impl Proof {
    fn none(why: String) -> Proof {
        Proof { trust: Trust::Tested, unproved: Some(why), families: 0, proofs: 0, pairs: Vec::new() }
    }
}

/// What can be proved about a rule that holds on all `witnesses`, which satisfy `guards`, with at
/// most `most` families.
pub(crate) fn prove(plan: &Plan, kinds: &[Vec<Kind>], witnesses: &[&Trial], guards: Guards, names: &[String], most: usize) -> Proof {
    if most == 0 {
        return Proof::none("no proofs were asked for".into());
    }
    if let Some(instance) = pointwise(plan, witnesses) {
        let family = match family(plan, &instance, guards, names) {
            Ok(family) => family,
            Err(why) => return Proof::none(why),
        };
        let pairs = vec![Pair::of(&family)];
        return match outcome(&family) {
            Ok(()) => Proof { trust: Trust::Proved, unproved: None, families: 1, proofs: 1, pairs },
            Err(why) => Proof { pairs, families: 1, ..Proof::none(why) },
        };
    }
    let counted: Option<Vec<Vec<Instance>>> = kinds.iter().map(|kinds| census(plan, kinds, guards)).collect();
    let complete = counted.is_some() && kinds.len() < MOST_TYPINGS;
    let counted = counted.unwrap_or_default();
    // The simplest first.
    let mut families: BTreeMap<(usize, String), Family> = BTreeMap::new();
    let sampled = witnesses.iter().step_by(witnesses.len().div_ceil(MOST_SAMPLED).max(1)).map(|t| &t.instance);
    for instance in sampled.chain(counted.iter().flatten()) {
        match family(plan, instance, guards, names) {
            Ok(family) => drop(families.entry((family.key.len(), family.key.clone())).or_insert(family)),
            Err(why) => return Proof::none(why),
        }
    }
    let step = families.len().div_ceil(most).max(1);
    let pairs = families.values().step_by(step).map(Pair::of).collect();
    let mut proofs = 0;
    for family in families.values().step_by(step) {
        if let Err(why) = outcome(family) {
            return Proof { families: families.len(), proofs, pairs, ..Proof::none(why) };
        }
        proofs += 1;
    }
    let all = complete && proofs == families.len();
    let trust = if all { Trust::Proved } else { Trust::ProvedInRange };
    Proof { trust, unproved: None, families: families.len(), proofs, pairs }
}

fn outcome(family: &Family) -> Result<(), String> {
    match equal(&family.before, &family.after) {
        regraft_prove::Verdict::Proved(_) => Ok(()),
        other => Err(other.to_string()),
    }
}

/// An instance whose family covers all sizes, ranks and ways of broadcasting, if there is one.
///
/// If all operators are elementwise, each element of a result is one expression of the elements at
/// the same index, wherever broadcasting reads them from; and if both sides read the same
/// variables, they have the same shape. Then equality on equal vectors suffices.
fn pointwise(plan: &Plan, witnesses: &[&Trial]) -> Option<Instance> {
    let variables = plan.leaves.iter().all(|l| matches!(l, Leaf::Variable(_)));
    if !variables || !plan.steps.iter().all(|s| s.operator.is_pointwise()) || plan.outputs[0].len() != 1 {
        return None;
    }
    let read = [0, 1].map(|side| {
        let needed = plan.needed(side);
        let steps = plan.steps.iter().zip(needed).filter(|(_, needed)| *needed);
        let operands = steps.flat_map(|(s, _)| s.operands.iter().copied()).chain(plan.outputs[side].iter().copied());
        let mut leaves: Vec<usize> = operands.filter(|slot| *slot < plan.leaves.len()).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    });
    if read[0] != read[1] || read[0].len() != plan.leaves.len() {
        return None;
    }
    let mut instance = witnesses.first()?.instance.clone();
    for shape in instance.shapes.iter_mut().filter(|s| !s.is_empty()) {
        *shape = vec![2];
    }
    Some(instance)
}
