//! Simulations, several at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use regraft_ir::parallel::joined;
use regraft_ir::{Budget, SplitMix64};
use rustc_hash::FxHashMap;

use super::state::{Action, State};
use crate::extract::{Alone, Method};

/// A simulation to run: from what an action makes of a state.
pub(crate) struct Job<'r> {
    pub(crate) from: Arc<State<'r>>,
    pub(crate) action: Action,
    pub(crate) seed: u64,
}

/// What a simulation has found.
pub(crate) struct Done<'r> {
    /// The state after the action.
    pub(crate) state: Arc<State<'r>>,
    /// What it costs, and what the simulation ended with, after how many steps.
    pub(crate) cost: f64,
    pub(crate) end: f64,
    pub(crate) steps: usize,
    /// The last state, if it is cheaper than the first.
    pub(crate) last: Option<Arc<State<'r>>>,
    /// Costs of states that were extracted from.
    pub(crate) costs: Vec<(u128, f64)>,
}

/// How simulations are run.
pub(crate) struct Simulator<'k> {
    pub(crate) depth: usize,
    pub(crate) method: Method,
    /// What extraction finds, by e-graph.
    pub(crate) known: &'k FxHashMap<u128, f64>,
}

impl Simulator<'_> {
    /// Runs simulations, on as many threads as there are price caches. What an action does not
    /// change is `None`. Results do not depend on the number of threads, unless the budget ends.
    pub(crate) fn all<'r>(&self, jobs: &[Job<'r>], alone: &mut [Alone<'_>], budget: &mut dyn Budget) -> Vec<Option<Done<'r>>> {
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |alone: &mut Alone<'_>, budget: &mut dyn Budget| {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(at) else { return found };
                found.push((at, self.one(job, alone, budget)));
            }
        };
        let mut found = std::thread::scope(|scope| {
            let Some((own, others)) = alone.split_first_mut() else { return Vec::new() };
            let (work, is_over) = (&work, &is_over);
            let others = others.iter_mut().take(jobs.len().saturating_sub(1));
            let threads: Vec<_> = others.map(|alone| scope.spawn(move || work(alone, &mut || is_over.load(Ordering::Relaxed)))).collect();
            let mut watched = || {
                is_over.fetch_or(budget.exhausted(), Ordering::Relaxed);
                is_over.load(Ordering::Relaxed)
            };
            let mut found = work(own, &mut watched);
            for thread in threads {
                found.extend(joined(thread));
            }
            found
        });
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, done)| done).collect()
    }

    /// Takes the action, and then actions at random: each other one by what seems good, the rest
    /// among all alike.
    fn one<'r>(&self, job: &Job<'r>, alone: &mut Alone<'_>, budget: &mut dyn Budget) -> Option<Done<'r>> {
        let mut random = SplitMix64(job.seed);
        let mut state = State::clone(&job.from);
        if !state.act(job.action, true, alone, budget) {
            return None;
        }
        let mut costs = Vec::new();
        let cost = self.cost(&mut state, alone, &mut costs);
        let state = Arc::new(state);
        let (mut last, mut steps) = (None, 0);
        for step in 1..=self.depth {
            let current: &State<'r> = last.as_ref().unwrap_or(&*state);
            let actions = current.actions();
            if actions.is_empty() || budget.exhausted() {
                break;
            }
            let action = drawn(&actions, &mut random);
            let moved = last.get_or_insert_with(|| State::clone(&state));
            // An action that changes nothing is none; what was gained before is kept.
            steps += usize::from(moved.act(action, step < self.depth, alone, budget));
        }
        let end = last.as_mut().filter(|_| steps > 0).map(|last| self.cost(last, alone, &mut costs));
        let last = last.filter(|_| end.is_some_and(|end| end < cost)).map(Arc::new);
        Some(Done { state, cost, end: end.unwrap_or(cost), steps, last, costs })
    }

    /// What extraction finds in a state.
    fn cost(&self, state: &mut State<'_>, alone: &mut Alone<'_>, costs: &mut Vec<(u128, f64)>) -> f64 {
        let key = state.growth.space().digest();
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let cost = state.extraction(self.method, alone).map_or(f64::INFINITY, |extraction| extraction.cost);
        costs.push((key, cost));
        cost
    }
}

/// An action at random.
fn drawn(actions: &[Action], random: &mut SplitMix64) -> Action {
    if random.below(2) == 0 {
        return actions[random.below(actions.len())];
    }
    let mut at = random.unit();
    let found = actions.iter().find(|action| {
        at -= action.prior;
        at < 0.0
    });
    *found.unwrap_or(&actions[0])
}
