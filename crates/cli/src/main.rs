//! The `regraft` command: arguments in, exit code out. All work is done by the libraries.

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
mod interrupt;
mod optimize;
mod priced;
mod progress;
mod rules;
mod search;
mod usage;
mod zoo;

use std::process::ExitCode;

/// Searches make many small objects, and the reference executor large ones in turn: it takes a fifth
/// less time than the system's. The runtime keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command::run()
}
