//! `regraft-train policy xrlflow`: what `regraft policy xrlflow` does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use regraft::file::write_atomic;
use regraft::priced::{Priced, Wanted};
use regraft::stopwatch::Stopwatch;
use regraft::units::{ShapeArg, parse_bind, parse_duration, parse_shape};
use regraft_search::{Engine, Matcher, Strategy};
use regraft_train::xrlflow::training::{Round, Training, curves};
use regraft_xrlflow::{Defects, Environment, Settings, Shaping, XRLflow};
use serde::Serialize;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model file, or name in the zoo
    model: PathBuf,
    /// Where the agent goes; beside it what training came to
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Episodes
    #[arg(long, value_name = "N", default_value_t = 1000)]
    episodes: usize,
    /// Time that training may take; with it, what was learned by then is written
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Measured prices, as `regraft cost export` writes them [default: the analytic roofline]
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Reward what ONNX Runtime takes on this machine, rather than what the price list says
    #[arg(long)]
    timed: bool,
    /// The runtime's library file, with --timed
    #[arg(long, value_name = "FILE", requires = "timed")]
    runtime_library: Option<PathBuf>,
    /// Size of an input: x:1,3,224,224; once per input
    #[arg(long, value_name = "INPUT:SIZES", value_parser = parse_shape)]
    shape: Vec<ShapeArg>,
    /// Value of a symbolic size: N=8
    #[arg(long, value_name = "SYMBOL=SIZE", value_parser = parse_bind)]
    bind: Vec<(String, i64)>,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Rewrites of an episode at most
    #[arg(long, value_name = "N", default_value_t = Settings::default().horizon)]
    horizon: usize,
    /// Candidates that the agent has a place for, with the one that stops
    #[arg(long, value_name = "N", default_value_t = Settings::default().slots, value_parser = slots)]
    slots: usize,
    /// Episodes between updates
    #[arg(long, value_name = "N", default_value_t = Settings::default().episodes, value_parser = slots)]
    episodes_per_update: usize,
    /// What steps earn that are not measured [default: potential]
    #[arg(long, value_name = "WHAT", value_enum)]
    shaping: Option<Reward>,
    /// Restore a defect of the published program
    #[arg(long, value_name = "DEFECT", value_enum, value_delimiter = ',')]
    defect: Vec<Defect>,
    /// Restore all of them, and the bonus
    #[arg(long, conflicts_with = "defect")]
    as_published: bool,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the curves of training
    #[arg(long, value_name = "SVG")]
    curves: Option<PathBuf>,
}

fn slots(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a number from 1".into())
}

/// Values of `--shaping`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Reward {
    /// Nothing.
    None,
    /// 0.1 a step, as published.
    Bonus,
    /// What the price list says of the step, paid in advance.
    Potential,
}

/// Values of `--defect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Defect {
    /// Attention that does not depend on who listens.
    BlindAttention,
    /// Advantages that flow from an episode that was cut off into the next one.
    CrossingAdvantages,
    /// The last state is returned, not the best one.
    LastState,
    /// Sizes are divided by 4096.
    LinearSizes,
}

/// Time for rollouts of the trained agent.
const ROLLOUTS: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Figures<'f> {
    model: String,
    prices: String,
    seed: u64,
    settings: Settings,
    /// ns.
    cost: u64,
    /// Of the cheapest state of the whole training, by the price list.
    best: f64,
    rewrites: usize,
    /// What rollouts of the trained agent find, ns.
    rollouts: f64,
    rounds: &'f [Round],
}

