//! How a campaign ends.

use std::process::ExitCode;

/// What a campaign counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Cases that held.
    pub held: usize,
    /// Cases that the baseline itself cannot run.
    pub skipped: usize,
    /// What broke, one line each.
    pub broken: Vec<String>,
}

impl Verdict {
    /// Adds another part of the campaign.
    pub fn join(&mut self, other: Verdict) {
        self.held += other.held;
        self.skipped += other.skipped;
        self.broken.extend(other.broken);
    }

    /// Prints what broke and the verdict line.
    pub fn conclude(&self, campaign: &str, seed: u64) -> ExitCode {
        for line in &self.broken {
            println!("BROKEN {line}");
        }
        println!("verdict: {campaign}: {} held, {} broken, {} not comparable · seed {seed}", self.held, self.broken.len(), self.skipped);
        if self.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
