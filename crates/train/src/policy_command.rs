//! `regraft-train policy`: what `regraft policy` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use regraft::file::write_atomic;
use regraft_policy::descriptor::DESCRIPTOR;
use regraft_policy::{Digest, Sample, Teacher, Weights};
use regraft_rules::Library;
use regraft_train::policy::comparison::{Comparison, Early, Encoding, Row, Totals};
use regraft_train::policy::corpus::{Corpus, HELD_BACK, Plan, Shard};
use regraft_train::policy::history::{Epoch, History, curves};
use regraft_train::policy::learning::Learning;
use regraft_train::policy::network::{Quality, descriptors};
use regraft_train::policy::problem::{Family, NETWORKS, network};
use serde::Serialize;

/// Learn which rewrite to try next
#[derive(Debug, clap::Args)]
pub struct Args {
    /// End when standard input does: with whoever started this
    #[arg(long, hide = true)]
    attached: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make samples: strong searches on blocks of networks
    ///
    /// Each block is cut from a network of the zoo, taken some random moves away, and searched at
    /// the prices of a machine that is drawn. What is in the database is not made again, and an
    /// interrupted run goes on where it was. Shards have some of the blocks each, on machines of
    /// their own, say; `--merge` puts them together, and gives the samples that one run would make.
    Data(Data),
    /// Train a policy on samples, which are made first where they are missing
    ///
    /// The same weights for the same samples and seed. After each epoch what was learned is kept:
    /// an interrupted training goes on from there.
    Train(Train),
    /// Compare searches that a policy guides with those by price alone
    ///
    /// On blocks that no training sees. A block counts by how many states are expanded until one is
    /// within 1 % of the cheapest that any search found.
    Eval(Eval),
    /// Train an agent of X-RLflow on one model, as published or with its defects mended
    ///
    /// Episodes of rewrites, and updates by proximal policy optimization in turn. An interrupted
    /// training goes on after the last update; `regraft compare MODEL --search xrlflow --agent
    /// FILE` uses what was learned.
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
    /// Make the samples of every N-th block only, from the K-th on
    #[arg(long, value_name = "K/N", value_parser = parse_shard, default_value = "1/1")]
    shard: Shard,
    /// Make nothing, and put together what all shards made
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["shard", "threads"])]
    merge: Vec<PathBuf>,
    /// Leave out these families (attention, convolutional, recurrent) or networks
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
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
    /// Leave out these families (attention, convolutional, recurrent) or networks, and tell how
    /// good the policy is there
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
    /// Epochs
    #[arg(long, value_name = "N", default_value_t = 15)]
    epochs: usize,
    /// Rounds of expert iteration after that: the policy searches the blocks that it learned from,
    /// and learns from the states that it comes to, which the teacher labels
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
/// Exit code of a command that was ended by whoever started it.
const ENDED: i32 = 130;

pub fn run(args: &Args) -> Result<()> {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed))?;
    let go_on = || !STOPPED.load(Ordering::Relaxed);
    if args.attached {
        std::thread::spawn(|| {
            // An error is an end, too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            std::process::exit(ENDED);
        });
    }
    match &args.command {
        Command::Data(args) => data(args, &go_on),
        Command::Train(args) => train(args, &go_on),
        Command::Eval(args) => eval(args, &go_on),
        Command::Xrlflow(args) => crate::xrlflow_command::run(args, &go_on),
    }
}

fn shipped() -> Result<Library> {
    Library::shipped().ok().context("the shipped rules cannot be read")
}

/// Parses a `--shard`: `2/8`, from 1.
fn parse_shard(text: &str) -> Result<Shard, String> {
    let parts: Option<(usize, usize)> = text.split_once('/').and_then(|(shard, count)| Some((shard.parse().ok()?, count.parse().ok()?)));
    match parts {
        Some((shard, count)) if 0 < shard && shard <= count => Ok(Shard { index: shard - 1, count }),
        _ => Err(format!("`{text}` is no shard; write 1/8 to 8/8 for eight of them")),
    }
}

