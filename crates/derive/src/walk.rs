//! Random chains of steps, and whether their ends agree.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use regraft_ir::{Graph, SplitMix64};
use regraft_prove::{Exactness, settled};
use regraft_rules::Rule;
use regraft_rules::sample::draw;
use rustc_hash::FxHashSet;

use crate::derivation::{Derivation, Link};
use crate::laws::Laws;
use crate::moves::{Move, moves, normalize};
use crate::surroundings::surrounded;

/// Draws per chain: guards refuse many.
const DRAWS: u64 = 60;

/// Limits of a random chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Maximum number of steps.
    pub steps: usize,
    /// Nodes that a graph on the way may have beyond those of the first.
    pub growth: usize,
    /// Random operators added around an instance before the first step, so that more laws apply.
    pub around: usize,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk { steps: 8, growth: 6, around: 4 }
    }
}

/// A chain of random steps from `start`, each applying one of the laws in one of its directions. No
/// graph repeats; the chain ends early where no law leads on. Deterministic in `seed`.
pub fn walk(start: &Graph, laws: &Laws, how: &Walk, seed: u64) -> Derivation {
    let mut graph = start.clone();
    let mut key = normalize(&mut graph);
    let most = graph.len() + how.growth;
    let mut random = SplitMix64(seed);
    let mut seen = FxHashSet::from_iter([key]);
    let mut derivation = Derivation { graphs: vec![graph], links: Vec::new() };
    while let Some(graph) = derivation.graphs.last().filter(|_| derivation.links.len() < how.steps) {
        // Every law that leads on is equally likely, wherever it applies.
        let mut found: BTreeMap<(Arc<str>, bool), Vec<Move>> = BTreeMap::new();
        for step in moves(graph, key, laws, true, most, &mut |key| !seen.contains(&key)) {
            found.entry((step.law.clone(), step.reversed)).or_default().push(step);
        }
        let at = random.below(found.len());
        let Some((_, mut places)) = found.into_iter().nth(at) else { break };
        let step = places.swap_remove(random.below(places.len()));
        key = step.key;
        seen.insert(key);
        derivation.links.push(Link { law: step.law, reversed: step.reversed });
        derivation.graphs.push(step.graph);
    }
    derivation
}

/// What random chains showed.
#[derive(Clone, Debug, Default)]
pub struct Consistency {
    /// Chains of at least one step whose ends were compared.
    pub chains: usize,
    /// Their steps.
    pub steps: usize,
    /// Chains whose ends are the same expressions.
    pub equal: usize,
    /// Chains whose ends expressions do not decide, and on which numbers agree.
    pub open: usize,
    /// How often each law was used.
    pub used: BTreeMap<Arc<str>, usize>,
    /// Chains whose ends have different values: the laws contradict each other, or one of them is
    /// false.
    pub broken: Vec<Derivation>,
}

impl AddAssign for Consistency {
    fn add_assign(&mut self, other: Consistency) {
        self.chains += other.chains;
        self.steps += other.steps;
        self.equal += other.equal;
        self.open += other.open;
        other.used.into_iter().for_each(|(law, count)| *self.used.entry(law).or_default() += count);
        self.broken.extend(other.broken);
    }
}

/// Walks `wanted` random chains from random instances of `rule`, with random operators around them,
/// and compares their ends exactly, like [`settled`]. Deterministic in `seed`.
pub fn consistency(rule: &Rule, laws: &Laws, wanted: usize, how: &Walk, seed: u64) -> Consistency {
    let mut result = Consistency::default();
    for at in 0..wanted as u64 * DRAWS {
        if result.chains == wanted {
            break;
        }
        let seed = seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Ok(instance) = draw(rule, seed) else { continue };
        let start = surrounded(&instance.before, how.around, &mut SplitMix64(seed));
        let chain = walk(&start, laws, how, seed);
        let Some(last) = chain.graphs.last().filter(|_| !chain.links.is_empty()) else { continue };
        let verdict = settled(&start, last, &instance.feeds);
        if let Exactness::Undefined(_) = verdict {
            continue;
        }
        result.chains += 1;
        result.steps += chain.links.len();
        chain.links.iter().for_each(|link| *result.used.entry(link.law.clone()).or_default() += 1);
        match verdict {
            Exactness::Equal => result.equal += 1,
            Exactness::Different { .. } => result.broken.push(chain),
            Exactness::Undecided(_) | Exactness::Undefined(_) => result.open += 1,
        }
    }
    result
}
