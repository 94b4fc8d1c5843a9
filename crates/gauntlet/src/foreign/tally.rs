//! The counts of the campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

use serde::Serialize;

/// Number of reasons to print.
const REASONS: usize = 25;

/// Models of one kind, simplified by one tool.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Models that the tool refused.
    pub refused: usize,
    /// Why, without names and numbers.
    pub refusals: BTreeMap<String, usize>,
    /// Models that can no longer be read.
    pub unreadable: usize,
    /// Models whose inputs or outputs it changed.
    pub resigned: usize,
    /// Models that the tool left unchanged.
    pub unchanged: usize,
    /// Models that it changed; all other counts refer to them.
    pub changed: usize,
    /// Proved equal for all inputs and sizes.
    pub proved: usize,
    /// Proved, up to rounded constants.
    pub bounded: usize,
    /// The largest deviation of a rounded constant.
    pub worst: f64,
    /// Not proved, but the outputs agree.
    pub tested: usize,
    /// Not proved, and `check` reports a difference, though outputs on the model's own inputs
    /// agree.
    pub refuted: Vec<String>,
    /// The tool's mistakes: outputs differ.
    pub wrong: Vec<String>,
    /// Not proved, and not runnable.
    pub unrun: Vec<String>,
    /// Where proofs stop: the models, by the operators there.
    pub open: BTreeMap<String, Vec<u64>>,
    /// Wrong models tried, by change.
    pub tampered: BTreeMap<String, usize>,
    /// Wrong models that were proved, which must never happen.
    pub broken: Vec<String>,
    /// Seconds spent on each proof attempt.
    pub times: Vec<f64>,
}

impl Tally {
    fn share(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.changed.max(1) as f64
    }

    /// The time within which this share of all proof attempts ended.
    fn within(&self, share: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }
}

/// The outcome of the campaign.
#[derive(Debug, Serialize)]
pub struct Campaign {
    seed: u64,
    tools: BTreeMap<String, String>,
    /// By tool and kind of model.
    tallies: BTreeMap<String, Tally>,
    /// Seconds taken.
    pub seconds: f64,
}

impl Campaign {
    /// An empty campaign.
    pub fn new(seed: u64, tools: BTreeMap<String, String>) -> Campaign {
        Campaign { seed, tools, tallies: BTreeMap::new(), seconds: 0.0 }
    }

    /// The counts of a tool, for models with or without open sizes.
    pub fn tally(&mut self, tool: &str, open: bool) -> &mut Tally {
        let version = self.tools.get(tool).map_or("", String::as_str);
        let kind = if open { "open sizes" } else { "static" };
        self.tallies.entry(format!("{tool} {version}, {kind}")).or_default()
    }

    /// Prints the verdict.
    pub fn conclude(&self) -> ExitCode {
        let all = || self.tallies.values();
        for line in all().flat_map(|t| &t.broken) {
            println!("BROKEN {line}");
        }
        let (changed, shown) = (all().map(|t| t.changed).sum::<usize>(), all().map(|t| t.proved + t.bounded).sum::<usize>());
        let tampered: usize = all().flat_map(|t| t.tampered.values()).sum();
        let (broken, refuted) = (all().map(|t| t.broken.len()).sum::<usize>(), all().map(|t| t.refuted.len()).sum::<usize>());
        println!(
            "verdict: foreign: {shown} of {changed} changed models proved or bounded, {refuted} refuted, {tampered} wrong models, {broken} broken · {:.0} s · seed {}",
            self.seconds, self.seed
        );
        if broken + refuted == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, t) in &self.tallies {
            let tried = t.changed + t.unchanged + t.refused + t.unreadable + t.resigned;
            writeln!(
                f,
                "{kind}: {tried} models, {} refused, {} unreadable, {} with other inputs, {} unchanged, {} changed",
                t.refused, t.unreadable, t.resigned, t.unchanged, t.changed
            )?;
            writeln!(
                f,
                "  proved {} ({:.1} %), bounded {} ({:.1} %; constants within {:.1e}), together {:.1} %; tested {}, refuted {}, not run {}; the tool's mistakes {}",
                t.proved,
                t.share(t.proved),
                t.bounded,
                t.share(t.bounded),
                t.worst,
                t.share(t.proved + t.bounded),
                t.tested,
                t.refuted.len(),
                t.unrun.len(),
                t.wrong.len()
            )?;
            writeln!(
                f,
                "  seconds: median {:.2}, nine of ten {:.2}, all {:.2}; wrong models tried: {:?}",
                t.within(0.5),
                t.within(0.9),
                t.within(1.0),
                t.tampered
            )?;
            for (why, count) in &t.refusals {
                writeln!(f, "  refused: {count} times: {why}")?;
            }
            let mut open: Vec<(&String, &Vec<u64>)> = t.open.iter().collect();
            open.sort_by_key(|(_, models)| std::cmp::Reverse(models.len()));
            for (kind, models) in open.into_iter().take(REASONS) {
                writeln!(f, "  open: {} times at {kind}: {:?}", models.len(), &models[..models.len().min(4)])?;
            }
            for line in t.refuted.iter().chain(&t.wrong).chain(&t.unrun) {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
