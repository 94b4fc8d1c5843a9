//! `regraft rules prune`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regraft_discover::{Candidate, DiscoverError, Fate, Journal, Pruned, Pruning, Spec, Wanted, prune};
use regraft_rules::{Rule, parse};
use serde_json::json;

use crate::console::Console;
use crate::cost::emit;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use crate::rules::failure;
use crate::rules::generate::{Watched, specification};
use crate::rules::{Files, library, read};
use crate::target::LibraryArgs;
use regraft::calibrate::DEFAULT_MODELS;
use regraft::error::Failure;
use regraft::file;
use regraft::optimize::{Networks, Paid, SavingsRequest};
use regraft::render::{lines, plain_table, seconds};
use regraft::units::{parse_duration, show_ns};

/// Steps per unit of `--work`.
const STEPS: u64 = 1000;
/// Maximum number of rule sets to list.
const LISTED: usize = 12;

/// Make rules of candidate pairs: what is proved, saves something, and is not done by the rules
/// that are there
///
/// A pair in a direction that lowers the roofline's price somewhere is stated as a rule over the
/// most general sizes that the prover accepts, unless a search with the library, or with the rules
/// found before, reaches as low a price. Only rules that are proved come out as rules.
///
/// With --rank measured, every proved pair is stated, in both directions, whose source is met in a
/// network, or in what the library makes of it; and its rule is ranked by what it saves there at
/// measured prices. Only rules that save at least 1 % of a run beside the library come out as
/// rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regraft rules prune taso taso.pairs -o taso.ranked                    all pairs that save something, ranked, and what became of them
  regraft rules prune taso taso.pairs --format rules -o mine.rules      only the rules
  regraft rules prune taso large.pairs --journal j -o large.ranked      goes on where it was interrupted
  regraft rules prune taso taso.pairs --rank measured -o taso.paid      by what they save in networks of the zoo, measured")]
pub struct Args {
    /// The specification of the pairs: a file, or the name of a shipped one
    #[arg(value_name = "SPEC")]
    spec: String,
    /// The pairs that `regraft rules generate` wrote
    #[arg(value_name = "PAIRS")]
    pairs: PathBuf,
    /// Where to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to write: the ranked pairs, or the rules in the rule language
    #[arg(long, value_enum, default_value_t = Format::Pairs)]
    format: Format,
    #[command(flatten)]
    files: Files,
    /// Rules only for sources of up to so many operators: larger ones are met more rarely, and cost
    /// every search time [default: any]
    #[arg(long, value_name = "N")]
    operators: Option<usize>,
    /// A file that keeps which pairs are proved: the same command goes on with it
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Work that the proof of a pair may cost, in thousands of steps; a pair that is not proved
    /// costs all of it
    #[arg(long, value_name = "N", default_value_t = Pruning::DEFAULT.allowance.closed / STEPS, value_parser = clap::value_parser!(u64).range(1..))]
    work: u64,
    /// What rules are ranked by
    #[arg(long, value_enum, default_value_t = Rank::Roofline)]
    rank: Rank,
    #[command(flatten)]
    grounds: Grounds,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of the instances by which rules are judged
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Where rules are tried with --rank measured.
#[derive(Debug, clap::Args)]
struct Grounds {
    /// With --rank measured: a model file, or a name in the zoo [default: twelve networks of the
    /// zoo]
    #[arg(long, value_name = "MODEL")]
    network: Vec<PathBuf>,
    /// With --rank measured: time for measuring what the store does not know, all networks together
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    budget: Duration,
    /// With --rank measured: file of measurements [default: REGRAFT_COST_STORE, or costs.sqlite in
    /// the user's data folder]
    #[arg(long, value_name = "FILE")]
    cost_store: Option<PathBuf>,
    /// With --rank measured: measure nothing; the same store gives the same ranks
    #[arg(long)]
    frozen: bool,
    #[command(flatten)]
    library: LibraryArgs,
}

/// What rules are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rank {
    Roofline,
    Measured,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Pairs,
    Rules,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let spec = specification(&args.spec)?;
    let pairs = Candidate::parse(&spec, &args.pairs.display().to_string(), &read(&args.pairs)?)?;
    file::check_writable(&args.output, "-o")?;
    let mut others = vec![("the specification", Path::new(&args.spec)), ("the pairs", &args.pairs)];
    others.extend(args.journal.as_deref().map(|path| ("the journal", path)));
    others.extend(args.files.rules.iter().map(|path| ("a rule file", path.as_path())));
    file::check_apart(("the result", &args.output, "-o"), &others)?;
    let library = library(&args.files)?;
    let threads = args.threads.map_or_else(regraft_ir::parallel::cores, usize::from);
    let how =
        Pruning { operators: args.operators.unwrap_or(usize::MAX), threads, seed: args.seed, ..Pruning::DEFAULT }.within(args.work * STEPS);
    let mut journal = match &args.journal {
        Some(path) => Journal::open(path, &spec, how.allowance).map_err(failure)?,
        None => Journal::none(),
    };
    interrupt::catch(match args.journal {
        Some(_) => "the journal keeps what is proved so far",
        None => "nothing is written; --journal keeps what is proved",
    });
    let folder = tempfile::tempdir().map_err(Failure::new)?;
    let networks = match args.rank {
        Rank::Roofline => None,
        Rank::Measured => Some(grounds(args, folder.path(), console)?),
    };
    let meets = |rule: &Rule| networks.as_ref().is_some_and(|networks| networks.meets(rule));
    let wanted = if networks.is_some() { Wanted::Met(&meets) } else { Wanted::Saving };
    let mut watched = Watched(Progress::new(console));
    let pruned = match prune(&spec, &pairs, &library, how, &wanted, &mut journal, &mut watched) {
        Err(DiscoverError::Interrupted) => return Ok(Exit::Interrupted),
        pruned => pruned.map_err(failure)?,
    };
    drop(watched);
    if let Some(networks) = &networks {
        return measured(args, &spec, &pruned, networks, console, start);
    }
    let text = match args.format {
        Format::Pairs => ranked(&spec, &pairs, &pruned),
        Format::Rules => pruned.file(&args.spec),
    };
    file::write_atomic(Path::new(&args.output), text.as_bytes())?;
    let proved = pruned.proved.iter().filter(|proved| **proved).count();
    let fates = fates(&pruned);
    let time = start.elapsed().as_secs_f64();
    if args.json {
        let done: Vec<_> = pruned.done().into_iter().map(|(count, rules)| json!({ "rewrites": count, "rules": rules })).collect();
        console.json(&json!({
            "pairs": pairs.len(), "proved": proved, "saving": pruned.ranked.len(), "fates": fates, "done_by": done,
            "rules": pruned.rules.len(), "seconds": time,
        }))?;
        return Ok(Exit::Done);
    }
    let mut shown = String::new();
    if !console.quiet {
        let mut table = plain_table(&["", ""], &[1]);
        table.add_row(["pairs".to_string(), pairs.len().to_string()]);
        table.add_row(["pairs: proved".to_string(), proved.to_string()]);
        table.add_row(["directions that save something".to_string(), pruned.ranked.len().to_string()]);
        for (fate, count) in &fates {
            table.add_row([format!("directions: {fate}"), count.to_string()]);
        }
        let done = pruned.done();
        for (count, rules) in done.iter().take(LISTED) {
            table.add_row([format!("done by {rules}"), count.to_string()]);
        }
        let others: usize = done.iter().skip(LISTED).map(|(count, _)| count).sum();
        if others > 0 {
            table.add_row(["done by other sets of rules".to_string(), others.to_string()]);
        }
        shown = format!("{}\n", lines(&table));
    }
    shown += &format!("verdict: {} rules from {} pairs · {proved} pairs proved · {}", pruned.rules.len(), pairs.len(), seconds(time));
    console.print(&shown)?;
    Ok(Exit::Done)
}

