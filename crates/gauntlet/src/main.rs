//! Where does any of this break? Campaigns that try to find out:
//! `cargo run --release -p regraft-gauntlet -- CAMPAIGN`.
//!
//! | campaign | what it does |
//! |---|---|
//! | `node-tests` | ONNX's own node tests in four variants: read, rewritten, written, run |
//! | `fuzz` | random models, rewritten at random whatever it costs |
//! | `foreign` | what other simplifiers make of random models: proved to be the same, and wrong models never |
//! | `attack` | pairs that look alike and differ, forged certificates, false rules: none may be proved |
//! | `bodies` | models with If, Loop and Scan, rewritten at random outside and inside of their bodies |
//! | `engine` | random rewrites of every network: sums of deltas, and undoing |
//! | `searches` | random graphs and families of rules: the exhaustive searches visit the same states |
//! | `saturation` | random models and small networks: what e-graphs grow from them is acyclic, proved and equal |
//! | `operators` | operators drawn for a layer: each computes what its loops say |
//! | `zoo` | networks with an open batch, rewritten once, run at three other sizes |
//! | `malformed` | damaged models and rule files: read or refused, without a panic or a runaway allocation |
//! | `faults` | kills, full disks, broken files, two runs on one store |
//! | `memory` | a model much larger than the memory that a run may take |
//! | `decoder` | writes a model of any size with external data, to try memory limits on |
//!
//! Every campaign prints its seed and ends with a verdict line; exit code 0 if nothing broke, 1 if
//! something did, 2 if it could not run.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod attack;
mod bodies;
mod caught;
mod decoder;
mod engine;
mod faults;
mod foreign;
mod fuzz;
mod generate;
mod malformed;
mod memory;
mod node_tests;
mod operators;
mod python;
mod saturation;
mod searches;
mod summary;
mod trial;
mod zoo;

/// Counts allocations for the `malformed` campaign.
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
    NodeTests(node_tests::Args),
    /// Random models, rewritten at random whatever it costs.
    Fuzz(fuzz::Fuzz),
    /// What other simplifiers make of random models: proved to be the same, and wrong models never
    Foreign(foreign::Foreign),
    /// Models with If, Loop and Scan, rewritten at random outside and inside of their bodies
    Bodies(bodies::Args),
    /// Pairs that look alike and differ, forged certificates, false rules: none may be proved
    Attack(attack::Args),
    Faults(faults::Args),
    Memory(memory::Args),
    Decoder(decoder::Args),
    /// Random rewrites of every network: sums of deltas, and undoing
    Engine(engine::Args),
    /// Random graphs and rules: the exhaustive searches visit the same states
    Searches(searches::Args),
    /// Random models and small networks: extractions of their e-graphs, replayed and compared
    Saturation(saturation::Args),
    /// Operators drawn for layers: each computes what its loops say
    Operators(operators::Args),
    /// Networks with an open batch, rewritten once, run at three other sizes
    Zoo(zoo::Args),
    /// Damaged models and rule files: read or refused
    Malformed(malformed::Malformed),
}

fn main() -> ExitCode {
    run(Cli::parse().campaign).unwrap_or_else(|error| {
        eprintln!("regraft-gauntlet: {error:#}");
        ExitCode::from(2)
    })
}

fn run(campaign: Campaign) -> Result<ExitCode> {
    match campaign {
        Campaign::NodeTests(args) => Ok(node_tests::run(&args)),
        Campaign::Fuzz(args) => fuzz::run(&args),
        Campaign::Foreign(args) => foreign::run(&args),
        Campaign::Bodies(args) => Ok(bodies::run(&args)),
        Campaign::Attack(args) => attack::run(&args),
        Campaign::Engine(args) => engine::run(&args),
        Campaign::Searches(args) => searches::run(&args),
        Campaign::Saturation(args) => saturation::run(&args),
        Campaign::Operators(args) => operators::run(&args),
        Campaign::Zoo(args) => Ok(zoo::run(&args)),
        Campaign::Decoder(args) => decoder::run(&args),
        Campaign::Malformed(args) => malformed::run(&args),
        Campaign::Faults(args) => faults::run(&args),
        Campaign::Memory(args) => memory::run(&args),
    }
}
