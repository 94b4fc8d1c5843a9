//! The counts of the campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

use serde::Serialize;

use super::claim::{Claim, Clause, Judgement};

/// Cases of one family.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Built and run.
    pub made: usize,
    /// Of these, really different, forged or false: all other counts are about them.
    pub different: usize,
    /// Proved without an assumption that explains the difference: this must never happen.
    pub proved: usize,
    /// Proved under such an assumption.
    pub assumed: usize,
    /// Equal up to rounded constants.
    pub bounded: usize,
    /// Not proved.
    pub refused: usize,
}

impl Counts {
    fn join(&mut self, other: &Counts) {
        self.made += other.made;
        self.different += other.different;
        self.proved += other.proved;
        self.assumed += other.assumed;
        self.bounded += other.bounded;
        self.refused += other.refused;
    }
}

/// One of the three parts of the campaign.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// By family.
    pub families: BTreeMap<String, Counts>,
    /// How often a proof was excused, by assumption.
    pub clauses: BTreeMap<String, usize>,
    /// False proofs, one line each.
    pub broken: Vec<String>,
}

impl Tally {
    /// The counts of a family.
    pub fn family(&mut self, name: &str) -> &mut Counts {
        self.families.entry(name.into()).or_default()
    }

    /// Counts the claim about a pair that differs; true if it is not allowed.
    pub fn claimed(&mut self, family: &str, what: &str, claim: &Claim, clause: Option<Clause>) -> bool {
        let counts = self.family(family);
        counts.different += 1;
        match (claim.judge(clause), claim) {
            (Judgement::NoProof, Claim::Bounded) => counts.bounded += 1,
            (Judgement::NoProof, _) => counts.refused += 1,
            (Judgement::Excused, _) => {
                counts.assumed += 1;
                let name = match claim {
                    Claim::Assuming(assumptions) => assumptions.join(", "),
                    _ => format!("{} (documented)", clause.map_or("", Clause::name)),
                };
                *self.clauses.entry(name).or_default() += 1;
            }
            (Judgement::Wrong, _) => {
                counts.proved += 1;
                self.broken.push(format!("{family}: {what}"));
                return true;
            }
        }
        false
    }

    /// The totals over all families.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.families.values().for_each(|counts| total.join(counts));
        total
    }

    /// Adds the counts of another thread.
    pub fn join(&mut self, other: Tally) {
        for (name, counts) in &other.families {
            self.family(name).join(counts);
        }
        for (name, count) in other.clauses {
            *self.clauses.entry(name).or_default() += count;
        }
        self.broken.extend(other.broken);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.families.keys().map(String::len).max().unwrap_or(0).max(6);
        writeln!(f, "  {:width$}  made  different  proved  assumed  bounded  refused", "family")?;
        let mut line = |name: &str, c: &Counts| {
            let (made, different, proved, assumed) = (c.made, c.different, c.proved, c.assumed);
            writeln!(f, "  {name:width$}  {made:4}  {different:9}  {proved:6}  {assumed:7}  {:7}  {:7}", c.bounded, c.refused)
        };
        for (name, counts) in &self.families {
            line(name, counts)?;
        }
        line("all", &self.total())?;
        for (name, count) in &self.clauses {
            writeln!(f, "  assumed {count} times: {name}")?;
        }
        Ok(())
    }
}

/// The outcome of the campaign.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Seed.
    pub seed: u64,
    /// Pairs that look alike but differ.
    pub pairs: Tally,
    /// Certificates of models that differ.
    pub certificates: Tally,
    /// Rules that are false where they are applied.
    pub rules: Tally,
    /// Seconds taken.
    pub seconds: f64,
}

impl Outcome {
    /// Prints the tables, what broke, and the verdict.
    pub fn conclude(&self) -> ExitCode {
        let parts = [("pairs", &self.pairs), ("certificates", &self.certificates), ("rules", &self.rules)];
        for (name, tally) in parts.iter().filter(|(_, tally)| !tally.families.is_empty()) {
            println!("{name}:\n{tally}");
        }
        let broken: Vec<&String> = parts.iter().flat_map(|(_, tally)| &tally.broken).collect();
        for line in &broken {
            println!("BROKEN {line}");
        }
        let counted: Vec<String> = parts.iter().map(|(name, tally)| format!("{} {name}", tally.total().different)).collect();
        let (counted, broken) = (counted.join(", "), broken.len());
        println!("verdict: attack: {counted}, {broken} proved · {:.0} s · seed {}", self.seconds, self.seed);
        if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
