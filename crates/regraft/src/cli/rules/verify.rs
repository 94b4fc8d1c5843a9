//! `regraft rules verify`.

use std::time::Instant;

use regraft_prove::{Judgement, Word, judge, replay};
use regraft_rules::{Proofs, Rule};
use serde::Serialize;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::rules::{Files, ended, place, rows};
use crate::error::Failure;
use crate::render::{lines, plain_table, seconds};

/// Instances of each kind of sizes of a rule that has no proof yet.
const INSTANCES: u32 = 2;

/// Prove rules for all sizes
///
/// Both sides of a rule are written as sums over index variables and brought to a normal form, over the real numbers. Sizes are symbols where guards
/// and attributes do not ask for numbers, so one proof holds for all of them. Where all
/// operators only pass over a leading axis, it stands for one or more axes (`any rank`). Other ranks, attributes and numbers of
/// operands are those of random instances.
///
/// The word is `proved` if every instance was proved and some of them have symbols for sizes, `proved-in-range` if every instance was proved and all
/// have numbers, and `unproved` otherwise, which refutes nothing.
///
/// Ends with exit code 1 if a rule is unproved.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  regraft rules verify\n  regraft rules verify conv-add --instances 20\n  regraft rules verify my-rule --rules my.rules"
)]
pub struct Args {
    /// Names of rules [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Instances of each rule with symbols for all sizes, for some, and for none
    /// [default: the instances of the proof that is kept with a shipped rule; 2 for other rules]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    instances: Option<u32>,
    /// Seed of the instances
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    files: Files,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What was shown of one rule.
#[derive(Debug, Serialize)]
struct Row {
    rule: String,
    defined: String,
    /// `proved`, `proved-in-range` or `unproved`.
    word: String,
    /// Proved instances with symbols for sizes.
    symbols: usize,
    /// Those of them that hold for any number of leading axes.
    any_rank: usize,
    /// Proved instances with numbers for all sizes.
    numbers: usize,
    /// Instances that were not proved.
    unproved: usize,
    why: Option<String>,
    seconds: f64,
}

impl Row {
    fn of(rule: &Rule, wanted: Option<u32>, seed: u64, proofs: &Proofs) -> Row {
        let start = Instant::now();
        let kept = proofs.of(rule).filter(|_| wanted.is_none());
        let judgement = match kept.map(|proof| replay(rule, proof)) {
            Some(Ok(judgement)) => judgement,
            Some(Err(why)) => Judgement { unproved: 1, first: Some(why), ..Judgement::default() },
            None => judge(rule, wanted.unwrap_or(INSTANCES) as usize, seed),
        };
        let word = judgement.word().to_string();
        let Judgement { open, any_rank, known, unproved, first, .. } = judgement;
        let why = first.or_else(|| (open + known == 0).then(|| "no instance could be made".to_string()));
        Row {
            rule: rule.name.to_string(),
            defined: place(rule),
            word,
            symbols: open,
            any_rank,
            numbers: known,
            unproved,
            why,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let proofs = Proofs::shipped();
    let made = |rule: &Rule| Row::of(rule, args.instances, args.seed, &proofs);
    let rows = rows((&args.names, &args.files), console, ("verify", "telling what was proved so far"), made)?;
    if args.json {
        console.json(&rows)?;
    } else {
        console.print(&shown(&rows, args, start, console))?;
    }
    let unproved = rows.iter().any(|r| r.word == Word::Unproved.to_string());
    Ok(ended(unproved))
}

fn shown(rows: &[Row], args: &Args, start: Instant, console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet && !rows.is_empty() {
        let mut table = plain_table(&["rule", "word", "symbols", "any rank", "numbers", "unproved", "time"], &[2, 3, 4, 5, 6]);
        for r in rows {
            let numbers = [r.symbols, r.any_rank, r.numbers, r.unproved].map(|n| n.to_string());
            table.add_row([[r.rule.clone(), r.word.clone()].as_slice(), &numbers, &[seconds(r.seconds)]].concat());
        }
        text = format!("{}\n", lines(&table));
    }
    for r in rows.iter().filter(|r| r.word == Word::Unproved.to_string()) {
        let why: String = r.why.as_deref().unwrap_or_default().chars().take(240).collect();
        text.push_str(&format!("unproved: {} ({}): {why}\n", r.rule, r.defined));
    }
    let count = |word: Word| rows.iter().filter(|r| r.word == word.to_string()).count();
    let time = seconds(start.elapsed().as_secs_f64());
    text + &format!(
        "verdict: {} of {} rules proved for all sizes, {} of them for any number of leading axes · {} for the sizes drawn · {} unproved · {time} · seed {}",
        count(Word::Proved),
        rows.len(),
        rows.iter().filter(|r| r.any_rank > 0).count(),
        count(Word::ProvedInRange),
        count(Word::Unproved),
        args.seed
    )
}