/// The networks in which rules are tried.
fn grounds(args: &Args, folder: &Path, console: &Console) -> Result<Networks, Failure> {
    let mut progress = Progress::new(console);
    let grounds = &args.grounds;
    let names = match grounds.network.as_slice() {
        [] => DEFAULT_MODELS.iter().map(PathBuf::from).collect(),
        named => named.to_vec(),
    };
    let models: Vec<PathBuf> = names
        .into_iter()
        .map(|name| if name.exists() { Ok(name) } else { emit(&name, folder, &mut progress) })
        .collect::<Result<_, Failure>>()?;
    let request = SavingsRequest {
        models,
        budget: grounds.budget,
        threads: 1,
        seed: args.seed,
        runtime: grounds.library.choice(),
        cost_store: grounds.cost_store.clone(),
        frozen: grounds.frozen,
    };
    Networks::open(&request, &mut progress)
}

/// What a rule saves over all networks.
struct Sum<'a> {
    rule: &'a str,
    alone: u64,
    beside: u64,
    paid: Vec<&'a Paid>,
}

/// Ranks the rules by their savings in networks, and writes them.
fn measured(args: &Args, spec: &Spec, pruned: &Pruned, networks: &Networks, console: &Console, start: Instant) -> Result<Exit, Failure> {
    let rules: Vec<Rule> = parse("generated.rules", &pruned.file(&args.spec))?;
    let paid = networks.rank(&rules, &mut Progress::new(console))?;
    if interrupt::requested() {
        return Ok(Exit::Interrupted);
    }
    let mut sums: Vec<Sum<'_>> = Vec::new();
    for one in &paid {
        let at = sums.iter().position(|sum| sum.rule == one.rule).unwrap_or_else(|| {
            sums.push(Sum { rule: &one.rule, alone: 0, beside: 0, paid: Vec::new() });
            sums.len() - 1
        });
        sums[at].alone += one.alone_ns;
        sums[at].beside += one.beside_ns;
        sums[at].paid.push(one);
    }
    sums.sort_by(|a, b| (b.beside, b.alone).cmp(&(a.beside, a.alone)).then_with(|| a.rule.cmp(b.rule)));
    let paying: Vec<&str> = sums.iter().filter(|sum| sum.paid.iter().any(|one| one.pays())).map(|sum| sum.rule).collect();
    let text_of =
        |name: &str| rules.iter().position(|rule| *rule.name == *name).and_then(|at| pruned.rules.get(at)).cloned().unwrap_or_default();
    let text = match args.format {
        Format::Rules => Pruned { rules: paying.iter().map(|name| text_of(name)).collect(), ..Pruned::default() }.file(&args.spec),
        Format::Pairs => sums.iter().map(|sum| format!("{}{}\n", places(sum), text_of(sum.rule))).collect(),
    };
    file::write_atomic(&args.output, text.as_bytes())?;
    let proved = pruned.proved.iter().filter(|proved| **proved).count();
    let time = start.elapsed().as_secs_f64();
    if args.json {
        console.json(&json!({
            "spec": spec.digest, "pairs": pruned.proved.len(), "proved": proved, "fates": fates(pruned), "rules": rules.len(), "met": sums.len(),
            "paying": paying, "paid": paid, "seconds": time,
        }))?;
        return Ok(Exit::Done);
    }
    let mut shown = String::new();
    if !console.quiet {
        let mut counts = plain_table(&["", ""], &[1]);
        counts.add_row(["pairs".to_string(), pruned.proved.len().to_string()]);
        counts.add_row(["pairs: proved".to_string(), proved.to_string()]);
        for (fate, count) in &fates(pruned) {
            counts.add_row([format!("directions: {fate}"), count.to_string()]);
        }
        let mut table =
            plain_table(&["rule", "networks", "places", "saves alone", "beside the library", "of the run, at most"], &[1, 2, 3, 4, 5]);
        for sum in sums.iter().take(if console.verbose { usize::MAX } else { LISTED }) {
            let most = sum.paid.iter().map(|one| one.beside_ns as f64 / one.run_ns.max(1) as f64).fold(0.0, f64::max);
            table.add_row([
                sum.rule.to_string(),
                sum.paid.len().to_string(),
                sum.paid.iter().map(|one| one.places).sum::<usize>().to_string(),
                show_ns(sum.alone as f64),
                show_ns(sum.beside as f64),
                format!("{:.1} %", 100.0 * most),
            ]);
        }
        shown = format!("{}\n{}\n", lines(&counts), lines(&table));
    }
    let (met, stated) = (sums.len(), rules.len());
    shown +=
        &format!("verdict: {} rules pay · {met} of {stated} stated ones apply · {proved} pairs proved · {}", paying.len(), seconds(time));
    console.print(&shown)?;
    Ok(Exit::Done)
}

