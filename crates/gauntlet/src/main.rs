//! Campaigns that try to break Regraft: `cargo run --release -p regraft-gauntlet -- CAMPAIGN`.
//!
//! | campaign | what it does |
//! |---|---|
//! | `node-tests` | ONNX's own node tests in four variants: read, rewritten, written, run |
//! | `fuzz` | random models, rewritten at random whatever it costs |
//! | `bodies` | small models with `If`, `Loop` and `Scan`, rewritten at random outside and inside of their bodies |
//! | `zoo` | every network with an open batch, rewritten once, run at three other sizes |
//! | `faults` | kills, full disks, broken files, two runs on one store |
//!
//! Every campaign prints its seed and ends with a verdict line; exit code 0 if nothing broke, 1 if something did, 2 if it could not run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bodies;
mod trial;
mod verdict;
mod zoo;

/// Campaigns that try to break Regraft.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    /// Models with If, Loop and Scan, rewritten at random outside and inside of their bodies
    Bodies(bodies::Args),
    /// Networks with an open batch, rewritten once, run at three other sizes
    Zoo(zoo::Args),
}

fn main() -> ExitCode {
    match Cli::parse().campaign {
        Campaign::Bodies(args) => bodies::run(&args),
        Campaign::Zoo(args) => zoo::run(&args),
    }
}
