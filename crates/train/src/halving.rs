//! Many operators, of which the worse half is dropped at each milestone (Jamieson and Talwalkar,
//! "Non-stochastic best arm identification", 2016: successive halving).

use std::time::Instant;

use anyhow::{Context, Result};
use regraft_synth::{Coordinates, Operator, Plan};

use crate::network::Network;
use crate::store::{Run, Store};
use crate::task::Task;
use crate::training::Training;

/// How operators are trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Epochs after which half of the operators are dropped, ascending; all end with the last.
    pub milestones: Vec<usize>,
    /// Images at once.
    pub batch: usize,
    /// The task.
    pub task: Task,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { milestones: vec![1, 2, 4], batch: 32, task: Task::default() }
    }
}

/// Trains networks from one seed; the last run of each, in their order. Runs that the store knows
/// are not repeated, unless a later milestone asks for the network itself. `go_on` is asked before
/// each epoch; what was trained until then stays.
///
/// # Errors
///
/// If a network cannot be computed, or the store cannot be used.
pub fn train(
    operators: &[(String, Network)],
    schedule: &Schedule,
    seed: u64,
    store: &Store,
    each: &mut dyn FnMut(&Run),
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Option<Run>>> {
    let last = schedule.milestones.last().copied().unwrap_or(1);
    let mut trainings: Vec<Option<Training<'_>>> = operators.iter().map(|_| None).collect();
    let mut runs: Vec<Option<Run>> = vec![None; operators.len()];
    let mut alive: Vec<usize> = (0..operators.len()).collect();
    for milestone in &schedule.milestones {
        for &at in &alive {
            let (formula, network) = &operators[at];
            if let Some(run) = store.get(formula, seed, last, *milestone)? {
                runs[at] = Some(run);
                continue;
            }
            let training = trainings[at].get_or_insert_with(|| Training::new(network, schedule.batch, last, schedule.task, seed));
            let start = Instant::now();
            while training.done() < *milestone {
                if !go_on() {
                    return Ok(runs);
                }
                let progress = training.epoch()?;
                let run = Run {
                    formula: formula.clone(),
                    seed,
                    planned: last,
                    epoch: progress.epoch,
                    loss: progress.loss,
                    accuracy: progress.accuracy,
                    seconds: start.elapsed().as_secs_f64(),
                };
                store.put(&run)?;
                each(&run);
                runs[at] = Some(run);
            }
        }
        let accuracy = |at: &usize| runs[*at].as_ref().map_or(0.0, |run| run.accuracy);
        alive.sort_by(|a, b| accuracy(b).total_cmp(&accuracy(a)));
        alive.truncate(alive.len().div_ceil(2));
    }
    Ok(runs)
}

/// The network with an operator in it.
///
/// # Errors
///
/// If the formula is no operator of the specification.
pub fn network(formula: &str, batch: usize, coordinates: &mut Coordinates<'_>) -> Result<Network> {
    let operator = Operator::parse(formula, coordinates).with_context(|| formula.to_string())?;
    let plan = Plan::of(&operator, coordinates).with_context(|| format!("{formula}: no way to compute it"))?;
    Network::new(&operator, &plan, batch, coordinates).with_context(|| format!("{formula}: does not fit the network's layers"))
}
