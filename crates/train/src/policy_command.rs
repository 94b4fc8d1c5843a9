//! `regraft-train policy`: what `regraft policy` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use regraft_policy::descriptor::DESCRIPTOR;
use regraft_policy::{Digest, Sample, Teacher, Weights};
use regraft_rules::Library;
use regraft_train::policy::comparison::{Comparison, Row, Totals};
use regraft_train::policy::corpus::{Corpus, HELD_BACK, Plan};
use regraft_train::policy::history::{Epoch, History, curves};
use regraft_train::policy::learning::Learning;
use regraft_train::policy::network::{Quality, descriptors};
use regraft_train::policy::problem::{Family, NETWORKS, network};
use serde::Serialize;

/// Learn which rewrite to try next
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make samples: strong searches on blocks of networks
    ///
    /// Each block is cut from a network of the zoo, taken some random moves away, and searched at the
    /// prices of a machine that is drawn. What is in the database is not made again, and an interrupted
    /// run goes on where it was.
    Data(Data),
    /// Train a policy on samples, which are made first where they are missing
    ///
    /// The same weights for the same samples and seed. After each epoch what was learned is kept: an
    /// interrupted training goes on from there.
    Train(Train),
    /// Compare searches that a policy guides with those by price alone
    ///
    /// On blocks that no training sees. A block counts by how many states are expanded until one is
    /// within 1 % of the cheapest that any search found.
    Eval(Eval),
    /// Train an agent of X-RLflow on one model, as published or with its defects mended
    ///
    /// Episodes of rewrites, and updates by proximal policy optimization in turn. An interrupted training
    /// goes on after the last update; `regraft compare MODEL --search xrlflow --agent FILE` uses what was
    /// learned.
    Xrlflow(crate::xrlflow_command::Args),
}

#[derive(Clone, Debug, clap::Args)]
struct Blocks {
    /// Networks of the zoo that blocks are cut from
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = NETWORKS)]
    models: Vec<String>,
    /// Random moves made before a block is looked at, at most
    #[arg(long, value_name = "N", default_value_t = 6)]
    detours: usize,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, clap::Args)]
pub struct Data {
    /// Database of samples
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    from: Blocks,
}

#[derive(Clone, Debug, clap::Args)]
struct Making {
    /// Blocks of each network
    #[arg(long, value_name = "N", default_value_t = 300)]
    blocks: usize,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

#[derive(Debug, clap::Args)]
pub struct Train {
    /// Where the weights go; beside them the epochs and, unless --samples names others, the samples
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Database of samples; only what is in it is learned from
    #[arg(long, value_name = "FILE", conflicts_with_all = ["models", "detours", "blocks", "threads"])]
    samples: Option<PathBuf>,
    /// Leave out these families (attention, convolutional, recurrent) or networks, and tell how good the
    /// policy is there
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
    /// Epochs
    #[arg(long, value_name = "N", default_value_t = 15)]
    epochs: usize,
    /// Rounds of expert iteration after that: the policy searches the blocks that it learned from, and learns
    /// from the states that it comes to, which the teacher labels
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "samples")]
    rounds: usize,
    /// Draw the curves of training
    #[arg(long, value_name = "SVG")]
    curves: Option<PathBuf>,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    from: Blocks,
}

#[derive(Debug, clap::Args)]
pub struct Eval {
    /// Weights, as `train` writes them
    #[arg(value_name = "FILE")]
    weights: PathBuf,
    /// Blocks of each network
    #[arg(long, value_name = "N", default_value_t = 10)]
    blocks: usize,
    /// States expanded at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    expansions: usize,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    from: Blocks,
}

/// Budget of the exact searches that a policy is compared with.
const VISITS: u64 = 20_000;
/// Of so many epochs, a later round has one.
const ROUND: usize = 3;

pub fn run(command: &Command) -> Result<()> {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed))?;
    let go_on = || !STOPPED.load(Ordering::Relaxed);
    match command {
        Command::Data(args) => data(&args.output, &args.making, &args.from, &go_on),
        Command::Train(args) => train(args, &go_on),
        Command::Eval(args) => eval(args, &go_on),
        Command::Xrlflow(args) => crate::xrlflow_command::run(args, &go_on),
    }
}

fn shipped() -> Result<Library> {
    Library::shipped().ok().context("the shipped rules cannot be read")
}

