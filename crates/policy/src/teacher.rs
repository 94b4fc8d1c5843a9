//! A strong search on a small graph, and what it teaches: for each state and each of its moves,
//! what follows at best.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use regraft_cost::{CostModel, Ns};
use regraft_ir::{Graph, SplitMix64, Steps};
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Exact, Matcher, Move, Moves, Strategy, all_moves, next_moves};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::features::Known;
use crate::guide::Guide;
use crate::gumbel::Gumbel;
use crate::sample::Sample;
use crate::weights::Weights;

/// What one step costs, as a difference of logarithms of costs: of two ways to one state the
/// shorter one is better, and what saves less is not worth a step.
pub const STEP: f32 = 0.002;

/// How far it looks.
#[derive(Clone, Copy, Debug)]
pub struct Teacher {
    /// States whose moves are all tried.
    pub expansions: usize,
    /// States that cost this much more than the cheapest known one are left.
    pub rise: f64,
    /// Visits of the exact search that goes before.
    pub steps: u64,
    /// Samples of a graph.
    pub samples: usize,
}

impl Default for Teacher {
    fn default() -> Teacher {
        Teacher { expansions: 300, rise: 1.6, steps: 4000, samples: 10 }
    }
}

/// A state, and how it was first reached.
struct Seen {
    parent: Option<(usize, Arc<Move>)>,
    cost: Ns,
    steps: usize,
    /// Its moves, and the states that they lead to.
    moves: Option<(Moves, Vec<usize>)>,
}

struct Lesson<'t, 'e, 'm> {
    /// States whose moves are all tried.
    expansions: usize,
    teacher: Teacher,
    engine: &'t mut Engine<'e>,
    matcher: &'t mut Matcher<'m>,
    states: Vec<Seen>,
    index: FxHashMap<u128, usize>,
}

impl Teacher {
    /// Samples of states of a graph, drawn from those that lead to the cheapest one and those
    /// around them; the same for the same seed.
    pub fn teach(&self, graph: Graph, prices: &dyn CostModel, library: &Library, writable: &dyn Writable, seed: u64) -> Vec<Sample> {
        let mut engine = Engine::new(graph, prices);
        let mut matcher = Matcher::new(library, writable);
        let mut lesson = self.lesson(&mut engine, &mut matcher);
        lesson.explore();
        let values = lesson.values();
        let states = lesson.states_around(&values, seed);
        lesson.samples(states, &values)
    }

    /// Samples of states that a pupil comes to when it searches by itself (as in DAgger: Ross,
    /// Gordon and Bagnell, AISTATS 2011), drawn from those on its ways. What it finds, the teacher
    /// knows as well (expert iteration: Anthony, Tian and Barber, NeurIPS 2017). The same for the
    /// same seed.
    pub fn correct(
        &self,
        pupil: &Weights,
        graph: Graph,
        prices: &dyn CostModel,
        library: &Library,
        writable: &dyn Writable,
        seed: u64,
    ) -> Vec<Sample> {
        let mut engine = Engine::new(graph, prices);
        let mut matcher = Matcher::new(library, writable);
        let gumbel = Gumbel { expansions: self.expansions, seed, ..Gumbel::new(Guide::Policy(pupil)) };
        let course = gumbel.observed(&mut engine, &mut matcher, &mut Steps(u64::MAX), &mut |_, _| {});
        let mut lesson = self.lesson(&mut engine, &mut matcher);
        let found = course.outcome.scripts.iter().map(|script| &script.moves);
        let mut states: Vec<usize> = found.chain(&course.ways).flat_map(|way| lesson.walk(way)).collect();
        lesson.expansions += states.len();
        lesson.explore();
        let mut random = SplitMix64(seed);
        for at in (1..states.len()).rev() {
            states.swap(at, random.below(at + 1));
        }
        let mut chosen = FxHashSet::default();
        states.retain(|at| chosen.len() < self.samples && chosen.insert(*at));
        let values = lesson.values();
        lesson.samples(states, &values)
    }

    /// What exact search finds, to begin with.
    fn lesson<'t, 'e, 'm>(&self, engine: &'t mut Engine<'e>, matcher: &'t mut Matcher<'m>) -> Lesson<'t, 'e, 'm> {
        let exact = Exact { states: 600, expansions: (50, 200), ..Exact::default() };
        let found = exact.search(engine, matcher, &mut Steps(self.steps));
        let root = Seen { parent: None, cost: engine.cost(), steps: 0, moves: None };
        let index = FxHashMap::from_iter([(engine.key(), 0)]);
        let mut lesson = Lesson { expansions: self.expansions, teacher: *self, engine, matcher, states: vec![root], index };
        for script in &found.scripts {
            lesson.walk(&script.moves);
        }
        lesson
    }
}

