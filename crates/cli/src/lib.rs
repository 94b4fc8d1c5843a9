//! The commands of `regraft`: arguments in, exit code out. All work is done by the libraries.
//!
//! [`run`] is the command in a terminal; [`call`] is the same for programs.

mod again;
mod bench;
mod check;
mod command;
mod compare;
mod console;
mod corpus;
mod cost;
mod egraph;
mod exit;
mod explain;
mod farm;
mod host;
mod interrupt;
mod junit;
mod optimize;
mod policy;
mod predict;
mod priced;
mod progress;
mod report;
mod rules;
mod search;
mod shell;
mod synthesize;
mod target;
mod task;
mod trainer;
mod usage;
mod zoo;

pub use command::{START_UP, call, run, understand};
pub use exit::Exit;
pub use host::{Call, Host};
