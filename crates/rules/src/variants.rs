//! Instances that no clause draws: what guards admit near those that one does.
//!
//! A rule speaks of all that its source matches and its guards let pass; its instance clause, of what its author thought of. From a few drawn instances
//! on, one thing after the other is changed ([`changes`]), and what the rule still matches is kept if it has something that none had before: a rank, an
//! operand that is left out, an axis of size 1, a stride.

use std::collections::{HashSet, VecDeque};

use regraft_ir::Value;
use regraft_ir::eval;

use crate::changes::changes;
use crate::coverage::{Feature, features};
use crate::draft::Draft;
use crate::draw::{Draw, changed};
use crate::matcher::matches_at;
use crate::path::Rng;
use crate::rule::Rule;
use crate::sample::{Instance, Miss, Sizes, difference, draw_sized, tolerance};

/// How far variants are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Drawn instances that are changed.
    pub seeds: usize,
    /// Sources that are built and matched.
    pub tries: usize,
    /// Variants that are kept.
    pub kept: usize,
}

impl Effort {
    /// For so many variants.
    pub fn keeping(kept: usize) -> Effort {
        Effort { kept, tries: kept.saturating_mul(60).max(1500), ..Effort::default() }
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { seeds: 3, tries: 1500, kept: 24 }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Variants {
    /// Variants on which both sides agree, or cannot be computed.
    pub kept: Vec<(Draw, Instance)>,
    /// Variants on which the rule is false, and how.
    pub wrong: Vec<(Draw, String)>,
    /// Sources that were built and matched.
    pub tried: usize,
    /// Those of them that the rule rewrites.
    pub admitted: usize,
    /// Those that its source matches and its target cannot be built for.
    pub refused: usize,
}

/// Draws for each seed.
const DRAWS: u64 = 100;
/// Nodes of a source that is changed, at most.
const LARGEST: usize = 200;
/// Wrong variants after which no more are looked for.
const WRONG: usize = 4;

/// Looks for variants of the instances of `rule`, those with what was not seen before first. Deterministic.
pub fn variants(rule: &Rule, effort: Effort) -> Variants {
    let mut found = Variants::default();
    let mut seen: HashSet<Draft> = HashSet::new();
    let mut known: HashSet<Feature> = HashSet::new();
    let mut combinations: HashSet<Vec<Feature>> = HashSet::new();
    let mut queue: VecDeque<(Draw, Draft)> = VecDeque::new();
    for seed in 0..DRAWS * effort.seeds as u64 {
        if queue.len() >= effort.seeds {
            break;
        }
        let Ok(instance) = draw_sized(rule, seed, Sizes::Known) else { continue };
        let Some(draft) = Draft::of(&instance.before).filter(|_| instance.before.len() < LARGEST) else { continue };
        note(rule, &instance, &mut known, &mut combinations);
        if seen.insert(draft.clone()) {
            queue.push_back((Draw::new(Sizes::Known, seed), draft));
        }
    }
    // Combinations of what was seen one by one, for when nothing new is left.
    let mut later: Vec<(Draw, Instance)> = Vec::new();
    let mut rng = Rng::new(0x5eed);
    while let Some((draw, draft)) = queue.pop_front() {
        let mut all: Vec<(usize, Draft)> = changes(&draft).into_iter().enumerate().collect();
        for at in (1..all.len()).rev() {
            all.swap(at, rng.below(at as u64 + 1) as usize);
        }
        // No source may use up the tries of those that come after it.
        let share = (effort.tries / (2 * effort.seeds)).max(1);
        for (change, next) in all.into_iter().take(share) {
            if found.tried >= effort.tries || found.wrong.len() >= WRONG {
                break;
            }
            if !seen.insert(next.clone()) {
                continue;
            }
            found.tried += 1;
            let way = Draw { sizes: Sizes::Known, seed: draw.seed, changes: [draw.changes.as_slice(), &[change as u32]].concat() };
            let instance = match changed(rule, &next, &way) {
                Ok(instance) => instance,
                // The target is not well typed there, or is of another type: the rewrite is refused.
                Err(Miss::Wrong(_)) => {
                    found.refused += 1;
                    continue;
                }
                Err(Miss::Draw(_)) => continue,
            };
            found.admitted += 1;
            let news = note(rule, &instance, &mut known, &mut combinations);
            if news == News::Nothing {
                continue;
            }
            if let Some(why) = refutation(rule, &instance) {
                found.wrong.push((way, why));
                continue;
            }
            if news != News::Type {
                queue.push_back((way.clone(), next));
            }
            match news {
                News::Thing | News::Type => found.kept.push((way, instance)),
                _ => later.push((way, instance)),
            }
        }
    }
    found.kept.extend(later);
    found.kept.truncate(effort.kept);
    found
}

/// What an instance has that none had before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    Thing,
    /// An element type. It goes with all else that instances have, and is not tried with each.
    Type,
    Combination,
    Nothing,
}

fn note(rule: &Rule, instance: &Instance, known: &mut HashSet<Feature>, combinations: &mut HashSet<Vec<Feature>>) -> News {
    let graph = &instance.before;
    let Some(root) = graph.outputs().first() else { return News::Nothing };
    let Some(found) = matches_at(graph, rule, 0, root.value.node).into_iter().next() else { return News::Nothing };
    let (types, others): (Vec<Feature>, Vec<Feature>) =
        features(rule, graph, &found).into_iter().partition(|feature| matches!(feature, Feature::Type(..)));
    let new_types = types.into_iter().filter(|feature| known.insert(feature.clone())).count();
    let new_things = others.iter().filter(|feature| known.insert((*feature).clone())).count();
    match (new_things, combinations.insert(others), new_types) {
        (1.., _, _) => News::Thing,
        (0, _, 1..) => News::Type,
        (0, true, 0) => News::Combination,
        (0, false, 0) => News::Nothing,
    }
}

/// How the sides of an instance differ on some inputs; `None` if they do not, or the source cannot be computed.
fn refutation(rule: &Rule, instance: &Instance) -> Option<String> {
    let feeds = instance.feeds.iter().filter_map(|(name, constant)| Some((name.clone(), Value::from_const(constant)?))).collect();
    let run = |graph| eval::run::<f64>(graph, &feeds, &mut eval::NoOpaque);
    let before = run(&instance.before).ok()?;
    match run(&instance.after) {
        Err(why) => Some(format!("the target cannot be computed: {why}")),
        Ok(after) => {
            let worst = before.iter().zip(&after).map(|(a, b)| finite_difference(a, b)).fold(0.0, f64::max);
            (worst > tolerance(rule)).then(|| format!("the sides differ by {worst:e} relative"))
        }
    }
}

/// As [`difference`], but where both sides have no finite value they agree.
fn finite_difference(a: &Value<f64>, b: &Value<f64>) -> f64 {
    let (Value::Real(x), Value::Real(y)) = (a, b) else { return difference(a, b) };
    let mut y = y.as_ref().clone();
    if x.shape == y.shape {
        for (p, q) in x.data.iter().zip(&mut y.data).filter(|(p, q)| !p.is_finite() && !q.is_finite()) {
            *q = *p;
        }
    }
    difference(a, &Value::Real(y.into()))
}
