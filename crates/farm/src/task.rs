//! `Task`: one command, its inputs, and what it asks of a machine.

use serde::{Deserialize, Serialize};

use crate::cores::Need;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Makes a model faster.
    Optimize,
    /// Times a model against another.
    Bench,
    /// Computes the values that the shards of an enumeration share.
    Values,
    /// Enumerates one shard of the graphs over a specification.
    Generate,
    /// Merges what the shards found.
    Merge,
    /// Draws operators for a layer.
    Draw,
    /// Times and trains some of them.
    Judge,
    /// Joins what was judged.
    Join,
    /// Makes one shard of the samples that a policy is trained on.
    Samples,
    /// Trains a policy.
    Train,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Optimize => "optimize",
            Kind::Bench => "bench",
            Kind::Values => "values",
            Kind::Generate => "generate",
            Kind::Merge => "merge",
            Kind::Draw => "draw",
            Kind::Judge => "judge",
            Kind::Join => "join",
            Kind::Samples => "samples",
            Kind::Train => "train",
        }
    }
}

/// What a task is about, for people: columns of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Model or specification, or what a policy learns from.
    pub subject: String,
    /// Sizes or symbols, as given; or the shard.
    pub sizes: String,
    /// Threads per operator, if given.
    pub threads: Option<u16>,
    /// The runtime, if given.
    pub target: String,
}

/// A file that a command reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Path, relative to the folder of the jobs.
    pub path: String,
    /// BLAKE3 of its bytes, 64 hexadecimal digits; empty for what another task makes.
    pub digest: String,
}

impl Input {
    /// A file that another task makes.
    pub(crate) fn made(path: &str) -> Input {
        Input { path: path.to_owned(), digest: String::new() }
    }
}

/// One command and what it needs. Carried out again, it gives the same, up to measured times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name: what it is about, and the first digits of the digest of all else.
    pub id: String,
    /// What it does.
    pub kind: Kind,
    /// What it is about.
    pub labels: Labels,
    /// Arguments of the command; paths are relative to the folder of the jobs.
    pub arguments: Vec<String>,
    /// Files that the command reads.
    pub inputs: Vec<Input>,
    /// Tasks that must be done before.
    pub needs: Vec<String>,
    /// The file that it makes in its folder, if it makes one.
    pub output: Option<String>,
    /// Databases in its folder that the command goes on with, where it was ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<String>,
    /// Processor cores.
    pub cores: Need,
    /// Version of the program that planned it, and that must carry it out.
    pub version: String,
}

/// Longest part of a task's name that is for people, in characters.
const LONGEST: usize = 80;

impl Task {
    /// Names the task. `arguments` gives the command for a folder, relative to that of the jobs,
    /// that the task writes to; the folder has the task's name.
    pub(crate) fn named(mut self, results: &str, arguments: impl Fn(&str) -> Vec<String>) -> Task {
        self.arguments = arguments("");
        let text = serde_json::to_string(&self).unwrap_or_default();
        let digest = blake3::hash(text.as_bytes()).to_hex();
        let parts = [self.kind.name(), &self.labels.subject, &self.labels.sizes].map(plain);
        let mut name = parts.iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<_>>().join("-");
        name = name.chars().take(LONGEST).collect();
        if let Some(threads) = self.labels.threads {
            name = format!("{name}-t{threads}");
        }
        self.id = format!("{name}-{}", &digest[..8]);
        self.arguments = arguments(&format!("{results}/{}", self.id));
        self
    }
}

/// A text as part of a file's name.
fn plain(text: &str) -> String {
    let replaced: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' }).collect();
    replaced.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(subject: &str, digest: &str) -> Task {
        let task = Task {
            id: String::new(),
            kind: Kind::Optimize,
            labels: Labels { subject: subject.into(), sizes: "x:1,3,8,8".into(), threads: Some(2), target: String::new() },
            arguments: Vec::new(),
            inputs: vec![Input { path: "a.onnx".into(), digest: digest.into() }],
            needs: Vec::new(),
            output: None,
            keeps: Vec::new(),
            cores: Need { cores: Some(2), whole: true },
            version: "1".into(),
        };
        task.named("farm/results", |folder| vec!["optimize".into(), format!("{folder}/a.onnx")])
    }

    #[test]
    fn names_tell_tasks_apart_and_files_can_have_them() {
        let (one, again, other) = (task("a b/c", "1"), task("a b/c", "1"), task("a b/c", "2"));
        assert_eq!(one, again);
        assert_ne!(one.id, other.id, "another input is another task");
        assert!(one.id.starts_with("optimize-a-b-c-x-1-3-8-8-t2-"), "{}", one.id);
        assert_eq!(one.arguments[1], format!("farm/results/{}/a.onnx", one.id));
        assert!(task(&"x".repeat(500), "1").id.len() < 200);
    }

    #[test]
    fn a_task_is_read_as_it_was_written() {
        let task = task("a", "1");
        let text = serde_json::to_string(&task).expect("a task can be written");
        assert_eq!(serde_json::from_str::<Task>(&text).expect("and read"), task);
    }
}
