//! The journal of a campaign: one line for each finished part, so that another run can resume.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use regraft_audit::Tally;
use regraft_rules::Rule;
use serde::{Deserialize, Serialize};

use regraft::error::Failure;

/// A finished part of an axiom's domain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The axiom's name.
    pub axiom: String,
    /// A digest of its text.
    digest: String,
    /// The first choices that define the part.
    pub prefix: Vec<u64>,
    equal: u64,
    guarded: u64,
    untyped: u64,
    mirrored: u64,
    undecided: u64,
    refuted: u64,
    why: Option<String>,
    /// Processor time spent on it.
    pub seconds: f64,
}

impl Part {
    /// Records a finished part.
    pub fn new(axiom: &Rule, prefix: &[u64], tally: &Tally, seconds: f64) -> Part {
        let Tally { equal, guarded, untyped, mirrored, undecided, refuted, first } = tally.clone();
        let digest = digest(axiom);
        Part {
            axiom: axiom.name.to_string(),
            digest,
            prefix: prefix.into(),
            equal,
            guarded,
            untyped,
            mirrored,
            undecided,
            refuted,
            why: first,
            seconds,
        }
    }

    /// True if it is a part of the current form of this axiom.
    pub fn is_of(&self, axiom: &Rule) -> bool {
        self.axiom == axiom.name.as_ref() && self.digest == digest(axiom)
    }

    /// Its tally.
    pub fn tally(&self) -> Tally {
        let Part { equal, guarded, untyped, mirrored, undecided, refuted, .. } = *self;
        Tally { equal, guarded, untyped, mirrored, undecided, refuted, first: self.why.clone() }
    }
}

fn digest(axiom: &Rule) -> String {
    format!("{:016x}", axiom.fingerprint())
}

/// The first line of a journal: what it belongs to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    bound: i64,
}

/// The journal being written, if any.
pub struct Journal {
    path: PathBuf,
    file: Option<Mutex<File>>,
}

impl Journal {
    /// No journal.
    pub fn none() -> Journal {
        Journal { path: PathBuf::new(), file: None }
    }

    /// A new journal, or with `resume` the existing one and its parts.
    pub fn open(path: &Path, resume: bool, bound: i64) -> Result<(Journal, Vec<Part>), Failure> {
        let head = Head { bound };
        let parts = if resume { parts(path, &head)? } else { Vec::new() };
        let failed = |e: std::io::Error| Failure::new(format!("cannot write the journal {}: {e}", path.display())).hint("check the path");
        if !resume && path.exists() {
            return Err(Failure::new(format!("the journal {} is there already", path.display()))
                .hint("--resume goes on with it; remove it to begin again"));
        }
        let journal = Journal { path: path.into(), file: None };
        // Discard what a killed run left half-written.
        let mut file = File::create(path).map_err(failed)?;
        writeln!(file, "{}", journal.line(&head)?).map_err(failed)?;
        for part in &parts {
            writeln!(file, "{}", journal.line(part)?).map_err(failed)?;
        }
        drop(file);
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok((Journal { file: Some(Mutex::new(file)), ..journal }, parts))
    }

    fn line(&self, value: &impl Serialize) -> Result<String, Failure> {
        serde_json::to_string(value).map_err(|e| Failure::new(format!("cannot write the journal {}: {e}", self.path.display())))
    }

    /// Appends a part.
    pub fn note(&self, part: &Part) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let line = self.line(part)?;
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writeln!(file, "{line}").map_err(|e| Failure::new(format!("cannot write the journal {}: {e}", self.path.display())))
    }
}

/// The finished parts of a journal; a truncated last line is ignored.
fn parts(path: &Path, head: &Head) -> Result<Vec<Part>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::new(format!("cannot read the journal {}: {e}", path.display())).hint("--resume needs the journal of an earlier run")
    })?;
    let mut lines = text.lines();
    let found: Option<Head> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    if found.as_ref() != Some(head) {
        return Err(Failure::new(format!("the journal {} is of another bound", path.display()))
            .hint("give the same --bound, or begin a new journal"));
    }
    let lines: Vec<&str> = lines.collect();
    let mut parts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(part) => parts.push(part),
            Err(_) if at + 1 == lines.len() => {}
            Err(e) => {
                return Err(Failure::new(format!("{}:{}: {e}", path.display(), at + 2)).hint("the journal was changed; begin a new one"));
            }
        }
    }
    Ok(parts)
}
