//! Campaigns that try to break Regraft: `cargo run --release -p regraft-gauntlet -- CAMPAIGN`.
//!
//! | campaign | what it does |
//! |---|---|
//! | `node-tests` | ONNX's own node tests in four variants: read, rewritten, written, run |
//! | `fuzz` | random models, rewritten at random whatever it costs |
//! | `lights` | the zoo with open sizes, rewritten once, run at several bindings |
//! | `faults` | kills, full disks, broken files, two runs on one store |
//! | `memory` | a model much larger than the memory that a run may take |
//! | `decoder` | writes a model of any size with external data, to try memory limits on |
//!
//! Every campaign prints its seed and ends with a verdict line; exit code 0 if nothing broke, 1 if something did, 2 if it could not run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod decoder;
mod faults;
mod memory;
mod trial;
mod verdict;

/// Campaigns that try to break Regraft.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    Decoder(decoder::Args),
    Faults(faults::Args),
    Memory(memory::Args),
}

fn main() -> ExitCode {
    let ended = match Cli::parse().campaign {
        Campaign::Decoder(args) => decoder::run(&args),
        Campaign::Faults(args) => faults::run(&args),
        Campaign::Memory(args) => memory::run(&args),
    };
    ended.unwrap_or_else(|why| {
        eprintln!("regraft-gauntlet: {why:#}");
        ExitCode::from(2)
    })
}
