//! From tasks to outcomes: what is ready is given to a crew, until all are done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use regraft::Failure;

use crate::crew::{Crew, Ended};
use crate::farm::Farm;
use crate::outcome::Outcome;
use crate::table::Table;
use crate::task::Task;

/// How long the crew is waited for, before the watcher is asked.
const LOOK: Duration = Duration::from_millis(100);
/// The table is written again after this time at the earliest, while tasks end.
const TABLE: Duration = Duration::from_secs(1);
/// Those at work may take this long to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times that a task is given to a crew: one more than its process may die, for the last writes so.
const MOST_STARTS: usize = 4;

/// Who is told what happens.
pub trait Watcher {
    /// So many of all tasks are done; what this is about.
    fn step(&mut self, done: usize, all: usize, detail: &str);

    /// Something odd that is not an error.
    fn warn(&mut self, text: &str);

    /// Whether to stop.
    fn interrupted(&self) -> bool;
}

/// Has every task of a farm done that has no outcome. Returns the table of all; tasks without an
/// outcome are those that could not be tried, or were left when the work was interrupted.
///
/// # Errors
///
/// The crew cannot work, or the farm cannot be written.
pub fn work(farm: &Farm, tasks: &[Task], crew: &mut dyn Crew, watcher: &mut dyn Watcher) -> Result<Table, Failure> {
    let mut state = Progress::of(farm, tasks);
    let mut written = Instant::now();
    state.table(farm)?;
    loop {
        if watcher.interrupted() {
            crew.stop();
            let until = Instant::now() + PATIENCE;
            while !state.begun.is_empty() && Instant::now() < until {
                match crew.wait(LOOK) {
                    Ok(None) => {}
                    Ok(Some(ended)) => {
                        state.begun.remove(&ended.task);
                        state.take(farm, &ended);
                    }
                    // There is nobody left.
                    Err(_) => break,
                }
            }
            break;
        }
        while let Some(task) = state.next(crew) {
            watcher.step(state.done.len(), tasks.len(), &task.id);
            crew.begin(task)?;
            state.begun.insert(task.id.clone());
            *state.starts.entry(task.id.clone()).or_default() += 1;
        }
        if state.begun.is_empty() {
            break;
        }
        let Some(ended) = crew.wait(LOOK)? else { continue };
        let ended_task = ended.task.clone();
        state.begun.remove(&ended_task);
        if !state.take(farm, &ended) {
            let error = ended.error.unwrap_or_else(|| "it ended without an outcome".into());
            let starts = state.starts.get(&ended.task).copied().unwrap_or_default();
            if ended.again && starts < MOST_STARTS {
                watcher.warn(&format!("{}: {error}; it is tried again", ended.task));
            } else {
                state.lost.insert(ended.task, error);
            }
        }
        watcher.step(state.done.len(), tasks.len(), &format!("{} ended", ended_task));
        if written.elapsed() > TABLE {
            state.table(farm)?;
            written = Instant::now();
        }
    }
    state.table(farm)
}

/// How far tasks have come.
struct Progress<'a> {
    tasks: &'a [Task],
    done: BTreeMap<String, Outcome>,
    begun: BTreeSet<String>,
    starts: BTreeMap<String, usize>,
    /// Tasks that could not be tried, and why.
    lost: BTreeMap<String, String>,
}

impl<'a> Progress<'a> {
    fn of(farm: &Farm, tasks: &'a [Task]) -> Progress<'a> {
        let mut done = BTreeMap::new();
        for task in tasks {
            if let Some(outcome) = farm.outcome(task) {
                done.insert(task.id.clone(), outcome);
            }
        }
        Progress { tasks, done, begun: BTreeSet::new(), starts: BTreeMap::new(), lost: BTreeMap::new() }
    }

    /// A task that is ready, and that the crew has room for. The first that is ready waits for
    /// room, so that none waits for ever.
    fn next(&self, crew: &dyn Crew) -> Option<&'a Task> {
        let is_open = |task: &&Task| {
            let met = |need: &String| self.done.get(need).is_some_and(|outcome| outcome.state.has_output());
            let is_known = self.done.contains_key(&task.id) || self.begun.contains(&task.id) || self.lost.contains_key(&task.id);
            !is_known && task.needs.iter().all(met)
        };
        self.tasks.iter().find(is_open).filter(|task| crew.has_room(task))
    }

    /// Takes over the outcome of a task, if there is one.
    fn take(&mut self, farm: &Farm, ended: &Ended) -> bool {
        let task = self.tasks.iter().find(|task| task.id == ended.task);
        let outcome = task.and_then(|task| farm.outcome(task));
        let is_there = outcome.is_some();
        self.done.extend(outcome.map(|outcome| (ended.task.clone(), outcome)));
        is_there
    }

    /// Writes the table.
    fn table(&self, farm: &Farm) -> Result<Table, Failure> {
        let table = Table::of(farm, self.tasks, &self.done, &self.lost);
        table.write(farm)?;
        Ok(table)
    }
}
