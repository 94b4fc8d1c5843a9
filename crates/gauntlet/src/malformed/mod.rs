//! Damaged models and rule files: read or refused, without panics and without more memory than a
//! file of that size can need.

pub mod heap;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use regraft_onnx::{Model, WriteOptions};
use regraft_rules::library::SHIPPED;
use regraft_rules::{Library, parse};

use crate::caught::message;
use crate::generate::case;
use crate::generate::random::Random;
use crate::summary::Summary;

/// Executions of the short mode.
const SHORT: u64 = 4_000;
/// Number of models to damage.
const SEEDS: u64 = 192;
/// One in this many executions damages a rule file.
const RULES_ONCE_IN: usize = 16;
/// Memory that any file may take, however small: tables, and small constants evaluated on import.
const FIXED: usize = 24 << 20;
/// Additional memory per byte of the file.
const PER_BYTE: usize = 512;

/// Damaged models and rule files.
#[derive(Args, Clone, Debug)]
pub struct Malformed {
    /// How many damaged files are read.
    #[arg(long, default_value_t = 1_000_000)]
    pub executions: u64,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of the first execution: to see one failure again.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// A few thousand executions only.
    #[arg(long)]
    pub short: bool,
    /// Keep files that break the reader in this folder.
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// The reader's results.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Executions of the model reader.
    pub models: u64,
    /// Models that were read although damaged.
    pub read: u64,
    /// Executions of the rule parser.
    pub texts: u64,
    /// Rule files that were read although damaged.
    pub parsed: u64,
    /// Largest memory that a model took, in bytes.
    pub peak: usize,
    /// One line per failure.
    pub broken: Vec<String>,
}

/// Reads a model and writes it back; true if it is valid.
fn read_and_write(bytes: &[u8]) -> bool {
    let Ok(model) = Model::from_bytes(bytes.to_vec().into(), None) else { return false };
    // A model that can be read must be writable or refused.
    let _ = model.write(model.graph(), &WriteOptions::default()).map(|written| written.to_bytes());
    true
}

/// Parses rules and indexes them; true if they are valid.
fn read_rules(text: &str) -> bool {
    parse("damaged.rules", text).is_ok_and(|rules| Library::new(rules).is_ok())
}

/// Top-level forms of the shipped rule files.
fn rule_texts() -> Vec<String> {
    let forms = SHIPPED.iter().flat_map(|(_, text)| text.split("\n\n")).filter(|form| form.contains("(rule"));
    forms.filter(|form| form.len() < 3000).map(ToString::to_string).collect()
}

/// Damages files and reads them.
pub fn campaign(malformed: &Malformed) -> Result<Tally> {
    let seeds: Vec<Vec<u8>> = (0..SEEDS).map(|number| case(malformed.seed, number).bytes()).filter(|bytes| bytes.len() < 6000).collect();
    let texts = rule_texts();
    let mut tally = Tally::default();
    let executions = if malformed.short { SHORT.min(malformed.executions) } else { malformed.executions };
    for number in malformed.from..malformed.from + executions {
        let mut random = Random::new(!malformed.seed, number);
        let on_rules = random.once_in(RULES_ONCE_IN);
        let (data, outcome, peak) = if on_rules {
            let (text, other) = (&texts[random.below(texts.len())], &texts[random.below(texts.len())]);
            let damaged = mutate::text(&mut random, text, other);
            let (outcome, peak) = heap::measured(|| catch_unwind(AssertUnwindSafe(|| read_rules(&damaged))));
            (damaged.into_bytes(), outcome, peak)
        } else {
            let (model, other) = (&seeds[random.below(seeds.len())], &seeds[random.below(seeds.len())]);
            let mut damaged = model.clone();
            if random.once_in(3) {
                damaged = mutate::bytes(&mut random, &damaged, other);
            } else {
                for _ in 0..1 + random.below(3) {
                    damaged = mutate::message(&mut random, &damaged, other);
                }
            }
            let (outcome, peak) = heap::measured(|| catch_unwind(AssertUnwindSafe(|| read_and_write(&damaged))));
            (damaged, outcome, peak)
        };
        let well = matches!(outcome, Ok(true));
        if on_rules {
            (tally.texts, tally.parsed) = (tally.texts + 1, tally.parsed + u64::from(well));
        } else {
            (tally.models, tally.read) = (tally.models + 1, tally.read + u64::from(well));
        }
        tally.peak = tally.peak.max(peak);
        let what = match outcome {
            Err(panic) => message(panic.as_ref()),
            Ok(_) if peak > FIXED + PER_BYTE * data.len() => format!("{peak} bytes of memory for a file of {}", data.len()),
            Ok(_) => continue,
        };
        let line = format!("execution {number} of seed {}: {what}", malformed.seed);
        if let Some(folder) = &malformed.keep {
            std::fs::create_dir_all(folder)?;
            let kind = if on_rules { "rules" } else { "onnx" };
            std::fs::write(folder.join(format!("malformed-{}-{number}.{kind}", malformed.seed)), &data)?;
        }
        tally.broken.push(line);
    }
    Ok(tally)
}

/// Runs the campaign and prints its summary.
pub fn run(malformed: &Malformed) -> Result<ExitCode> {
    // A panic is reported once, as a finding; its location goes to standard error.
    std::panic::set_hook(Box::new(|info| {
        if let Some(place) = info.location() {
            eprintln!("panic at {place}");
        }
    }));
    let start = Instant::now();
    let tally = campaign(malformed)?;
    let each = (tally.models + tally.texts) as f64 / start.elapsed().as_secs_f64();
    println!(
        "{} damaged models, {} of them read; {} damaged rule files, {} of them read",
        tally.models, tally.read, tally.texts, tally.parsed
    );
    println!("{each:.0} executions per second; at most {} KiB for one file", tally.peak >> 10);
    let held = (tally.models + tally.texts) as usize - tally.broken.len();
    let summary = Summary { held, broken: tally.broken, ..Summary::default() };
    Ok(summary.conclude("malformed", malformed.seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_read_or_refused() {
        let malformed = Malformed { executions: SHORT, seed: 5, from: 0, short: true, keep: None };
        let tally = campaign(&malformed).unwrap();
        assert!(tally.broken.is_empty(), "{}", tally.broken.join("\n"));
        // Damage that is always refused, or never, tests nothing.
        assert!(tally.read * 20 > tally.models && tally.read * 20 < tally.models * 19, "{tally:?}");
        assert!(tally.parsed > 0 && tally.parsed < tally.texts, "{tally:?}");
    }
}
