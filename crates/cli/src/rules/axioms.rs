//! `regraft rules axioms`.

mod consistency;
mod journal;
mod redundancy;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use regraft_audit::{Tally, validate};
use regraft_ir::parallel::map_while;
use regraft_rules::{Domain, Library, Rule};
use regraft_runtime::Clock;
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use crate::rules::{ended, find, read};
use regraft::error::Failure;
use regraft::render::{lines, plain_table, seconds};

use journal::{Journal, Part};

/// Compare both sides of the axioms, exactly, on every instance with small sizes
///
/// Goes through all combinations of an axiom's parameters: every size up to the bound, and every
/// group, stride, pad, kernel, dilation, axis, permutation and mode that its instance clause names.
/// Both sides are computed as expressions over named entries with exact coefficients, so an
/// instance is an identity or it is not.
///
/// With --redundancy, tells instead which axioms follow from the others: a chain of steps, each by
/// another axiom in one of its directions, leads from one side to the other on instances whose
/// sizes are symbols. With --consistency, walks random chains of axioms and compares their ends.
///
/// Ends with exit code 1 if an instance is refuted or left open, or a chain ends in another value.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regraft rules axioms
  regraft rules axioms --bound 2                                   in seconds
  regraft rules axioms --journal axioms.journal                    can be interrupted, then:
  regraft rules axioms --journal axioms.journal --resume
  regraft rules axioms my-law --rules my.rules
  regraft rules axioms --redundancy
  regraft rules axioms --consistency 20                            chains from each axiom")]
pub struct Args {
    /// Names of axioms [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Largest size of every dimension that an axiom leaves open
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    bound: u8,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Note every finished part in this file
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Go on where the journal ends
    #[arg(long, requires = "journal")]
    resume: bool,
    /// Tell which axioms follow from the others
    #[arg(long, conflicts_with_all = ["journal", "consistency"])]
    redundancy: bool,
    /// Walk so many random chains of axioms from instances of each, and compare their ends
    #[arg(long, value_name = "N", conflicts_with = "journal", value_parser = clap::value_parser!(u16).range(1..))]
    consistency: Option<u16>,
    /// Seed of the instances and chains of --redundancy and --consistency
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Rules of your own instead of the axioms
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The results on the instances of one axiom.
#[derive(Debug, Serialize)]
struct Row {
    axiom: String,
    file: String,
    /// Combinations examined, including those the operators or guards refuse.
    obligations: u64,
    /// Instances whose sides are the same expressions.
    equal: u64,
    guarded: u64,
    untyped: u64,
    undecided: u64,
    refuted: u64,
    why: Option<String>,
    /// Processor time of all threads.
    seconds: f64,
}

/// Parts of an axiom's domain, processed one at a time.
const PARTS: usize = 48;

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let library = match &args.rules {
        Some(path) => Library::default().with_file(path, &read(path)?)?,
        None => Library::axioms()?,
    };
    let axioms: Vec<&Rule> = match args.names.as_slice() {
        [] => library.rules().iter().collect(),
        names => names.iter().map(|name| find(&library, name)).collect::<Result<_, _>>()?,
    };
    let threads = args.threads.map_or_else(regraft_ir::parallel::cores, usize::from);
    if args.redundancy || args.consistency.is_some() {
        interrupt::catch("telling what was found so far");
    }
    if args.redundancy {
        return redundancy::run(&library, &axioms, threads, args.seed, args.json, console);
    }
    if let Some(chains) = args.consistency {
        return consistency::run(&library, &axioms, (usize::from(chains), threads, args.seed), args.json, console);
    }
    let bound = i64::from(args.bound);
    let (journal, done) = match &args.journal {
        Some(path) => Journal::open(path, args.resume, bound)?,
        None => (Journal::none(), Vec::new()),
    };
    interrupt::catch(if args.journal.is_some() { "--resume goes on from here" } else { "telling what was compared so far" });
    let work = Work { axioms: &axioms, bound, journal, console };
    let done: Vec<Part> = done.into_iter().filter(|part| axioms.iter().any(|axiom| part.is_of(axiom))).collect();
    let parts = work.run(threads, &done)?;
    let rows = rows(&axioms, parts.iter().chain(&done));
    if args.json {
        console.json(&rows)?;
    } else {
        console.print(&shown(&rows, bound, start, console))?;
    }
    Ok(ended(rows.iter().any(|r| r.refuted + r.undecided > 0)))
}

