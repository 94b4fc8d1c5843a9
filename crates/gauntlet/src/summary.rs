//! The outcome of a campaign.

use std::process::ExitCode;

/// The counts of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cases that held.
    pub held: usize,
    /// Differences beyond the tolerance, in cases that held, that double precision confirms to be
    /// rounding.
    pub excused: usize,
    /// Cases that the baseline itself cannot run.
    pub skipped: usize,
    /// What broke, one line each.
    pub broken: Vec<String>,
}

impl Summary {
    /// Adds another part of the campaign.
    pub fn join(&mut self, other: Summary) {
        self.held += other.held;
        self.excused += other.excused;
        self.skipped += other.skipped;
        self.broken.extend(other.broken);
    }

    /// Prints what broke and the verdict line.
    pub fn conclude(&self, campaign: &str, seed: u64) -> ExitCode {
        for line in &self.broken {
            println!("BROKEN {line}");
        }
        let excused = match self.excused {
            0 => String::new(),
            n => format!(" ({n} differences excused as rounding, by double precision)"),
        };
        let (held, broken, skipped) = (self.held, self.broken.len(), self.skipped);
        println!("verdict: {campaign}: {held} held{excused}, {broken} broken, {skipped} not comparable · seed {seed}");
        if self.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
