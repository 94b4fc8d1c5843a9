//! `Outcome`: what came of a task, where, and after how long.

use regraft_runtime::MachineKey;
use serde::{Deserialize, Serialize};

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Exit code 0.
    Done,
    /// Exit code 1: finished, but a promise was not met.
    Unmet,
    /// Exit code 2.
    Failed,
    /// Its process died, again and again.
    Crashed,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Unmet => "unmet",
            State::Failed => "failed",
            State::Crashed => "crashed",
        }
    }

    /// Whether the task made what it was to make.
    pub fn has_output(self) -> bool {
        matches!(self, State::Done | State::Unmet)
    }
}

/// Where a task was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Name of the machine.
    pub host: String,
    /// Its processor, the digest of its features, and the number of logical processors.
    pub machine: String,
    /// The logical processors that were the task's alone.
    pub processors: Vec<usize>,
}

impl Place {
    /// This machine, with these processors claimed.
    pub fn here(processors: &[usize]) -> Place {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
        let host = host.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
        Place { host: host.unwrap_or_default(), machine: MachineKey::detect().to_string(), processors: processors.to_vec() }
    }
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The task.
    pub task: String,
    /// How it ended.
    pub state: State,
    /// Why, unless it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How to mend that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the command warned of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the command printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Where.
    pub place: Place,
    /// Seconds that the command took.
    pub seconds: f64,
    /// Seconds that the task waited for cores.
    pub waited: f64,
    /// How often it was begun.
    pub attempts: usize,
    /// The program and its version.
    pub program: String,
}