fn data(output: &Path, making: &Making, from: &Blocks, go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let library = shipped()?;
    let mut corpus = Corpus::open(output, Digest::of(&library))?;
    let Blocks { models, detours, seed } = from.clone();
    let plan = Plan { models, blocks: making.blocks, detours, seed, threads: making.threads, teacher: Teacher::default(), pupil: None };
    corpus.fill(&plan, &library, &mut told, go_on)?;
    ensure!(go_on(), "interrupted: the same command goes on from here");
    Ok(())
}

fn train(args: &Train, go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let samples = args.samples.clone().unwrap_or_else(|| args.output.with_extension("samples.sqlite"));
    if args.samples.is_none() {
        data(&samples, &args.making, &args.from, go_on)?;
    }
    let digest = Digest::of(&shipped()?);
    let corpus = Corpus::open(&samples, digest)?;
    let out = |model: &str, family: &str| args.without.iter().any(|out| out == model || out == family);
    let [mut learned, held_back] = corpus.split(&|model, family| !out(model, family), HELD_BACK)?;
    let [left_out, more] = corpus.split(&|model, family| out(model, family), HELD_BACK)?;
    let left_out = [left_out, more].concat();
    ensure!(!learned.is_empty(), "{}: no samples to learn from", samples.display());
    eprintln!("{} samples to learn from, {} held back, {} left out", learned.len(), held_back.len(), left_out.len());
    let rules = descriptors()?;
    let (epochs, seed) = (args.epochs, args.from.seed);
    let mut training = format!("{digest} {} samples without {:?} for {epochs} epochs seed {seed}", learned.len(), args.without);
    let mut history = History::open(&args.output.with_extension("epochs.sqlite"))?;
    let mut learning = match history.state(&training)? {
        Some(state) => Learning::from_bytes(&state, digest, epochs, seed).context(CUT_OFF)?,
        None => Learning::new(digest, epochs, seed),
    };
    let mut names = vec![training.clone()];
    learn(&mut history, &training, (&mut learning, epochs), [&learned, &held_back], &rules, go_on)?;
    for round in 1..=args.rounds {
        training = format!("{training} round {round}");
        learned.extend(visited(args, &training, round, &learning, go_on)?);
        eprintln!("round {round}: {} samples to learn from", learned.len());
        let (epochs, seed) = (epochs.div_ceil(ROUND), seed.wrapping_add(round as u64));
        learning = match history.state(&training)? {
            Some(state) => Learning::from_bytes(&state, digest, epochs, seed).context(CUT_OFF)?.in_later_round(),
            None => learning.next_round(epochs, seed),
        };
        learn(&mut history, &training, (&mut learning, epochs), [&learned, &held_back], &rules, go_on)?;
        names.push(training.clone());
    }
    if !left_out.is_empty() {
        eprintln!("left out: {}", shown(&learning.quality(&left_out, &rules)?.means()));
    }
    write(&args.output, &learning.weights().to_bytes())?;
    let mut all = Vec::new();
    for name in &names {
        let done = all.last().map_or(0, |epoch: &Epoch| epoch.epoch);
        all.extend(history.epochs(name)?.into_iter().map(|epoch| Epoch { epoch: done + epoch.epoch, ..epoch }));
    }
    if let Some(path) = &args.curves {
        write(path, curves(&all).as_bytes())?;
    }
    let seconds: f64 = all.iter().map(|epoch| epoch.seconds).sum();
    let epochs = all.last().map_or(0, |epoch| epoch.epoch);
    println!("{}: trained for {epochs} epochs in {seconds:.0} s", args.output.display());
    Ok(())
}

const CUT_OFF: &str = "what was learned before is cut off";

/// Trains until all epochs are done that are planned; each is kept.
fn learn(
    history: &mut History,
    training: &str,
    (learning, epochs): (&mut Learning, usize),
    [learned, held_back]: [&[Sample]; 2],
    rules: &[[f32; DESCRIPTOR]],
    go_on: &dyn Fn() -> bool,
) -> Result<()> {
    let mut begun = Instant::now();
    loop {
        let loss = match learning.done() {
            done if done == epochs && !history.epochs(training)?.is_empty() => return Ok(()),
            0 if history.epochs(training)?.is_empty() => f64::NAN,
            _ => learning.epoch(learned, rules, go_on)?.context("interrupted: the same command goes on after the last whole epoch")?,
        };
        let quality = learning.quality(held_back, rules)?.means();
        let epoch = Epoch {
            epoch: learning.done(),
            loss,
            first: quality.first,
            third: quality.third,
            off: quality.off,
            seconds: begun.elapsed().as_secs_f64(),
        };
        history.put(training, &epoch, learning)?;
        eprintln!("epoch {:2}: {}", epoch.epoch, shown(&quality));
        begun = Instant::now();
    }
}

