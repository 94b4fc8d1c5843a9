//! `Exercise`: both sides of a rule, compared on random instances by the reference executor.

use std::collections::HashMap;
use std::fmt;

use regraft_ir::{Graph, Value, eval};

use super::draw::draw;
use super::instance::{Instance, Miss};
use crate::rule::{Numeric, Rule};

/// Relative difference, in double precision, above which the two sides of a rule disagree.
pub const TOLERANCE: f64 = 1e-8;

/// What exercising a rule showed.
#[derive(Clone, Debug, Default)]
pub struct Exercise {
    /// Instances on which both sides were computed and compared.
    pub instances: usize,
    /// Random draws, including those that did not satisfy the guards.
    pub draws: usize,
    /// Largest relative difference seen.
    pub worst: f64,
    /// The first counterexample.
    pub counterexample: Option<Counterexample>,
    /// The most recent reason why a draw gave no instance, for the rule's author.
    pub last_miss: String,
}

/// An instance whose sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The seed that reproduces it; see [`graph`](super::graph).
    pub seed: u64,
    /// What differs, and where.
    pub why: String,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.why)
    }
}

/// Compares both sides of `rule` on `wanted` random instances, drawing at most `limit` times.
/// Deterministic in `seed`.
pub fn exercise(rule: &Rule, wanted: usize, limit: usize, seed: u64) -> Exercise {
    let mut result = Exercise::default();
    while result.instances < wanted && result.draws < limit && result.counterexample.is_none() {
        let seed = seed.wrapping_add((result.draws as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let wrong = |why| Some(Counterexample { seed, why });
        result.draws += 1;
        match compared(rule, seed) {
            Ok(difference) if difference <= tolerance(rule) => {
                result.instances += 1;
                result.worst = result.worst.max(difference);
            }
            Ok(difference) => result.counterexample = wrong(format!("the sides differ by {difference:e} relative")),
            Err(Miss::Wrong(why)) => result.counterexample = wrong(why),
            Err(Miss::Draw(why)) => result.last_miss = why,
        }
    }
    result
}

/// How far both sides may differ: attributes are kept in single precision, and rules that round
/// constants put constants of double precision there.
pub(crate) fn tolerance(rule: &Rule) -> f64 {
    if rule.numeric == Numeric::RoundsConstants { f64::from(f32::EPSILON) } else { TOLERANCE }
}

/// Draws an instance and returns the difference of its two sides.
fn compared(rule: &Rule, seed: u64) -> Result<f64, Miss> {
    let Instance { before, after, feeds } = draw(rule, seed)?;
    let feeds: HashMap<String, Value<f64>> =
        feeds.iter().filter_map(|(name, constant)| Some((name.clone(), Value::from_const(constant)?))).collect();
    let run = |g: &Graph| eval::run::<f64>(g, &feeds, &mut eval::NoOpaque);
    let before = run(&before).map_err(|e| Miss::Draw(format!("the source cannot be computed: {e}")))?;
    let after = run(&after).map_err(|e| Miss::Wrong(format!("the target cannot be computed: {e}")))?;
    Ok(before.iter().zip(&after).map(|(a, b)| a.difference(b)).fold(0.0, f64::max))
}
