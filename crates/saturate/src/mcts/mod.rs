//! `Mcts`: Monte Carlo tree search over e-graphs (Arora et al., PACT 2024, Algorithm 1).

mod rollout;
mod state;
mod tree;

use regraft_ir::Budget;
use regraft_search::{Engine, Matcher, Outcome, Script, Strategy};

use self::state::State;
use self::tree::Tree;
use crate::extract::Method;
use crate::grow::{Growth, Limits};
use crate::strategy::{Found, extracted, repeated};

/// Grows an e-graph by one rule after the other, and finds out which one by looking ahead: of all
/// rules at all places there is no room for, some lead to something cheap.
///
/// As published, but for this:
/// * an action is a rule everywhere, or in one region of the network;
/// * actions are ordered by what their rewrites save at once, and what seems to save more is tried
///   first (upper confidence bounds with priors: Rosin, "Multi-armed bandits with episode context",
///   2011);
/// * rewards are shares of the input's cost, scaled to those seen; what a state offers is known, so
///   that an action which offers nothing is never tried;
/// * simulations run in parallel, in batches that do not depend on the number of threads;
/// * in the end, room that is left is filled with what is known, and the cheapest of what the last
///   state, the cheapest state, and saturation without a choice have to offer is taken.
#[derive(Clone, Copy, Debug)]
pub struct Mcts {
    /// How far e-graphs grow.
    pub limits: Limits,
    /// Simulations before each step.
    pub simulations: usize,
    /// Longest simulation, in steps.
    pub depth: usize,
    /// Steps at most.
    pub steps: usize,
    /// Regions of the network; with 1, actions are rules alone.
    pub regions: u16,
    /// Weight of what was tried seldom against what was good.
    pub exploration: f64,
    /// How much a state counts one step later.
    pub discount: f64,
    /// How simulations extract.
    pub main: Method,
    /// How the result is extracted.
    pub last: Method,
    /// Whether a descent improves what was extracted.
    pub polish: bool,
    /// Threads; 0 for one for each simulation of a batch, if there are so many processors. Results
    /// are the same.
    pub threads: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Mcts {
    fn default() -> Mcts {
        Mcts {
            limits: Limits { nodes: 2000, choices: 8, ..Limits::default() },
            simulations: 8,
            depth: 4,
            steps: 40,
            regions: 4,
            exploration: 1.0,
            discount: 0.99,
            main: Method::Quick,
            last: Method::Exact,
            polish: true,
            threads: 0,
            seed: 0,
        }
    }
}

/// Simulations that are begun before the first of them is rewarded.
const BATCH: usize = 4;

impl Strategy for Mcts {
    fn name(&self) -> &'static str {
        "mcts"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.observed(engine, matcher, budget, &mut |_| {})
    }
}

impl Mcts {
    /// The search; `observe` is shown the e-graph after each step.
    pub fn observed(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(&Growth<'_>),
    ) -> Outcome {
        repeated((self.polish, None), engine, matcher, budget, &mut |(rules, alone), engine, matcher, budget| {
            let empty = |limits: Limits| Growth::new(engine.graph().clone(), rules, matcher.writable(), limits);
            let mut whole = empty(Limits { choices: Limits::default().choices, ..self.limits });
            let state = State::new(empty(self.limits), self.regions, alone, budget);
            let mut tree = Tree::new(self, state, engine.prices());
            let (last, complete) = tree.grow(budget, observe);
            let (best, visited) = (tree.best(), tree.visited());
            let mut script = Script::here(engine);
            let mut offer = |growth: &Growth<'_>, engine: &mut Engine<'_>, budget: &mut dyn Budget| {
                let found = extracted(growth, alone, self.last, engine, budget).script;
                if found.cost < script.cost {
                    script = found;
                }
            };
            offer(&best.growth, engine, budget);
            for state in [best, last] {
                if !budget.exhausted() {
                    offer(&state.filled(budget), engine, budget);
                }
            }
            // A rule that sets different types equal is wrong; what was known before is not.
            if !budget.exhausted() && whole.saturate(budget).is_ok() {
                offer(&whole, engine, budget);
            }
            Found { script, visited, complete }
        })
    }
}
