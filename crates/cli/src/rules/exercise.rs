//! `regraft rules exercise`.

use std::time::Instant;

use regraft_audit::fingerprint;
use regraft_rules::{Rule, sample};
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::rules::example::Example;
use crate::rules::{Files, ended, place, rows};
use regraft::error::Failure;
use regraft::render::{difference, lines, plain_table, seconds};

/// Draws per requested instance: guards refuse many.
const DRAWS: usize = 60;
/// Instances in the prime field: each is stronger evidence than one in double precision.
const EXACT: usize = 40;

/// Put rules to the test: compute both sides on random instances, in double precision and in a
/// prime field
///
/// The column `exact` says whether the sides are the same polynomials of their operands, up to
/// functions of which nothing is known and an order of which nothing is known. A rule for which
/// they are not may still be true: by the laws of a function, or because of the order.
///
/// Ends with exit code 1 if the sides of a rule differ (a counterexample is printed with the seed
/// that reproduces it), or if too few instances of a rule could be made.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  regraft rules exercise --instances 1000\n  regraft rules exercise my-rule --rules my.rules")]
pub struct Args {
    /// Names of rules [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Random instances of each rule
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,
    /// Seed of the instances
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    files: Files,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The result of exercising one rule.
#[derive(Debug, Serialize)]
struct Row {
    rule: String,
    defined: String,
    /// `ok`, `refuted`, or `too few`.
    outcome: &'static str,
    instances: usize,
    draws: usize,
    worst: f64,
    /// Whether both sides are the same elements of the field of 2^61 - 1 on all instances.
    exact: bool,
    counterexample: Option<String>,
    /// The graphs of the counterexample.
    example: Option<Example>,
    seconds: f64,
}

impl Row {
    fn of(rule: &Rule, wanted: usize, seed: u64) -> Row {
        let start = Instant::now();
        let result = sample::exercise(rule, wanted, wanted.saturating_mul(DRAWS), seed);
        let example = result.counterexample.as_ref().and_then(|wrong| Example::of(rule, wrong.seed));
        let (outcome, counterexample) = match (result.counterexample, result.instances < wanted) {
            (Some(wrong), _) => ("refuted", Some(wrong.to_string())),
            (None, true) => ("too few", Some(format!("last miss: {}", result.last_miss))),
            (None, false) => ("ok", None),
        };
        Row {
            rule: rule.name.to_string(),
            defined: place(rule),
            outcome,
            instances: result.instances,
            draws: result.draws,
            worst: result.worst,
            exact: fingerprint(rule, EXACT.min(wanted), EXACT * DRAWS, seed).is_identical(),
            counterexample,
            example,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let made = |rule: &Rule| Row::of(rule, args.instances as usize, args.seed);
    let rows = rows((&args.names, &args.files), console, ("exercise", "telling what was exercised so far"), made)?;
    let bad = rows.iter().filter(|r| r.outcome != "ok").count();
    if args.json {
        console.json(&rows)?;
    } else {
        console.print(&shown(&rows, bad, args, start, console))?;
    }
    Ok(ended(bad > 0))
}

fn shown(rows: &[Row], bad: usize, args: &Args, start: Instant, console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet && !rows.is_empty() {
        let mut table = plain_table(&["rule", "outcome", "exact", "instances", "draws", "worst", "time"], &[3, 4, 5, 6]);
        for r in rows {
            let numbers = [r.instances.to_string(), r.draws.to_string(), difference(r.worst), seconds(r.seconds)];
            let exact = if r.exact { "yes" } else { "–" };
            table.add_row([[r.rule.clone(), r.outcome.to_string(), exact.to_string()].as_slice(), numbers.as_slice()].concat());
        }
        text = format!("{}\n", lines(&table));
    }
    for r in rows {
        if let Some(why) = &r.counterexample {
            text.push_str(&format!("{}: {} ({}): {why}\n", r.outcome, r.rule, r.defined));
        }
        if let Some(Example { before, after }) = r.example.as_ref().filter(|_| !console.quiet) {
            let indented = |graph: &str| graph.lines().map(|line| format!("  {line}").trim_end().to_string() + "\n").collect::<String>();
            text.push_str(&format!("before\n{}after\n{}\n", indented(before), indented(after)));
        }
    }
    let good = rows.len() - bad;
    let time = seconds(start.elapsed().as_secs_f64());
    let exact = rows.iter().filter(|r| r.exact).count();
    let (all, instances, seed) = (rows.len(), args.instances, args.seed);
    text + &format!(
        "verdict: {good} of {all} rules held on {instances} instances each · {exact} are exact in a prime field · {time} · seed {seed}"
    )
}
