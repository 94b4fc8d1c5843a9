//! Instances that no clause draws: those that guards admit close to drawn ones.
//!
//! A rule covers everything its source matches and its guards admit; its instance clause only
//! covers what its author thought of. Starting from a few drawn instances, one thing after another
//! is changed ([`changes`]), and a match is kept if it has a new feature: a rank, an omitted
//! operand, an axis of size 1, a stride.

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
use crate::sample::{Instance, Sizes, draw_sized, tolerance};

/// Limits of the search for variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of drawn instances to change.
    pub seeds: usize,
    /// Number of sources to build and match.
    pub tries: usize,
    /// Number of variants to keep.
    pub kept: usize,
}

impl Effort {
    /// The effort for this many variants.
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
}

/// Draws for each seed.
const DRAWS: u64 = 100;
/// Maximum number of nodes of a source to change.
const LARGEST: usize = 200;
/// Number of wrong variants after which the search stops.
const WRONG: usize = 4;

/// Looks for variants of the instances of `rule`. Deterministic.
pub fn variants(rule: &Rule, effort: Effort) -> Variants {
    let mut search =
        Search { rule, effort, found: Variants::default(), seen: HashSet::new(), news: Known::default(), queue: VecDeque::new() };
    for seed in 0..DRAWS * effort.seeds as u64 {
        if search.queue.len() < effort.seeds {
            search.begin(seed);
        }
    }
    // Combinations of features already seen individually come after new ones.
    let mut combinations: Vec<(Draw, Instance)> = Vec::new();
    let mut rng = Rng::new(0x5eed);
    while let Some((draw, draft)) = search.queue.pop_front() {
        let mut all: Vec<(u32, Draft)> = (0..).zip(changes(&draft)).collect();
        for at in (1..all.len()).rev() {
            all.swap(at, rng.below(at as u64 + 1) as usize);
        }
        // No source may use up the tries of later ones.
        for (change, changed) in all.into_iter().take((effort.tries / (2 * effort.seeds)).max(1)) {
            if search.is_over() {
                break;
            }
            let way = Draw { sizes: Sizes::Known, seed: draw.seed, changes: [draw.changes.as_slice(), &[change]].concat() };
            match search.step(way, changed) {
                Some((News::Combination, kept)) => combinations.push(kept),
                Some((_, kept)) => search.found.kept.push(kept),
                None => {}
            }
        }
        if search.is_over() {
            break;
        }
    }
    let mut found = search.found;
    found.kept.extend(combinations);
    found.kept.truncate(effort.kept);
    found
}

/// A queue of sources to change.
struct Search<'r> {
    rule: &'r Rule,
    effort: Effort,
    found: Variants,
    seen: HashSet<Draft>,
    news: Known,
    queue: VecDeque<(Draw, Draft)>,
}

impl Search<'_> {
    /// Queues what this seed draws.
    fn begin(&mut self, seed: u64) {
        let drawn = draw_sized(self.rule, seed, Sizes::Known).ok().filter(|instance| instance.before.len() < LARGEST);
        let Some((instance, draft)) = drawn.and_then(|instance| Draft::of(&instance.before).map(|draft| (instance, draft))) else { return };
        self.news.of(self.rule, &instance);
        if self.seen.insert(draft.clone()) {
            self.queue.push_back((Draw::new(Sizes::Known, seed), draft));
        }
    }

    fn is_over(&self) -> bool {
        self.found.tried >= self.effort.tries || self.found.wrong.len() >= WRONG
    }

    /// Tries a source: returns the variant if it has a feature that none had before, and queues it
    /// for further changes.
    fn step(&mut self, way: Draw, draft: Draft) -> Option<(News, (Draw, Instance))> {
        if !self.seen.insert(draft.clone()) {
            return None;
        }
        self.found.tried += 1;
        // Where the target is not well typed, or has another type, the rewrite is refused: that is
        // not an error.
        let instance = changed(self.rule, &draft, &way).ok()?;
        if let Some(why) = refutation(self.rule, &instance) {
            self.found.wrong.push((way, why));
            return None;
        }
        let news = self.news.of(self.rule, &instance)?;
        if news != News::Type {
            self.queue.push_back((way.clone(), draft));
        }
        Some((news, (way, instance)))
    }
}

/// What an instance has that none had before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    Thing,
    /// An element type. It combines with all other features, and is not tried with each.
    Type,
    Combination,
}

/// The features of instances so far.
#[derive(Default)]
struct Known {
    features: HashSet<Feature>,
    combinations: HashSet<Vec<Feature>>,
}

impl Known {
    /// What is new in an instance; it is known from now on.
    fn of(&mut self, rule: &Rule, instance: &Instance) -> Option<News> {
        let graph = &instance.before;
        let found = matches_at(graph, rule, 0, graph.outputs().first()?.value.node).into_iter().next()?;
        let (types, others): (Vec<Feature>, Vec<Feature>) =
            features(rule, graph, &found).into_iter().partition(|feature| matches!(feature, Feature::Type(..)));
        let types = types.into_iter().filter(|feature| self.features.insert(feature.clone())).count();
        let things = others.iter().filter(|feature| self.features.insert((*feature).clone())).count();
        match (things, types, self.combinations.insert(others)) {
            (1.., _, _) => Some(News::Thing),
            (0, 1.., _) => Some(News::Type),
            (0, 0, true) => Some(News::Combination),
            (0, 0, false) => None,
        }
    }
}

/// How the sides of an instance differ on some inputs; `None` if they do not, or the source cannot
/// be computed.
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

/// Like [`difference`], but the sides agree where neither has a finite value.
pub(crate) fn finite_difference(a: &Value<f64>, b: &Value<f64>) -> f64 {
    let (Value::Real(x), Value::Real(y)) = (a, b) else { return a.difference(b) };
    let mut y = y.as_ref().clone();
    if x.shape == y.shape {
        for (p, q) in x.data.iter().zip(&mut y.data).filter(|(p, q)| !p.is_finite() && !q.is_finite()) {
            *q = *p;
        }
    }
    a.difference(&Value::Real(y.into()))
}
