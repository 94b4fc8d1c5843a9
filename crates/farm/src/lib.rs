//! Many commands on many machines: a file of [`Jobs`] becomes [`Task`]s in a [`Farm`], a folder,
//! and every task becomes an [`Outcome`] there.
//!
//! A task is one `regraft` command with its input files, named by a digest of both. Whoever has the
//! folder and the program can work on it: [`attempt`] takes a lock, claims the processor cores that
//! the task asks for ([`Cores`]), runs the command, and writes the outcome last, so a task is done
//! or it is not. [`work`] gives the tasks that are ready to a [`Crew`], of processes on this
//! machine ([`Local`]) or of a Ray cluster ([`Ray`]), until every one has its outcome; what has one
//! already is not repeated. A [`Table`] shows them all.

mod attempt;
mod cores;
mod crew;
mod farm;
mod jobs;
mod local;
mod outcome;
mod ray;
mod table;
mod task;
mod work;

pub use attempt::{Command, Ran, attempt, withdraw_for_good};
pub use cores::{Cores, Need};
pub use crew::{Crew, Ended};
pub use farm::Farm;
pub use jobs::Jobs;
pub use local::Local;
pub use outcome::{Outcome, Place, State};
pub use ray::Ray;
pub use table::{Row, Table};
pub use task::{Input, Kind, Labels, Task};
pub use work::{Watcher, work};
