//! `XRLflow`: what a trained agent does with a graph; `Random`: what one does that knows nothing.

use regraft_ir::{Budget, SplitMix64};
use regraft_search::{Engine, Matcher, Outcome, Script, Strategy};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::settings::Settings;
use crate::weights::Weights;

/// Rollouts of an agent: the most likely actions once, then drawn ones.
#[derive(Clone, Debug)]
pub struct XRLflow<'w> {
    /// The agent.
    pub weights: &'w Weights,
    /// Rollouts at most.
    pub rollouts: usize,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl XRLflow<'_> {
    /// One rollout, and eight that are drawn.
    pub fn new(weights: &Weights) -> XRLflow<'_> {
        XRLflow { weights, rollouts: 9, seed: 0 }
    }
}

impl Strategy for XRLflow<'_> {
    fn name(&self) -> &'static str {
        "xrlflow"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let settings = self.weights.about.settings;
        let mut random = SplitMix64(self.seed);
        let mut agent = Agent::new(self.weights);
        let mut complete = true;
        let mut environment = Environment::new(engine, matcher, settings);
        let mut last = environment.script();
        // As published, there is one, and it is drawn.
        let rollouts = if settings.defects.last_state { 1 } else { self.rollouts };
        for rollout in 0..rollouts {
            environment.reset();
            loop {
                complete &= !budget.exhausted();
                if !complete {
                    break;
                }
                let pools = environment.pools();
                let judgement = agent.judge(environment.rows(), &pools);
                let is_drawn = rollout > 0 || settings.defects.last_state;
                let action = if is_drawn { judgement.draw(&mut random) } else { judgement.most_likely() };
                let done = environment.step(action);
                if done.terminated || done.truncated {
                    break;
                }
            }
            last = environment.script();
            if !complete {
                break;
            }
        }
        let found = if settings.defects.last_state { last } else { environment.best().script.clone() };
        let visited = environment.states();
        drop(environment);
        outcome(engine, found, visited, complete)
    }
}

/// Episodes of random actions, and the best state that any came by: what an agent must be better
/// than.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Episodes at most.
    pub episodes: usize,
    /// Seed.
    pub seed: u64,
}

impl Default for Random {
    fn default() -> Random {
        Random { episodes: 1000, seed: 0 }
    }
}

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let mut random = SplitMix64(self.seed);
        let mut environment = Environment::new(engine, matcher, Settings { slots: usize::MAX, ..Settings::default() });
        let mut complete = true;
        for _ in 0..self.episodes {
            environment.reset();
            loop {
                complete &= !budget.exhausted();
                let count = environment.candidates().len();
                if !complete || count == 0 || environment.step(random.below(count)).truncated {
                    break;
                }
            }
            if !complete {
                break;
            }
        }
        let (found, visited) = (environment.best().script.clone(), environment.states());
        drop(environment);
        outcome(engine, found, visited, complete)
    }
}

/// What was found, and the start.
fn outcome(engine: &Engine<'_>, found: Script, visited: u64, complete: bool) -> Outcome {
    let mut outcome = Outcome { visited, complete, ..Outcome::of(Script::here(engine)) };
    outcome.add(Outcome { visited: 0, ..Outcome::of(found) });
    outcome
}
