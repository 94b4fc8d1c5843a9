//! Certificates as files: where they lie, and what one says about two models.

use std::path::{Path, PathBuf};
use std::time::Instant;

use regraft_certify::{Certificate, Finding, Judged, Replay, is_certificate};
use regraft_ir::Trust;
use regraft_onnx::{FixedSizes, Model};
use serde::{Deserialize, Serialize};

use crate::assumptions::{clauses, limited, rounding};
use crate::error::Failure;
use crate::ground::Ground;

/// Maximum number of unproved steps that a report lists.
pub(crate) const OPEN_SHOWN: usize = 50;

/// Where `check` looks for the certificate of its second model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Beside the model, if there is one.
    #[default]
    Beside,
    /// This file.
    File(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// What a certificate says about two models.
#[derive(Clone, Debug, Serialize)]
pub struct Certified {
    /// Its file.
    pub file: String,
    /// What it shows.
    pub word: Ground,
    /// What the proofs of its steps assume, one clause each.
    pub assumptions: Vec<String>,
    /// The same in one line, with what stands behind it.
    pub summary: String,
    /// Rewrites in it.
    pub steps: usize,
    /// Rewrites that are proved.
    pub proved: usize,
    /// Rewrites that are proved if constants are the simple numbers they were rounded from.
    pub bounded: usize,
    /// Rewrites that are not proved but held on random elements of a prime field.
    pub tested: usize,
    /// Constants that were computed ahead of time and parameters that were rounded.
    pub rounded: usize,
    /// Bound on their error, relative to the largest magnitude of each.
    pub bound: f64,
    /// The first rewrites that are not proved.
    pub open: Vec<Open>,
    /// Seconds spent replaying.
    pub seconds: f64,
    /// The sizes that it is about, if not all that the input accepts.
    #[serde(skip)]
    pub fixed: FixedSizes,
    /// True if the certificate belongs to another input.
    #[serde(skip)]
    pub other_input: bool,
}

/// A rewrite that is not proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// Which graph, in words; empty for the model's own.
    pub graph: String,
    /// Its number in that graph, from 1.
    pub number: usize,
    /// Rule.
    pub rule: String,
    /// What it replaced.
    pub at: String,
    /// How far it is trusted nevertheless.
    #[serde(rename = "word", with = "crate::words")]
    pub trust: Trust,
    /// The evidence for that, or why there is no more.
    pub why: String,
}

/// Where a model's certificate lies by default: `fast.certificate` beside `fast.onnx`.
pub fn beside(model: &Path) -> PathBuf {
    model.with_extension("certificate")
}

/// Removes a certificate left where a new model is about to be written: it would not belong to that
/// model. Files that are not certificates stay.
pub fn discard(path: &Path) -> Result<(), Failure> {
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    if !is_certificate(&bytes) {
        return Ok(());
    }
    std::fs::remove_file(path)
        .map_err(|e| Failure::new(format!("cannot remove the certificate of an earlier run, {}: {e}", path.display())).hint("remove it"))
}

/// Replays the certificate at `source` on these models; `None` if there is none. A required
/// certificate that is missing is a failure.
pub fn replay(source: &Source, a: &Path, b: &Path) -> Result<Option<Certified>, Failure> {
    let start = Instant::now();
    let file = match source {
        Source::Nowhere => return Ok(None),
        Source::File(file) => file.clone(),
        Source::Beside => beside(b),
    };
    if *source == Source::Beside && !file.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&file)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())).hint("`regraft optimize` writes certificates"))?;
    let finding = match Certificate::parse(&bytes)? {
        Ok(certificate) => certificate.verify(a, b)?,
        Err(broken) => Finding::Tampered(format!("the certificate {} is not as it was written: {broken}", file.display())),
    };
    let mut assumptions = match &finding {
        Finding::Replayed(replay) if replay.steps > 0 => clauses(replay.premises(), &Model::read(a)?),
        _ => Vec::new(),
    };
    if let Finding::Replayed(replay) = &finding {
        assumptions.extend(rounding(replay.rounding.constants, replay.rounding.bound));
    }
    let mut certified = Certified { assumptions, ..Certified::new(&file, &finding, start) }.summarized();
    certified.assumptions.extend(limited(&certified.fixed));
    Ok(Some(certified))
}

impl Certified {
    /// With the assumptions in the summary.
    fn summarized(mut self) -> Certified {
        if self.word == Ground::Known(Trust::Proved) && !self.assumptions.is_empty() {
            let word = Trust::Proved.word();
            self.summary = self.summary.replacen(word, &format!("{word} {}", self.assumptions.join(", ")), 1);
        }
        self
    }

    fn new(file: &Path, finding: &Finding, start: Instant) -> Certified {
        let none = Certified {
            file: file.display().to_string(),
            word: Ground::Tampered,
            assumptions: Vec::new(),
            summary: String::new(),
            steps: 0,
            proved: 0,
            bounded: 0,
            tested: 0,
            rounded: 0,
            bound: 0.0,
            open: Vec::new(),
            seconds: start.elapsed().as_secs_f64(),
            fixed: FixedSizes::default(),
            other_input: matches!(finding, Finding::OtherInput(_)),
        };
        match finding {
            Finding::Tampered(why) => Certified { summary: why.clone(), ..none },
            Finding::OtherInput(why) => Certified { word: Ground::Known(Trust::Unproved), summary: why.clone(), ..none },
            Finding::Replayed(replay) => Certified {
                word: Ground::Known(replay.trust()),
                summary: summary(replay),
                steps: replay.steps,
                proved: replay.count(Trust::Proved),
                bounded: replay.count(Trust::Bounded) - replay.count(Trust::Proved),
                tested: replay.count(Trust::Tested) - replay.count(Trust::Bounded),
                rounded: replay.rounding.constants,
                bound: replay.rounding.bound,
                open: open(replay),
                fixed: replay.fixed.clone(),
                ..none
            },
        }
    }
}

/// What is known about the whole, in one line.
fn summary(replay: &Replay) -> String {
    let [proved, shown, tested] = [Trust::Proved, Trust::Bounded, Trust::Tested].map(|trust| replay.count(trust));
    let mut parts = vec![replay.trust().to_string()];
    parts.extend(limited(&replay.fixed));
    parts.push(format!("proved {proved} of {} steps", replay.steps));
    if shown > proved {
        parts.push(format!("bounded {}, whose constants are rounded", shown - proved));
    }
    if tested > shown {
        parts.push(format!("tested {}", tested - shown));
    }
    match (&replay.arrival, replay.judged.iter().find(|j| j.trust == Trust::Unproved)) {
        (Err(why), _) => parts.push(why.clone()),
        (Ok(()), Some(first)) => {
            let place = if first.graph.is_empty() { String::new() } else { format!(" in {}", first.graph) };
            parts.push(format!("unproved step {} ({} at {}{place})", first.number, first.rule, first.at));
        }
        (Ok(()), None) => {}
    }
    parts.join(" · ")
}

impl From<&Judged> for Open {
    fn from(judged: &Judged) -> Open {
        Open {
            graph: judged.graph.clone(),
            number: judged.number,
            rule: judged.rule.clone(),
            at: judged.at.clone(),
            trust: judged.trust,
            why: judged.why.clone(),
        }
    }
}

fn open(replay: &Replay) -> Vec<Open> {
    replay.open().take(OPEN_SHOWN).map(Open::from).collect()
}
