//! `Crew`: those who work on tasks.

use std::time::Duration;

use regraft::Failure;

use crate::task::Task;

/// The end of an attempt.
#[derive(Debug)]
pub struct Ended {
    /// The task.
    pub task: String,
    /// What went wrong, if there is no outcome.
    pub error: Option<String>,
    /// Whether trying again may help: the process died, and said nothing.
    pub again: bool,
}

/// Works on tasks of a farm, several at a time.
pub trait Crew {
    /// Whether another task can begin now.
    fn has_room(&self, task: &Task) -> bool;

    /// Begins a task.
    ///
    /// # Errors
    ///
    /// It cannot be begun.
    fn begin(&mut self, task: &Task) -> Result<(), Failure>;

    /// Waits for the end of an attempt, at most so long.
    ///
    /// # Errors
    ///
    /// The crew itself is gone.
    fn wait(&mut self, limit: Duration) -> Result<Option<Ended>, Failure>;

    /// Asks those at work to stop. They may still end as usual.
    fn stop(&mut self);
}
