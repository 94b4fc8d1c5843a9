//! Episodes: what an agent did, and what it earned.

use regraft_ir::SplitMix64;
use regraft_xrlflow::{Agent, Environment, Pool};

/// A step of an episode.
#[derive(Clone, Debug)]
pub struct Step {
    /// The graphs that there were to choose from.
    pub pools: Vec<Pool>,
    /// What was chosen.
    pub action: usize,
    /// How likely that was: a logarithm.
    pub likely: f32,
    /// What was expected to be earned from here.
    pub value: f32,
    /// What was earned by it.
    pub reward: f32,
    /// How the episode ended, if it did.
    pub end: Option<End>,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The agent stopped.
    Stopped,
    /// It was cut off, where this was still expected to be earned.
    CutOff(f32),
}

/// One episode; `None` if `go_on` ended it.
pub fn episode(
    environment: &mut Environment<'_, '_, '_>,
    agent: &mut Agent<'_>,
    random: &mut SplitMix64,
    go_on: &dyn Fn() -> bool,
) -> Option<Vec<Step>> {
    environment.reset();
    let mut steps = Vec::new();
    let mut pools = environment.pools();
    let mut judgement = agent.judge(environment.rows(), &pools);
    loop {
        if !go_on() {
            return None;
        }
        let action = judgement.draw(random);
        let done = environment.step(action);
        let mut step = Step { pools, action, likely: judgement.likely[action], value: judgement.value, reward: done.reward, end: None };
        if done.terminated {
            step.end = Some(End::Stopped);
            steps.push(step);
            return Some(steps);
        }
        pools = environment.pools();
        judgement = agent.judge(environment.rows(), &pools);
        step.end = done.truncated.then_some(End::CutOff(judgement.value));
        steps.push(step);
        if done.truncated {
            return Some(steps);
        }
    }
}