/// Where a rule saves how much, as comment lines.
fn places(sum: &Sum<'_>) -> String {
    let head = format!(";; proved · saves {} alone, {} beside the library\n", show_ns(sum.alone as f64), show_ns(sum.beside as f64));
    sum.paid.iter().fold(head, |text, one| {
        let (alone, beside) = (show_ns(one.alone_ns as f64), show_ns(one.beside_ns as f64));
        let word = if one.measured { "measured" } else { "guessed in part" };
        let Paid { network, places, places_beside, .. } = one;
        text + &format!(";;   {network}: {alone} at {places} places, {beside} at {places_beside} beside the library, {word}\n")
    })
}

/// Counts of outcomes over all directions.
fn fates(pruned: &Pruned) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for ranked in &pruned.ranked {
        let fate = match ranked.fate {
            Fate::Rule(_) => "proved rules",
            Fate::Done(_) => "done by other rules",
            Fate::Unstated(_) => "not to be stated as a rule",
            Fate::Unproved(_) => "rule not proved",
            Fate::Unmet => "met in no network",
        };
        *counts.entry(fate).or_default() += 1;
    }
    counts
}

/// The pairs that save something, largest savings first, each with its trust and outcome.
fn ranked(spec: &Spec, pairs: &[Candidate], pruned: &Pruned) -> String {
    let mut text = String::new();
    for (at, ranked) in pruned.ranked.iter().enumerate() {
        let pair = Candidate { left: ranked.rewrite.source.clone(), right: ranked.rewrite.target.clone() };
        let fate = match &ranked.fate {
            Fate::Rule(name) => format!("rule {name}"),
            Fate::Done(rules) => format!("done by {}", rules.iter().cloned().collect::<Vec<_>>().join(", ")),
            Fate::Unstated(why) => format!("no rule: {why}"),
            Fate::Unproved(why) => format!("no rule: {why}"),
            Fate::Unmet => "met in no network".to_string(),
        };
        let gain = ranked.rewrite.gain();
        text.push_str(&format!(
            ";; proved · saves x{gain:.2} · pair {} of {} · {fate}\n{}\n",
            ranked.pair + 1,
            pairs.len(),
            pair.text(spec, at + 1)
        ));
    }
    text
}
