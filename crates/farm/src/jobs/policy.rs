//! `[[policy]]`: samples for learning which rewrite to try next, by the shard, and a training on
//! them.

use regraft::Failure;
use serde::Deserialize;

use super::{Common, MOST_SHARDS, Plan, Texts, threads};
use crate::task::{Input, Kind, Labels};

/// A table of the file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Policy {
    /// Networks of the zoo that blocks are cut from; by default, those of `regraft policy`.
    #[serde(default)]
    networks: Texts,
    /// Families and networks of these that no block is cut from.
    #[serde(default)]
    without: Texts,
    /// Blocks of each network; by default, as many as `regraft policy` makes.
    blocks: Option<u32>,
    /// Seed, of the samples and of the training.
    #[serde(default)]
    seed: u64,
    /// Tasks that share the blocks.
    shards: u32,
    /// Epochs of a training on all samples; without, there is none.
    epochs: Option<u32>,
    #[serde(flatten)]
    pub(super) common: Common,
}

/// Databases that an interrupted command goes on with: `train` names its own after the weights.
const SAMPLES: &str = "samples.sqlite";
const WEIGHTS: &str = "prior.bin";
const EPOCHS: &str = "prior.epochs.sqlite";

impl Policy {
    /// Fails if a number is none of its kind.
    fn check(&self) -> Result<(), Failure> {
        if !(1..=MOST_SHARDS).contains(&self.shards) {
            return Err(Failure::new(format!("{} shards are not between 1 and {MOST_SHARDS}", self.shards)).hint("each is a task"));
        }
        let zero = [("blocks", self.blocks), ("epochs", self.epochs)].into_iter().find(|(_, number)| *number == Some(0));
        if let Some((key, _)) = zero {
            return Err(Failure::new(format!("[[policy]] has 0 {key}")).hint(format!("give 1 or more, or leave `{key}` out")));
        }
        if self.common.budget.is_some() {
            return Err(Failure::new("[[policy]] has no budget").hint("`blocks` says how much is done; more shards make smaller tasks"));
        }
        Ok(())
    }

    /// What it is about, for people.
    fn subject(&self) -> String {
        let names = match self.networks.list() {
            [] => "policy".to_owned(),
            names => names.join(" "),
        };
        let without: String = self.without.list().iter().map(|name| format!(" without {name}")).collect();
        format!("{names}{without} seed {}", self.seed)
    }

    /// What the commands that make samples have in common: which samples there are.
    fn samples(&self) -> Vec<String> {
        let mut options = vec![format!("--seed={}", self.seed)];
        options.extend(self.blocks.map(|blocks| format!("--blocks={blocks}")));
        for (option, names) in [("models", &self.networks), ("without", &self.without)] {
            options.extend((!names.list().is_empty()).then(|| format!("--{option}={}", names.list().join(","))));
        }
        options.extend(self.common.options.list().iter().cloned());
        options
    }
}

impl Plan<'_> {
    /// One task for each shard, one that puts their samples together, and one that trains on them.
    pub(super) fn policy(&mut self, job: &Policy) -> Result<(), Failure> {
        job.check()?;
        let [threads] = threads(&job.common)?[..] else {
            return Err(Failure::new("[[policy]] has several numbers of threads").hint("give one"));
        };
        let inputs = self.inputs(&[], &job.common)?;
        let (samples, subject, seed) = (job.samples(), job.subject(), job.seed);
        let labels = |sizes: String| Labels { subject: subject.clone(), sizes, threads, target: String::new() };
        let words = |command: &str, output: String| vec!["policy".into(), command.into(), format!("--output={output}")];
        let mut parts = Vec::new();
        for shard in 1..=job.shards {
            let label = labels(format!("{shard}/{}", job.shards));
            parts.push(self.add(Kind::Samples, label, &job.common, inputs.clone(), Some(SAMPLES.into()), |folder| {
                let mut arguments = words("data", format!("{folder}/{SAMPLES}"));
                arguments.push(format!("--shard={shard}/{}", job.shards));
                arguments.push(format!("--threads={}", threads.unwrap_or(1)));
                arguments.extend(samples.clone());
                arguments
            }));
            self.keeps(SAMPLES);
        }
        let made = |id: &String, farm: &crate::Farm| format!("{}/{id}/{SAMPLES}", farm.results());
        let files: Vec<String> = parts.iter().map(|id| made(id, self.farm)).collect();
        let mut reads = inputs.clone();
        reads.extend(files.iter().map(|path| Input::made(path)));
        let merge = self.add(Kind::Merge, labels("all".into()), &job.common, reads, Some(SAMPLES.into()), |folder| {
            let mut arguments = words("data", format!("{folder}/{SAMPLES}"));
            arguments.extend(samples.clone());
            arguments.push("--merge".into());
            arguments.extend(files.clone());
            arguments
        });
        self.needs(parts);
        let Some(epochs) = job.epochs else { return Ok(()) };
        let whole = made(&merge, self.farm);
        let mut reads = inputs;
        reads.push(Input::made(&whole));
        self.add(Kind::Train, labels(format!("{epochs} epochs")), &job.common, reads, Some(WEIGHTS.into()), |folder| {
            let mut arguments = words("train", format!("{folder}/{WEIGHTS}"));
            arguments.extend([format!("--samples={whole}"), format!("--epochs={epochs}"), format!("--seed={seed}")]);
            arguments
        });
        self.needs(vec![merge]);
        self.keeps(EPOCHS);
        Ok(())
    }
}