/// The states that a policy comes to on the blocks that it was trained on, labelled.
fn visited(args: &Train, training: &str, round: usize, learning: &Learning, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Vec<Sample>> {
    let library = shipped()?;
    let path = args.output.with_extension(format!("round-{round}.sqlite"));
    let mut corpus = Corpus::open_for(&path, Digest::of(&library), training)?;
    let Blocks { models, detours, seed } = args.from.clone();
    let mut learned = Vec::new();
    for model in models {
        let family = Family::of(&network(&model)?);
        if !args.without.iter().any(|out| *out == model || out == family.name()) {
            learned.push(model);
        }
    }
    let Making { blocks, threads } = args.making;
    let pupil = Some(learning.weights());
    let plan = Plan { models: learned, blocks, detours, seed, threads, teacher: Teacher::default(), pupil };
    corpus.fill(&plan, &library, &mut told, go_on)?;
    ensure!(go_on(), "interrupted: the same command goes on from here");
    let [samples, _] = corpus.split(&|_, _| true, HELD_BACK)?;
    Ok(samples)
}

/// Tells how many blocks are done, now and then.
fn told(done: usize, total: usize) {
    if done.is_multiple_of(100) || done == total {
        eprintln!("{done} of {total} blocks");
    }
}

fn shown(quality: &Quality) -> String {
    format!(
        "a best move first {:.1} %, among three {:.1} % (by chance {:.1} %), values off by {:.3}",
        100.0 * quality.first,
        100.0 * quality.third,
        100.0 * quality.chance,
        quality.off
    )
}

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("part");
    std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path)).with_context(|| path.display().to_string())
}

#[derive(Serialize)]
struct Figures {
    expansions: usize,
    totals: BTreeMap<String, Totals>,
    rows: Vec<Row>,
}

/// What is told of each search: of those that are compared by states, two are guided.
const SEARCHES: &str = "within 1 %, then cost: price, prior, gumbel, exact, guided-exact, and both with a tenth of the budget";

fn eval(args: &Eval, go_on: &dyn Fn() -> bool) -> Result<()> {
    let library = shipped()?;
    let bytes = std::fs::read(&args.weights).with_context(|| args.weights.display().to_string())?;
    let weights = Weights::from_bytes(&bytes).with_context(|| args.weights.display().to_string())?;
    if let Some(why) = weights.digest.differs(Digest::of(&library)) {
        eprintln!("regraft-train: {}: {why}", args.weights.display());
    }
    let comparison =
        Comparison { blocks: args.blocks, detours: args.from.detours, expansions: args.expansions, visits: VISITS, seed: args.from.seed };
    let mut figures = Figures { expansions: args.expansions, totals: BTreeMap::new(), rows: Vec::new() };
    println!("{:24} {:>6}  {:>15}  {:>7}  {:>15}  {}", "blocks of", "blocks", "fewer", "at most", "sooner", SEARCHES);
    let line = |name: &str, totals: &Totals| {
        let shown = |numbers: &[f64], digits: usize| numbers.iter().map(|one| format!("{one:7.digits$}")).collect::<Vec<_>>().join(" ");
        let Totals { blocks, fewer, bound, sooner, reached, costs, .. } = totals;
        let reached: String = reached.iter().map(|one| format!(" {one:4}")).collect();
        println!("{name:24} {blocks:6}  {}  {bound:7.2}  {}  {reached}  {}", shown(fewer, 2), shown(sooner, 2), shown(costs, 4));
    };
    for model in args.from.models.iter().take_while(|_| go_on()) {
        let rows = comparison.run(model, &weights, &library)?;
        let totals = Totals::of(&rows, args.expansions);
        line(model, &totals);
        figures.totals.insert(model.clone(), totals);
        figures.rows.extend(rows);
    }
    let totals = Totals::of(&figures.rows, args.expansions);
    line("all", &totals);
    println!(
        "a state takes {:.3} ms by price, {:.3} ms by the policy, {:.3} ms in simulations; advice makes exact search {:.2} times as long",
        totals.state_ms[0], totals.state_ms[1], totals.state_ms[2], totals.advice
    );
    figures.totals.insert("all".into(), totals);
    if let Some(path) = &args.json {
        write(path, (serde_json::to_string_pretty(&figures)? + "\n").as_bytes())?;
    }
    Ok(())
}
