//! `regraft rules prune`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use regraft_discover::{Candidate, Fate, Pruned, Pruning, Spec, prune};
use serde_json::json;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::rules::generate::{Watched, specification};
use crate::cli::rules::{Files, library, read};
use crate::error::Failure;
use crate::file;
use crate::render::{lines, plain_table, seconds};

/// Sets of rules that are listed, at most.
const LISTED: usize = 12;

/// Make rules of candidate pairs: what is proved, saves something, and is not done by the rules that are there
///
/// A pair in a direction that lowers the roofline's price somewhere is stated as a rule over the most general sizes that the prover accepts, unless a search
/// with the library, or with the rules found before, reaches as low a price. Only rules that are proved come out as rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regraft rules prune taso taso.pairs -o taso.ranked                    all pairs that save something, ranked, and what became of them
  regraft rules prune taso taso.pairs --format rules -o mine.rules      only the rules")]
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
    /// Rules only for sources of up to so many operators: larger ones are met more rarely, and cost every search time [default: any]
    #[arg(long, value_name = "N")]
    operators: Option<usize>,
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
    let library = library(&args.files)?;
    let threads = args.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let how = Pruning { operators: args.operators.unwrap_or(usize::MAX), threads, seed: args.seed };
    let mut watched = Watched(Progress::new(console));
    let pruned = prune(&spec, &pairs, &library, how, &mut watched)?;
    drop(watched);
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

/// How many directions came to what.
fn fates(pruned: &Pruned) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for ranked in &pruned.ranked {
        let fate = match ranked.fate {
            Fate::Rule(_) => "proved rules",
            Fate::Done(_) => "done by other rules",
            Fate::Unstated(_) => "not to be stated as a rule",
            Fate::Unproved(_) => "rule not proved",
        };
        *counts.entry(fate).or_default() += 1;
    }
    counts
}

/// The pairs that save something, those that save most first, each with its word of trust and what became of it.
fn ranked(spec: &Spec, pairs: &[Candidate], pruned: &Pruned) -> String {
    let mut text = String::new();
    for (at, ranked) in pruned.ranked.iter().enumerate() {
        let pair = Candidate { left: ranked.rewrite.source.clone(), right: ranked.rewrite.target.clone() };
        let fate = match &ranked.fate {
            Fate::Rule(name) => format!("rule {name}"),
            Fate::Done(rules) => format!("done by {}", rules.iter().cloned().collect::<Vec<_>>().join(", ")),
            Fate::Unstated(why) => format!("no rule: {why}"),
            Fate::Unproved(why) => format!("no rule: {why}"),
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
