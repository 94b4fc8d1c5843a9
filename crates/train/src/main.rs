//! `regraft-train`: how accurate small networks with these operators become.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use regraft_synth::Coordinates;
use regraft_train::halving::{Schedule, network, train};
use regraft_train::{Store, Task, spec};

/// Train small networks with operators in them, and print how accurate they become
///
/// The network has four layers, at 16x16 and 8x8, with 32 and 64 channels; the task is to tell ten
/// textures apart under noise. Half of the operators are dropped at each milestone.
#[derive(Debug, Parser)]
#[command(name = "regraft-train", version, max_term_width = 100)]
struct Args {
    /// Formulas, as `regraft synthesize` prints them
    #[arg(required = true, value_name = "FORMULA")]
    formulas: Vec<String>,
    /// Seeds; each trains all operators
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// Epochs after which half of the operators are dropped, the last one for those that stay
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    milestones: Vec<usize>,
    /// Size of the noise, relative to the textures
    #[arg(long, value_name = "SIZE", default_value_t = 1.0)]
    noise: f32,
    /// Database of runs: what is in it is not trained again
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Print runs as JSON, one a line
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    let store = args.store.as_deref().map_or_else(Store::in_memory, Store::open)?;
    let schedule = Schedule { milestones: args.milestones, task: Task { noise: args.noise, ..Task::default() }, ..Schedule::default() };
    // Those that do not fit the network's layers are told, and left out.
    let mut operators = Vec::new();
    let mut unfit = None;
    for formula in &args.formulas {
        match network(formula, schedule.batch, &mut coordinates) {
            Ok(network) => operators.push((formula.clone(), network)),
            Err(error) => {
                eprintln!("regraft-train: {error:#}");
                unfit = Some(error);
            }
        }
    }
    if let Some(error) = unfit.filter(|_| operators.is_empty()) {
        return Err(error);
    }
    for seed in args.seeds {
        let mut each = |run: &regraft_train::Run| {
            eprintln!(
                "seed {}, epoch {}: {:.3} after {:.1} s, loss {:.3}: {}",
                run.seed, run.epoch, run.accuracy, run.seconds, run.loss, run.formula
            );
        };
        for run in train(&operators, &schedule, seed, &store, &mut each, &|| true)?.into_iter().flatten() {
            match args.json {
                true => println!("{}", serde_json::to_string(&run)?),
                false => println!("{:6.2} %  epoch {}  seed {}  {}", 100.0 * run.accuracy, run.epoch, run.seed, run.formula),
            }
        }
    }
    Ok(())
}