/// The networks that are neither left out nor of a family that is.
fn left(models: &[String], without: &[String]) -> Result<Vec<String>> {
    let mut families = Vec::new();
    for model in models.iter().filter(|_| !without.is_empty()) {
        families.push(Family::of(&network(model)?).name());
    }
    if let Some(name) = without.iter().find(|name| !models.contains(name) && !families.contains(&name.as_str())) {
        anyhow::bail!("none of the networks is {name}, or of a family of this name: {}", models.join(", "));
    }
    let is_out = |at: usize| families.get(at).is_some_and(|family| without.iter().any(|out| *out == models[at] || out == family));
    Ok((0..models.len()).filter(|at| !is_out(*at)).map(|at| models[at].clone()).collect())
}

fn plan(making: &Making, from: &Blocks, shard: Shard) -> Plan {
    let Blocks { models, detours, seed } = from.clone();
    Plan { models, blocks: making.blocks, detours, seed, shard, threads: making.threads, teacher: Teacher::default(), pupil: None }
}

fn data(args: &Data, go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let mut plan = plan(&args.making, &args.from, args.shard);
    plan.models = left(&plan.models, &args.without)?;
    if args.merge.is_empty() {
        return make(&args.output, &plan, go_on);
    }
    let mut corpus = Corpus::open(&args.output, Digest::of(&shipped()?))?;
    corpus.merge(&args.merge, &plan)?;
    corpus.finish()
}

fn make(output: &Path, plan: &Plan, go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let library = shipped()?;
    let mut corpus = Corpus::open(output, Digest::of(&library))?;
    corpus.fill(plan, &library, &mut told, go_on)?;
    ensure!(go_on(), "interrupted: the same command goes on from here");
    corpus.finish()
}

fn train(args: &Train, go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let samples = args.samples.clone().unwrap_or_else(|| args.output.with_extension("samples.sqlite"));
    if args.samples.is_none() {
        make(&samples, &plan(&args.making, &args.from, Shard::WHOLE), go_on)?;
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
    write_atomic(&args.output, &learning.weights().to_bytes())?;
    let mut all = Vec::new();
    for name in &names {
        let done = all.last().map_or(0, |epoch: &Epoch| epoch.epoch);
        all.extend(history.epochs(name)?.into_iter().map(|epoch| Epoch { epoch: done + epoch.epoch, ..epoch }));
    }
    if let Some(path) = &args.curves {
        write_atomic(path, curves(&all).as_bytes())?;
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
    let mut plan = plan(&args.making, &args.from, Shard::WHOLE);
    plan.models = left(&plan.models, &args.without)?;
    plan.pupil = Some(learning.weights());
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

#[derive(Serialize)]
struct Figures {
    expansions: usize,
    totals: BTreeMap<String, Totals>,
    encodings: BTreeMap<String, Encoding>,
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
    let mut figures = Figures { expansions: args.expansions, totals: BTreeMap::new(), encodings: BTreeMap::new(), rows: Vec::new() };
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
        figures.encodings.insert(model.clone(), Encoding::of(model, &weights)?);
        figures.rows.extend(rows);
    }
    let totals = Totals::of(&figures.rows, args.expansions);
    line("all", &totals);
    println!(
        "a state takes {:.3} ms by price, {:.3} ms by the policy, {:.3} ms in simulations; advice makes exact search {:.2} times as long",
        totals.state_ms[0], totals.state_ms[1], totals.state_ms[2], totals.advice
    );
    if let Some((model, Encoding { nodes, ms })) = figures.encodings.iter().max_by(|a, b| a.1.ms.total_cmp(&b.1.ms)) {
        println!("the whole of {model}, {nodes} nodes, is encoded in {ms:.2} ms, which is the most");
    }
    for (name, early) in [("exact search", totals.early), ("a thorough one", totals.early_thorough)] {
        let Early { policy, price, seconds } = early;
        println!(
            "in a twentieth of the {:.0} ms of {name}, the policy is at {policy:.4} times its cost, and prices alone at {price:.4}",
            1e3 * seconds
        );
    }
    figures.totals.insert("all".into(), totals);
    if let Some(path) = &args.json {
        write_atomic(path, (serde_json::to_string_pretty(&figures)? + "\n").as_bytes())?;
    }
    Ok(())
}
