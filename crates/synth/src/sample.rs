//! Random operators.

use regraft_ir::SplitMix64;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::completions::Completions;
use crate::explorer::{Explorer, Found};
use crate::key::Key;
use crate::state::State;
use crate::steps::Sizes;

/// Draws operators: what is summed over first, evenly, then one step after another, in proportion
/// to the ways that lead on from it.
pub struct Sampler {
    random: SplitMix64,
    completions: Completions,
    sizes: Sizes,
    /// Sets of sums from which the input may be reached, by number of sums.
    openings: Vec<Vec<State>>,
    /// Those from which a walk ended at an operator.
    fruitful: Vec<State>,
    seen: FxHashSet<Key>,
    /// Whether operators without a window are left out.
    pub windows: bool,
}

/// Steps that a walk may make beyond those that it needs.
const SLACK: usize = 2;
/// Steps that a walk tries from one state before it goes back.
const BRANCHES: usize = 3;
/// States whose steps a walk looks at before it gives up.
const EXPANSIONS: usize = 24;

/// What a number of draws came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// Walks that were begun.
    pub walks: u64,
    /// Walks that ended at an operator.
    pub ended: u64,
}

impl Sampler {
    /// Draws the same operators for the same seed.
    pub fn new(explorer: &mut Explorer<'_>, seed: u64, windows: bool) -> Sampler {
        let sizes = Sizes::new(&mut explorer.coordinates);
        let openings = explorer.openings();
        Sampler {
            random: SplitMix64(seed),
            completions: Completions::default(),
            sizes,
            openings,
            fruitful: vec![],
            seen: FxHashSet::default(),
            windows,
        }
    }

    /// How many counts are remembered.
    pub fn counts(&self) -> usize {
        self.completions.answered()
    }

    /// How many sets of sums there are to begin with.
    pub fn openings(&self) -> usize {
        self.openings.iter().map(Vec::len).sum()
    }

    /// One walk; the operators at its end, if they have not been drawn before.
    pub fn draw(&mut self, explorer: &mut Explorer<'_>) -> Option<Vec<Found>> {
        let state = self.opening()?;
        let last = self.walk(explorer, state.clone())?;
        if !self.fruitful.contains(&state) {
            self.fruitful.push(state);
        }
        Some(self.unseen(explorer.finals(&last).to_vec(), explorer))
    }

    /// Those of some operators whose key is new, with a window if one is wanted.
    fn unseen(&mut self, found: Vec<Found>, explorer: &Explorer<'_>) -> Vec<Found> {
        let wanted = |found: &Found| !self.windows || found.operator.has_window(&explorer.coordinates);
        let wanted: Vec<Found> = found.into_iter().filter(wanted).collect();
        wanted.into_iter().filter(|found| self.seen.insert(found.key)).collect()
    }

    /// Where to begin: every other time where a walk went well before.
    fn opening(&mut self) -> Option<State> {
        if !self.fruitful.is_empty() && self.random.below(2) == 0 {
            return Some(self.fruitful[self.random.below(self.fruitful.len())].clone());
        }
        let filled: Vec<usize> = (0..self.openings.len()).filter(|n| !self.openings[*n].is_empty()).collect();
        let &level = filled.get(self.random.below(filled.len().max(1)))?;
        let at = self.random.below(self.openings[level].len());
        Some(self.openings[level][at].clone())
    }

    /// From a set of sums to a complete operator; where nothing leads on, back by a step.
    fn walk(&mut self, explorer: &mut Explorer<'_>, state: State) -> Option<State> {
        let depth = explorer.spec().limits.depth;
        let sums = state.sums.len();
        let mut end = depth;
        if explorer.filter.distance {
            // Few steps more than are needed: most operators of interest, and far fewer to count.
            let left = (depth - 1 - sums).min(usize::from(explorer.distance(&state)?) + SLACK);
            if self.completions.of(&state, left, self.windows, &mut self.sizes, &mut explorer.coordinates) == 0.0 {
                self.openings[sums].retain(|other| *other != state);
                return None;
            }
            end = sums + left + 1;
        }
        let mut budget = EXPANSIONS;
        self.on(explorer, state, sums, end, &mut budget)
    }

    /// From a state that so many steps made to a complete operator, with few steps more than it
    /// takes.
    pub fn rollout(&mut self, explorer: &mut Explorer<'_>, state: State, steps: usize) -> Option<State> {
        let depth = explorer.spec().limits.depth;
        let opening = state.is_opening(&explorer.coordinates);
        let mut state = state;
        let mut steps = steps;
        // From sums alone the input may be out of reach: some more sums, at random, bring what is
        // missing.
        while opening && explorer.filter.distance && explorer.distance(&state).is_none_or(|d| steps + 1 + usize::from(d) > depth) {
            let children = explorer.children(&state);
            let sums: Vec<usize> = (0..children.len()).filter(|at| children[*at].state.is_opening(&explorer.coordinates)).collect();
            if sums.is_empty() || steps + 2 >= depth {
                return None;
            }
            state = children[sums[self.random.below(sums.len())]].state.clone();
            steps += 1;
        }
        let needed = explorer.distance(&state).map_or(depth, usize::from);
        let end = (steps + needed + SLACK + 1).min(depth);
        let mut budget = EXPANSIONS;
        self.on(explorer, state, steps, end, &mut budget)
    }

    /// On from a state, to an operator of at most `end` steps.
    fn on(&mut self, explorer: &mut Explorer<'_>, state: State, steps: usize, end: usize, budget: &mut usize) -> Option<State> {
        let windowed = !self.windows || state.counts(&explorer.coordinates).unfolds > 0;
        let complete = windowed && !crate::Operator::of(&state, &explorer.coordinates).is_empty();
        if complete && (steps + 1 >= end || self.random.below(2) == 0) {
            return Some(state);
        }
        if steps + 1 >= end || *budget == 0 {
            return None;
        }
        *budget -= 1;
        let left = end - 2 - steps;
        let children = explorer.children(&state);
        let mut counts: Vec<f64> = Vec::with_capacity(children.len());
        let mut alike: FxHashMap<u64, f64> = FxHashMap::default();
        for child in children.iter() {
            let reaches = usize::from(child.distance) <= left && !child.state.is_opening(&explorer.coordinates);
            let count = match (reaches, explorer.filter.distance) {
                (false, _) => 0.0,
                (true, false) => 1.0,
                (true, true) => self.completions.of(&child.state, left, self.windows, &mut self.sizes, &mut explorer.coordinates),
            };
            *alike.entry(count.to_bits()).or_default() += 1.0;
            counts.push(count);
        }
        // Steps after which as much remains share one ticket; the square root keeps rare ways in.
        let mut tickets: Vec<f64> =
            counts.iter().map(|count| if *count > 0.0 { (count / alike[&count.to_bits()]).sqrt() } else { 0.0 }).collect();
        for _ in 0..BRANCHES {
            let total: f64 = tickets.iter().sum();
            if total <= 0.0 {
                break;
            }
            let mut at = self.random.unit() * total;
            let chosen = tickets.iter().position(|ticket| {
                at -= ticket;
                at < 0.0
            });
            let chosen = chosen.or_else(|| tickets.iter().rposition(|ticket| *ticket > 0.0))?;
            tickets[chosen] = 0.0;
            if let Some(found) = self.on(explorer, children[chosen].state.clone(), steps + 1, end, budget) {
                return Some(found);
            }
        }
        complete.then_some(state)
    }
}
