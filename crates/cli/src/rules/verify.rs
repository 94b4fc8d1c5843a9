//! `regraft rules verify`.

use std::path::PathBuf;
use std::time::Instant;

use regraft_audit::{Generated, Judgement, coverage, coverage_document, generate, judge, replay};
use regraft_ir::Trust;
use regraft_rules::variants::Effort;
use regraft_rules::vary::types;
use regraft_rules::{Library, Proofs, Rule};
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::rules::{Files, ended, place, rows};
use regraft::error::Failure;
use regraft::file::write_atomic;
use regraft::render::{lines, plain_table, seconds};

/// Instances of each kind of sizes for a rule without a proof.
const INSTANCES: u32 = 2;

/// Prove rules for all sizes
///
/// Both sides of a rule are written as sums over index variables and brought to a normal form, over
/// the real numbers. Sizes are symbols where guards and attributes do not ask for numbers, so one
/// proof holds for all of them. Where all operators only pass over a leading axis, it stands for
/// one or more axes (`any rank`). Other ranks, attributes and numbers of operands are those of
/// instances: drawn from the instance clause, and generated from these by changing one thing after
/// the other as far as the guards let the rule apply (ranks, sizes of 1, groups, strides, pads,
/// dilations, axes, optional operands, element types, numbers).
///
/// The word is `proved` if every instance was proved and some of them have symbols for sizes,
/// `proved-in-range` if every instance was proved and all have numbers, and `unproved` otherwise,
/// which refutes nothing.
///
/// What is general in the instances and what is fixed is told with `-v`: `?x [any, any, 5, 6];
/// conv.group 1|2`. Both sides are computed on generated instances, and on element types beside
/// floats at the ends of their ranges: where they differ, the rule is false. Where a generated
/// instance is not proved, the proof does not speak of it.
///
/// Ends with exit code 1 if a rule is unproved or false.
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
    /// Instances of each rule that are generated
    /// [default: those of the proof that is kept with a shipped rule; 24 for other rules]
    #[arg(long, value_name = "N")]
    variants: Option<usize>,
    /// Seed of the instances
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write what the proofs of all shipped rules cover, as a document
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What was shown about one rule.
#[derive(Debug, Serialize)]
struct Row {
    rule: String,
    defined: String,
    /// `proved`, `proved-in-range` or `unproved`.
    #[serde(rename = "word", with = "regraft::words")]
    trust: Trust,
    /// Proved instances with symbolic sizes.
    symbols: usize,
    /// Those that hold for any number of leading axes.
    any_rank: usize,
    /// Proved instances with numeric sizes only.
    numbers: usize,
    /// Instances that were not proved.
    unproved: usize,
    why: Option<String>,
    /// What the proved instances cover.
    covers: String,
    /// Proved generated instances.
    generated: usize,
    /// Unproved generated instances, and why.
    outside: Vec<String>,
    /// Element types and generated instances on which it is false.
    wrong: Vec<String>,
    seconds: f64,
}

/// Instances of a rule to retype, and inputs of each.
const TYPED: usize = 4;
const INPUTS: u64 = 12;

impl Row {
    fn of(rule: &Rule, args: &Args, proofs: &Proofs) -> Row {
        let start = Instant::now();
        let kept = proofs.of(rule).filter(|_| args.instances.is_none() && args.variants.is_none());
        let mut judgement = match kept.map(|proof| replay(rule, proof)) {
            Some(Ok(judgement)) => judgement,
            Some(Err(why)) => Judgement { unproved: 1, first: Some(why), ..Judgement::default() },
            None => judge(rule, args.instances.unwrap_or(INSTANCES) as usize, args.seed),
        };
        let generated = match kept {
            Some(_) => Generated::default(),
            None => generate(rule, args.variants.map_or_else(Effort::default, Effort::keeping)),
        };
        judgement.instances.extend(generated.proved);
        let covers = coverage(rule, &judgement.proof(rule)).to_string();
        let types = types(rule, TYPED, INPUTS).wrong.into_iter().map(|(dtype, why)| format!("{dtype}: {why}"));
        let wrong = generated.wrong.iter().map(|(draw, why)| format!("{draw}: {why}")).chain(types).collect();
        let outside = generated.outside.iter().map(|(draw, why)| format!("{draw}: {why}")).collect();
        let generated = judgement.instances.iter().filter(|draw| !draw.changes.is_empty()).count();
        let trust = judgement.trust();
        let Judgement { open, any_rank, known, unproved, first, .. } = judgement;
        let why = first.or_else(|| (open + known == 0).then(|| "no instance could be made".to_string()));
        Row {
            rule: rule.name.to_string(),
            defined: place(rule),
            trust,
            symbols: open,
            any_rank,
            numbers: known,
            unproved,
            why,
            covers,
            generated,
            outside,
            wrong,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let proofs = Proofs::shipped();
    let made = |rule: &Rule| Row::of(rule, args, &proofs);
    let rows = rows((&args.names, &args.files), console, ("verify", "telling what was proved so far"), made)?;
    if args.json {
        console.json(&rows)?;
    } else {
        console.print(&shown(&rows, args, start, console))?;
    }
    if let Some(path) = &args.coverage {
        write_atomic(path, coverage_document(Library::shipped()?.rules(), &proofs).as_bytes())?;
    }
    let unproved = rows.iter().any(|r| r.trust == Trust::Unproved || !r.wrong.is_empty());
    Ok(ended(unproved))
}

fn shown(rows: &[Row], args: &Args, start: Instant, console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet && !rows.is_empty() {
        let mut table =
            plain_table(&["rule", "word", "symbols", "any rank", "numbers", "generated", "unproved", "time"], &[2, 3, 4, 5, 6, 7]);
        for r in rows {
            let numbers = [r.symbols, r.any_rank, r.numbers, r.generated, r.unproved].map(|n| n.to_string());
            table.add_row([[r.rule.clone(), r.trust.to_string()].as_slice(), &numbers, &[seconds(r.seconds)]].concat());
        }
        text = format!("{}\n", lines(&table));
    }
    if console.verbose {
        for r in rows {
            text.push_str(&format!("covers: {}: {}\n", r.rule, r.covers));
            r.outside.iter().for_each(|why| text.push_str(&format!("not covered: {}: {}\n", r.rule, brief(why))));
        }
    }
    for r in rows {
        r.wrong.iter().for_each(|why| text.push_str(&format!("false: {} ({}) on {why}\n", r.rule, r.defined)));
    }
    for r in rows.iter().filter(|r| r.trust == Trust::Unproved) {
        let why = brief(r.why.as_deref().unwrap_or_default());
        text.push_str(&format!("unproved: {} ({}): {why}\n", r.rule, r.defined));
    }
    let count = |trust: Trust| rows.iter().filter(|r| r.trust == trust).count();
    let time = seconds(start.elapsed().as_secs_f64());
    text + &format!(
        "verdict: {} of {} rules proved for all sizes, {} of them for any number of leading axes · {} more if constants are what they were rounded from · {} for the sizes drawn · {} unproved · {} generated instances · {time} · seed {}",
        count(Trust::Proved),
        rows.len(),
        rows.iter().filter(|r| r.any_rank > 0).count(),
        count(Trust::Bounded),
        count(Trust::ProvedInRange),
        count(Trust::Unproved),
        rows.iter().map(|r| r.generated).sum::<usize>(),
        args.seed
    )
}

fn brief(why: &str) -> String {
    why.chars().take(240).collect()
}