pub fn run(args: &Args, go_on: &dyn Fn() -> bool) -> Result<()> {
    let restored = |defect: Defect| args.as_published || args.defect.contains(&defect);
    let defects = Defects {
        blind_attention: restored(Defect::BlindAttention),
        crossing_advantages: restored(Defect::CrossingAdvantages),
        last_state: restored(Defect::LastState),
        linear_sizes: restored(Defect::LinearSizes),
    };
    let published = if args.as_published { Reward::Bonus } else { Reward::Potential };
    let shaping = match args.shaping.unwrap_or(published) {
        Reward::None => Shaping::None,
        Reward::Bonus => Shaping::Bonus,
        Reward::Potential => Shaping::Potential,
    };
    let (horizon, slots, episodes) = (args.horizon, args.slots, args.episodes_per_update);
    let settings = Settings { horizon, slots, episodes, shaping, defects, ..Settings::default() };
    let wanted =
        Wanted { model: &args.model, prices: args.prices.as_deref(), machine: None, shapes: &args.shape, binds: &args.bind, rules: &[] };
    let priced = Priced::open(&wanted).map_err(told)?;
    let stopwatch = match args.timed {
        true => Some(Stopwatch::new(&priced.model, priced.symbols.clone(), args.runtime_library.clone()).map_err(told)?),
        false => None,
    };
    let mut engine = Engine::new(priced.graph.clone(), &*priced.prices);
    let mut matcher = Matcher::new(&priced.library, &priced.writable);
    let cost = engine.cost();
    let model = args.model.display().to_string();
    let sizes: Vec<String> =
        args.shape.iter().map(|shape| format!("{shape:?}")).chain(args.bind.iter().map(|(n, v)| format!("{n}={v}"))).collect();
    let name = format!("{model} {} {}{}", sizes.join(" "), priced.name, if args.timed { " timed" } else { "" });
    let mut training = Training::open(&args.output.with_extension("xrlflow.sqlite"), &name, settings, args.seed)?;
    let until = args.budget.map(|budget| Instant::now() + budget);
    let in_time = || go_on() && until.is_none_or(|until| Instant::now() < until);
    let (best, rewrites) = {
        let mut environment = Environment::new(&mut engine, &mut matcher, settings);
        if let Some(stopwatch) = &stopwatch {
            // A state that does not run is no state to go to.
            environment = environment.timed_by(Box::new(|engine| stopwatch.time(engine.graph()).unwrap_or(f64::MAX / 1e6)));
        }
        if environment.left_out() > 0 {
            eprintln!("{} candidates have no slot at the beginning; --slots makes more", environment.left_out());
        }
        training.run(&mut environment, args.episodes, &in_time, &mut |round| eprintln!("{}", shown(round)))?;
        let best = environment.best();
        (cost as f64 / best.script.cost.max(1) as f64, best.script.moves.len())
    };
    ensure!(go_on(), "interrupted: the same command goes on after the last update");
    let end = Instant::now() + ROLLOUTS;
    let found = XRLflow::new(training.weights()).search(&mut engine, &mut matcher, &mut || !go_on() || Instant::now() >= end);
    let rollouts = cost as f64 / found.scripts[0].cost.max(1) as f64;
    write_atomic(&args.output, &training.weights().to_bytes())?;
    if let Some(path) = &args.json {
        let figures = Figures {
            model: model.clone(),
            prices: priced.name.clone(),
            seed: args.seed,
            settings,
            cost,
            best,
            rewrites,
            rollouts,
            rounds: training.rounds(),
        };
        write_atomic(path, (serde_json::to_string_pretty(&figures)? + "\n").as_bytes())?;
    }
    if let Some(path) = &args.curves {
        write_atomic(path, curves(&model, training.rounds()).as_bytes())?;
    }
    let seconds = training.rounds().last().map_or(0.0, |round| round.seconds);
    println!(
        "{model}: {} episodes in {seconds:.0} s; the best state seen is {best:.4}x, what the agent finds by itself {rollouts:.4}x ({})",
        training.episodes(),
        priced.name
    );
    Ok(())
}

/// A failure as an error, with its hint.
fn told(failure: regraft::error::Failure) -> anyhow::Error {
    match &failure.hint {
        Some(hint) => anyhow::anyhow!("{}\nhint: {hint}", failure.cause),
        None => anyhow::anyhow!("{}", failure.cause),
    }
}

fn shown(round: &Round) -> String {
    format!(
        "{:5} episodes: reward {:7.2}, {:5.1} rewrites, last {:.4}x, best {:.4}x, entropy {:.3}, divergence {:.4}, {:.0} s",
        round.episodes, round.reward, round.length, round.last, round.best, round.entropy, round.divergence, round.seconds
    )
}
