//! Random models, rewritten at random regardless of cost.

mod shrink;
pub mod subject;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use prost::Message;
use regraft_ir::Trust;
use regraft_search::RandomWalk;

use self::subject::{Outcome, Subject};
use crate::generate::{self, Case};
use crate::summary::Summary;
use crate::trial::Bench;

/// Models of the short mode.
const SHORT: u64 = 250;
/// Maximum number of rewrites per model.
const STEPS: usize = 14;

/// Random models, rewritten at random.
#[derive(Args, Clone, Debug)]
pub struct Fuzz {
    /// How many models.
    #[arg(long, default_value_t = 10_000)]
    pub models: u64,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of the first model: to see one failure again.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// A few hundred models only.
    #[arg(long)]
    pub short: bool,
    /// Keep models that fail in this folder, with a minimized version.
    #[arg(long)]
    pub keep: Option<PathBuf>,
    /// Only write the models to this folder, for other programs.
    #[arg(long)]
    pub export: Option<PathBuf>,
}

/// Writes the models, and how many.
pub fn export(fuzz: &Fuzz, folder: &Path) -> Result<u64> {
    std::fs::create_dir_all(folder)?;
    for number in fuzz.from..fuzz.from + fuzz.models {
        let path = folder.join(format!("{}-{number}.onnx", fuzz.seed));
        std::fs::write(&path, generate::case(fuzz.seed, number).bytes())?;
    }
    Ok(fuzz.models)
}

/// What a campaign found.
#[derive(Debug, Default)]
pub struct Tally {
    /// Models that held.
    pub held: usize,
    /// Rewrites applied to them.
    pub rewrites: usize,
    /// Models that the baseline refused, by reason.
    pub refused: BTreeMap<String, usize>,
    /// Differences beyond the tolerance that double precision confirms to be rounding, one line
    /// each.
    pub excused: Vec<String>,
    /// Steps of certificates, by trust.
    pub steps: BTreeMap<Trust, usize>,
    /// Rules with unproved steps: how many, and the first.
    pub open: BTreeMap<String, (usize, String)>,
    /// Models whose certificate does not lead to the written model, one line each: the reader sees
    /// another expression there.
    pub uncertified: Vec<String>,
    /// One line per failure.
    pub broken: Vec<String>,
}

/// The walk through model `number`.
fn walk(seed: u64, number: u64) -> RandomWalk {
    let mut random = generate::random::Random::new(!seed, number);
    RandomWalk { steps: 1 + random.below(STEPS), seed: random.next() }
}

/// Runs models and counts outcomes.
pub fn campaign(bench: &Bench, fuzz: &Fuzz) -> Result<Tally> {
    let mut tally = Tally::default();
    let models = if fuzz.short { SHORT.min(fuzz.models) } else { fuzz.models };
    for number in fuzz.from..fuzz.from + models {
        let case = generate::case(fuzz.seed, number);
        let bytes = case.bytes();
        let subject = match Subject::new(bench, &bytes, &case.feeds, case.tolerance) {
            Ok(subject) => subject,
            Err(why) => {
                keep(fuzz, &format!("refused-{}-{number}", fuzz.seed), &bytes)?;
                *tally.refused.entry(brief(&why)).or_default() += 1;
                continue;
            }
        };
        let walk = walk(fuzz.seed, number);
        match subject.check(bench, walk) {
            Outcome::Held { rewrites, steps, uncertified, excused } => {
                for step in steps {
                    *tally.steps.entry(step.trust).or_default() += 1;
                    if step.trust != Trust::Proved {
                        let (count, _) = tally.open.entry(step.rule).or_insert_with(|| (0, format!("model {number}: {}", step.why)));
                        *count += 1;
                    }
                }
                tally.uncertified.extend(uncertified.map(|why| format!("model {number} of seed {}: {why}", fuzz.seed)));
                tally.excused.extend(excused.iter().map(|what| format!("model {number} of seed {}: {what}", fuzz.seed)));
                tally.held += 1;
                tally.rewrites += rewrites;
            }
            Outcome::Broken { kind, what, rules } => {
                let mut line = format!("{kind:?} model {number} of seed {}: {what} after {}", fuzz.seed, rules.join(", "));
                if fuzz.keep.is_some() {
                    line.push_str(&minimized(fuzz, number, &case, kind, &rules, walk)?);
                }
                eprintln!("found: {line}");
                tally.broken.push(line);
            }
        }
    }
    Ok(tally)
}

fn minimized(fuzz: &Fuzz, number: u64, case: &Case, kind: subject::Kind, rules: &[String], walk: RandomWalk) -> Result<String> {
    let shrunk = shrink::shrink(&case.model, &case.feeds, case.tolerance, kind, rules, walk)?;
    keep(fuzz, &format!("broken-{}-{number}", fuzz.seed), &case.bytes())?;
    keep(fuzz, &format!("broken-{}-{number}-small", fuzz.seed), &shrunk.model.encode_to_vec())?;
    let nodes: Vec<&str> = shrunk.model.graph.iter().flat_map(|g| &g.node).map(|n| n.op_type()).filter(|o| *o != "Constant").collect();
    Ok(format!("\n    guilty: {}\n    of: {}", shrunk.rules.join(", "), nodes.join(" ")))
}

fn keep(fuzz: &Fuzz, name: &str, bytes: &[u8]) -> Result<()> {
    let Some(folder) = &fuzz.keep else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let path = folder.join(name).with_extension("onnx");
    std::fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}

/// A reason without names and numbers, so that similar reasons are counted together.
fn brief(why: &str) -> String {
    let plain: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
    let at = plain.find("Status Message").unwrap_or(0);
    plain[at..].chars().take(150).collect()
}

/// Runs the campaign and prints its summary.
pub fn run(fuzz: &Fuzz) -> Result<ExitCode> {
    if let Some(folder) = &fuzz.export {
        println!("verdict: {} models in {}", export(fuzz, folder)?, folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench::open()?;
    let start = Instant::now();
    let tally = campaign(&bench, fuzz)?;
    let seconds = start.elapsed().as_secs_f64();
    for (why, count) in &tally.refused {
        println!("refused by the baseline, {count} times: {why}");
    }
    for (rule, (count, first)) in &tally.open {
        println!("not proved, {count} times: {rule}: {first}");
    }
    let count = |trust: Trust| tally.steps.get(&trust).copied().unwrap_or_default();
    println!("steps: {} proved, {} tested, {} unproved", count(Trust::Proved), count(Trust::Tested), count(Trust::Unproved));
    for line in &tally.uncertified {
        println!("uncertified: {line}");
    }
    for line in &tally.excused {
        println!("excused: {line}");
    }
    let refused: usize = tally.refused.values().sum();
    let all = tally.held + refused + tally.broken.len();
    println!(
        "{} rewrites in {} models, {} of them not certified; {:.1} models per second",
        tally.rewrites,
        tally.held,
        tally.uncertified.len(),
        all as f64 / seconds
    );
    let summary = Summary { held: tally.held, excused: tally.excused.len(), skipped: refused, broken: tally.broken };
    Ok(summary.conclude("fuzz", fuzz.seed))
}

#[cfg(test)]
mod tests;
