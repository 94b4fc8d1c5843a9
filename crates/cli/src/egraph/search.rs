//! `regraft egraph search`.

use std::time::Duration;

use regraft::error::Failure;
use regraft::render::{lines, plain_table};
use regraft::saturated::{By, SearchedEGraphs, search};
use regraft::units::{parse_duration, show_ns};
use regraft_saturate::{Limits, Mcts, Method};

use super::grown::Grown;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::priced::Priced;

/// Search the e-graphs of a model
///
/// Grows the e-graph of a model and extracts from it; nothing is measured, and nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft egraph search paper-bert --by mcts --main shared --final ilp --seed 3")]
pub struct Args {
    #[command(flatten)]
    priced: Priced,
    #[command(flatten)]
    grown: Grown,
    /// What decides which rule is applied
    #[arg(long, value_name = "HOW", value_enum, default_value = "mcts")]
    by: Choice,
    /// How simulations extract
    #[arg(long, value_name = "METHOD", value_enum, default_value = "sets")]
    main: Extract,
    /// How the result is extracted
    #[arg(long, value_name = "METHOD", value_enum, default_value = "ilp")]
    r#final: Extract,
    /// Simulations before each step
    #[arg(long, value_name = "N", default_value_t = Mcts::default().simulations)]
    simulations: usize,
    /// Steps of a simulation, after the one that it tries
    #[arg(long, value_name = "N", default_value_t = Mcts::default().depth)]
    depth: usize,
    /// Regions of the network that a rule may be applied in; 1 to apply it everywhere
    #[arg(long, value_name = "N", default_value_t = Mcts::default().regions)]
    regions: u16,
    /// Threads that run simulations [default: as many as there are processors, up to 4]; the result
    /// is the same
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Seed of simulations
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Improve the result by a descent, and search again from there
    #[arg(long)]
    polish: bool,
    /// Time that it may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time: Duration,
    /// Tell which rules each step applies, and what is cheapest then
    #[arg(long)]
    trace: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Values of `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Choice {
    /// Nothing: all of them, everywhere (TENSAT)
    Saturation,
    /// Monte Carlo tree search (PACT 2024)
    Mcts,
}

/// Values of `--main` and `--final`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Extract {
    /// Each class by its cheapest tree (egg)
    Tree,
    /// By a table of what is shared (PACT 2024, Algorithm 2)
    Shared,
    /// By sets of nodes
    Sets,
    /// By sets of nodes, improved by local search
    GreedyDag,
    /// The least cost, as far as the effort allows
    Ilp,
}

impl From<Extract> for Method {
    fn from(extract: Extract) -> Method {
        match extract {
            Extract::Tree => Method::Tree,
            Extract::Shared => Method::Shared,
            Extract::Sets => Method::Quick,
            Extract::GreedyDag => Method::GreedyDag,
            Extract::Ilp => Method::Exact,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    interrupt::catch("telling what was found so far");
    let mcts = Mcts {
        simulations: args.simulations,
        depth: args.depth,
        regions: args.regions,
        threads: args.threads,
        seed: args.seed,
        main: args.main.into(),
        last: args.r#final.into(),
        polish: args.polish,
        ..Mcts::default()
    };
    let (by, limits) = match args.by {
        Choice::Saturation => {
            let by = By::Saturation { method: args.r#final.into(), polish: args.polish };
            (by, Limits { nodes: mcts.limits.nodes, ..Limits::default() })
        }
        Choice::Mcts => (By::Simulations(mcts), mcts.limits),
    };
    let request = args.grown.request(&args.priced, limits);
    let found = search(&request, by, args.time, args.trace, &interrupt::requested)?;
    if args.json {
        console.json(&found)?;
    } else {
        console.print(&shown(&found, console))?;
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

fn shown(found: &SearchedEGraphs, console: &Console) -> String {
    let SearchedEGraphs { input, cost, rewrites, states, seconds, .. } = found;
    let verdict = format!(
        "verdict: {} -> {} by {} rewrites, {states} states, {}",
        show_ns(*input as f64),
        show_ns(*cost as f64),
        rewrites.values().sum::<usize>(),
        regraft::render::seconds(*seconds)
    );
    if console.quiet || found.steps.is_empty() {
        return verdict;
    }
    let mut table = plain_table(&["step", "operators", "cheapest", "rewrites", "rules"], &[0, 1, 2, 3]);
    for (at, step) in found.steps.iter().enumerate() {
        let names: Vec<&str> = step.applied.keys().map(String::as_str).collect();
        let rules = if names.len() > 3 { format!("{} rules", names.len()) } else { names.join(", ") };
        let rewrites: usize = step.applied.values().sum();
        table.add_row([at.to_string(), step.nodes.to_string(), show_ns(step.cost), rewrites.to_string(), rules]);
    }
    format!("{}\n{verdict}", lines(&table))
}