struct Work<'a> {
    axioms: &'a [&'a Rule],
    bound: i64,
    journal: Journal,
    console: &'a Console,
}

impl Work<'_> {
    /// Computes all parts that are not done, on several threads.
    fn run(&self, threads: usize, done: &[Part]) -> Result<Vec<Part>, Failure> {
        let mut open = Vec::new();
        for axiom in self.axioms {
            for prefix in Domain::parts(axiom, self.bound, PARTS) {
                if !done.iter().any(|part| part.axiom == axiom.name.as_ref() && part.prefix == prefix) {
                    open.push((*axiom, prefix));
                }
            }
        }
        let progress = Mutex::new(Progress::new(self.console));
        let failure = OnceLock::new();
        let parts = map_while(&open, threads, |at, (axiom, prefix)| {
            if failure.get().is_some() {
                return None;
            }
            let text = format!("{} of {}: {}", at + 1, open.len(), axiom.name);
            progress.lock().unwrap_or_else(PoisonError::into_inner).step("compare", &text);
            let start = Clock::ThreadCpu.now_ns();
            let tally = validate(axiom, self.bound, prefix, &interrupt::requested)?;
            let spent = Clock::ThreadCpu.now_ns().saturating_sub(start) as f64 / 1e9;
            let part = Part::new(axiom, prefix, &tally, spent);
            let noted = self.journal.note(&part).map_err(|why| drop(failure.set(why)));
            noted.ok().map(|()| part)
        });
        failure.into_inner().map_or_else(|| Ok(parts.into_iter().flatten().collect()), Err)
    }
}

/// One row for each axiom, in the library's order.
fn rows<'a>(axioms: &[&Rule], parts: impl Iterator<Item = &'a Part>) -> Vec<Row> {
    let mut tallies: BTreeMap<&str, (Tally, f64)> = BTreeMap::new();
    for part in parts {
        let entry = tallies.entry(&part.axiom).or_default();
        entry.0 += part.tally();
        entry.1 += part.seconds;
    }
    let row = |axiom: &&Rule| {
        let (tally, seconds) = tallies.get(axiom.name.as_ref()).cloned().unwrap_or_default();
        Row {
            axiom: axiom.name.to_string(),
            file: axiom.file.to_string(),
            obligations: tally.obligations(),
            equal: tally.equal,
            guarded: tally.guarded,
            untyped: tally.untyped,
            undecided: tally.undecided,
            refuted: tally.refuted,
            why: tally.first,
            seconds,
        }
    };
    axioms.iter().map(row).collect()
}

fn shown(rows: &[Row], bound: i64, start: Instant, console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet && !rows.is_empty() {
        let header = ["axiom", "combinations", "equal", "guarded away", "ill-typed", "open", "refuted", "time"];
        let mut table = plain_table(&header, &[1, 2, 3, 4, 5, 6, 7]);
        for r in rows {
            let numbers = [r.obligations, r.equal, r.guarded, r.untyped, r.undecided, r.refuted].map(|n| n.to_string());
            table.add_row([[r.axiom.clone()].as_slice(), numbers.as_slice(), &[seconds(r.seconds)]].concat());
        }
        text = format!("{}\n", lines(&table));
    }
    for r in rows.iter().filter(|r| r.refuted + r.undecided > 0) {
        let word = if r.refuted > 0 { "refuted" } else { "open" };
        text.push_str(&format!("{word}: {}: {}\n", r.axiom, r.why.as_deref().unwrap_or_default()));
    }
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    text + &format!(
        "verdict: {} of {} axioms hold on every instance with sizes up to {bound} · {} combinations · {} instances compared · {} open · {} refuted · {} ({} of processor time)",
        rows.iter().filter(|r| r.refuted + r.undecided == 0 && r.equal > 0).count(),
        rows.len(),
        sum(|r| r.obligations),
        sum(|r| r.equal + r.undecided + r.refuted),
        sum(|r| r.undecided),
        sum(|r| r.refuted),
        seconds(start.elapsed().as_secs_f64()),
        seconds(rows.iter().map(|r| r.seconds).sum()),
    )
}