impl Lesson<'_, '_, '_> {
    /// Expands the states on the way of a script; these.
    fn walk(&mut self, script: &[Arc<Move>]) -> Vec<usize> {
        let mut keys = Vec::new();
        for step in script {
            keys.push(self.engine.key());
            self.engine.apply(step);
        }
        self.engine.rewind(0);
        let mut states = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(&at) = self.index.get(&key) else { break };
            self.expand(at);
            states.push(at);
        }
        states
    }

    /// Expands further states, the cheapest first.
    fn explore(&mut self) {
        let mut queue: BinaryHeap<(Reverse<Ns>, Reverse<usize>)> = BinaryHeap::new();
        let mut queued = 0;
        let mut cheapest = Ns::MAX;
        let mut expanded = self.states.iter().filter(|state| state.moves.is_some()).count();
        loop {
            for at in queued..self.states.len() {
                cheapest = cheapest.min(self.states[at].cost);
                queue.push((Reverse(self.states[at].cost), Reverse(at)));
            }
            queued = self.states.len();
            let Some((Reverse(cost), Reverse(at))) = queue.pop() else { break };
            if expanded >= self.expansions || cost as f64 > cheapest as f64 * self.teacher.rise {
                break;
            }
            if self.states[at].moves.is_none() {
                self.expand(at);
                expanded += 1;
            }
        }
    }

    fn expand(&mut self, at: usize) {
        if self.states[at].moves.is_some() {
            return;
        }
        let path = self.enter(at);
        let before = self.states[at].parent.as_ref().and_then(|(parent, _)| self.states[*parent].moves.as_ref());
        let moves = match before {
            Some((before, _)) => next_moves(self.engine, self.matcher, before),
            None => all_moves(self.engine, self.matcher),
        };
        let steps = self.states[at].steps + 1;
        let mut children = Vec::with_capacity(moves.len());
        for step in &moves {
            self.engine.apply(step);
            let (key, cost) = (self.engine.key(), self.engine.cost());
            self.engine.undo();
            let next = self.states.len();
            let child = *self.index.entry(key).or_insert(next);
            if child == next {
                self.states.push(Seen { parent: Some((at, step.clone())), cost, steps, moves: None });
            }
            children.push(child);
        }
        debug_assert_eq!(self.engine.depth(), path);
        self.engine.rewind(0);
        self.states[at].moves = Some((moves, children));
    }

    /// Takes the engine to a state; the number of steps.
    fn enter(&mut self, at: usize) -> usize {
        let mut path = Vec::new();
        let mut state = at;
        while let Some((parent, step)) = &self.states[state].parent {
            path.push(step.clone());
            state = *parent;
        }
        path.iter().rev().for_each(|step| self.engine.apply(step));
        path.len()
    }

    /// For each state the logarithm of the least cost that can be reached, each step charged.
    fn values(&self) -> Vec<f32> {
        let mut values: Vec<f32> = self.states.iter().map(|state| (state.cost.max(1) as f32).ln()).collect();
        loop {
            let mut changed = false;
            for at in (0..self.states.len()).rev() {
                let Some((_, children)) = &self.states[at].moves else { continue };
                let best = children.iter().map(|child| values[*child] + STEP).fold(values[at], f32::min);
                changed |= best < values[at];
                values[at] = best;
            }
            if !changed {
                return values;
            }
        }
    }

    /// States on the best way from the first one, and others.
    fn states_around(&self, values: &[f32], seed: u64) -> Vec<usize> {
        let mut random = SplitMix64(seed);
        let mut chosen = FxHashSet::default();
        // The best way from the first state, then any.
        let mut at = 0;
        while chosen.len() < self.teacher.samples / 2 && chosen.insert(at) {
            let Some((_, children)) = &self.states[at].moves else { break };
            let best = children.iter().copied().min_by(|a, b| values[*a].total_cmp(&values[*b]));
            let Some(best) = best.filter(|best| values[*best] + STEP <= values[at] + 1e-6) else { break };
            at = best;
        }
        let expanded: Vec<usize> = (0..self.states.len()).filter(|at| self.states[*at].moves.is_some()).collect();
        for _ in 0..4 * self.teacher.samples {
            if chosen.len() < self.teacher.samples.min(expanded.len()) {
                chosen.insert(expanded[random.below(expanded.len())]);
            }
        }
        chosen.into_iter().collect()
    }

    fn samples(&mut self, mut states: Vec<usize>, values: &[f32]) -> Vec<Sample> {
        states.sort_unstable();
        states.into_iter().filter_map(|at| self.sample(at, values)).collect()
    }

    fn sample(&mut self, at: usize, values: &[f32]) -> Option<Sample> {
        let (moves, children) = self.states[at].moves.as_ref()?;
        if moves.len() < 2 {
            return None;
        }
        let (moves, children) = (moves.clone(), children.clone());
        let cost = self.states[at].cost;
        let rose = self.states[at].parent.as_ref().is_some_and(|(parent, _)| cost > self.states[*parent].cost);
        self.enter(at);
        let best = children.iter().map(|child| values[*child]).fold(f32::INFINITY, f32::min);
        let known = known_of(self.engine, &moves, rose, |place, _, _| self.states[children[place]].cost as i64 - cost as i64);
        let steps = moves.iter().zip(known).zip(&children);
        let steps: Vec<(Arc<Move>, Known, f32)> =
            steps.map(|((step, known), child)| (step.clone(), known, values[*child] - best)).collect();
        let value = ((cost.max(1) as f32).ln() - values[at]).max(0.0);
        let sample = Sample::of(self.engine, &steps, value);
        self.engine.rewind(0);
        Some(sample)
    }
}

/// What is known of each move of a state, in their order; `delta` tells what one adds to the cost,
/// from its place and its kind.
pub(crate) fn known_of(
    engine: &Engine<'_>,
    moves: &Moves,
    after_rise: bool,
    mut delta: impl FnMut(usize, &Arc<Move>, u64) -> i64,
) -> Vec<Known> {
    let kinds: Vec<u64> = moves.iter().map(|step| engine.kind_of(step)).collect();
    let mut alike: FxHashMap<u64, usize> = FxHashMap::default();
    kinds.iter().for_each(|kind| *alike.entry(*kind).or_default() += 1);
    let old = moves.known().count();
    let each = moves.iter().zip(&kinds).enumerate();
    let known = each.map(|(at, (step, kind))| {
        let is_new = at >= old && engine.depth() > 0;
        Known { delta: delta(at, step, *kind), is_new, after_rise: is_new && after_rise, alike: alike[kind] }
    });
    known.collect()
}
