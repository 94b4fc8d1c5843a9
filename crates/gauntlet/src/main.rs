//! Campaigns that try to break Regraft: `cargo run --release -p regraft-gauntlet -- CAMPAIGN`.
//!
//! | campaign | what it does |
//! |---|---|
//! | `node-tests` | ONNX's own node tests in four variants: read, rewritten, written, run |
//! | `fuzz` | random models, rewritten at random whatever it costs |
//! | `malformed` | damaged models and rule files: read or refused, without a panic or a runaway allocation |
//! | `lights` | the zoo with open sizes, rewritten once, run at several bindings |
//! | `faults` | kills, full disks, broken files, two runs on one store |
//!
//! Every campaign prints its seed and ends with a verdict line; exit code 0 if nothing broke, 1 if something did, 2 if it could not run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod fuzz;
mod generate;
mod malformed;
mod trial;
mod verdict;

/// Counts allocations for the campaign `malformed`.
#[global_allocator]
static HEAP: malformed::heap::Counting = malformed::heap::Counting;

/// Campaigns that try to break Regraft.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    /// Random models, rewritten at random whatever it costs.
    Fuzz(fuzz::Fuzz),
    /// Damaged models and rule files: read or refused.
    Malformed(malformed::Malformed),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().campaign {
        Campaign::Fuzz(fuzz) => fuzz::run(&fuzz),
        Campaign::Malformed(malformed) => malformed::run(&malformed),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
