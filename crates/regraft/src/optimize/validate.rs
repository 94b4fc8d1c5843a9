//! Fourth stage: the best candidate whose outputs match the input's and whose certificate holds.

use std::path::Path;
use std::time::Instant;

use crate::error::Failure;
use crate::optimize::bisect::bisect;
use crate::optimize::candidate::Candidate;
use crate::optimize::certify::Certifier;
use crate::optimize::compare::{Comparison, beats_input, is_confirmed, time_accepted};
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::report::Check;

/// What helps where the runtime refuses a converted model.
const KEPT: &str = "leave --freeze and --opset out to keep its sizes and version";

/// What is written: a candidate, or the input.
pub struct Decision {
    /// All models compared.
    pub comparison: Comparison,
    /// Index of the candidate to write; `None` stands for the input.
    pub winner: Option<usize>,
}

impl Decision {
    /// The candidate to write.
    pub fn winner(&self) -> Option<&Candidate> {
        self.winner.map(|at| &self.comparison.candidates[at])
    }
}

/// Checks candidates in order, up to the first that passes. If the best one fails, it is retried
/// without the rule to blame.
pub fn validate(run: &mut Run<'_>, comparison: Comparison) -> Result<Decision, Failure> {
    let start = Instant::now();
    let certifier = Certifier::new(run.job)?;
    let mut decision = Decision { comparison, winner: None };
    for (turn, at) in decision.comparison.ranking.clone().into_iter().enumerate() {
        let candidate = &mut decision.comparison.candidates[at];
        if !is_confirmed(run, candidate)? {
            continue;
        }
        run.phase(Phase::Check, &candidate.name);
        if examine(run, &certifier, candidate) {
            decision.winner = Some(at);
            break;
        }
        let (fate, why) = (candidate.fate().unwrap_or_default(), notes(candidate));
        run.journal.warnings.push(format!("{} {fate} and was dropped: {why}", candidate.name));
        if candidate.check.as_ref().is_some_and(|check| check.incomplete) {
            continue;
        }
        keep_for_report(candidate)?;
        // Rewrites inside bodies cannot be taken apart.
        if turn > 0 || candidate.script.main.is_empty() || !candidate.script.bodies.is_empty() {
            continue;
        }
        let mended = bisect(run, &certifier, candidate)?;
        let mut mended: Vec<Candidate> = mended.into_iter().collect();
        time_accepted(run, &mut mended)?;
        let Some(mut mended) = mended.pop() else { continue };
        let wins = beats_input(run, &mended) && is_confirmed(run, &mut mended)?;
        decision.comparison.candidates.push(mended);
        if wins {
            decision.winner = Some(decision.comparison.candidates.len() - 1);
            break;
        }
    }
    if run.job.input.is_converted() && decision.winner.is_none() {
        decision.winner = converted(run, &certifier, &mut decision.comparison.candidates)?;
    }
    run.journal.seconds.check = start.elapsed().as_secs_f64();
    Ok(decision)
}

/// An explicit request is honored even if the result is slower: the input has other sizes or
/// another opset.
fn converted(run: &mut Run<'_>, certifier: &Certifier<'_>, candidates: &mut [Candidate]) -> Result<Option<usize>, Failure> {
    let Some(at) = candidates.iter().position(|candidate| candidate.script.is_empty()) else {
        return Err(Failure::new("the runtime does not run the model as it was to be written").hint(KEPT));
    };
    run.phase(Phase::Check, &candidates[at].name);
    if examine(run, certifier, &mut candidates[at]) {
        return Ok(Some(at));
    }
    let cause = format!("the model as it was to be written computes something else: {}", notes(&candidates[at]));
    Err(Failure::new(cause).hint(KEPT))
}

/// Checks a candidate and its certificate, and stores the check with it; returns whether it passed.
pub fn examine(run: &mut Run<'_>, certifier: &Certifier<'_>, candidate: &mut Candidate) -> bool {
    let check = certifier.examine(candidate, || run.evaluator.check(candidate, run.clock.deadline()));
    let passed = check.passed;
    candidate.check = Some(check);
    passed
}

/// What the candidate's check remarked.
fn notes(candidate: &Candidate) -> String {
    candidate.check.as_ref().map_or_else(String::new, |check: &Check| check.notes.join("; "))
}

/// A candidate that fails its check reveals a bug. If `REGRAFT_KEEP_FAILED` names a folder, it and
/// its rewrites are kept there for a bug report.
fn keep_for_report(candidate: &Candidate) -> Result<(), Failure> {
    let Some(folder) = std::env::var_os("REGRAFT_KEEP_FAILED") else { return Ok(()) };
    let path = Path::new(&folder).join(format!("{}.onnx", candidate.name.replace(' ', "-")));
    candidate.artifact.written.save(&path, false)?;
    let rewrites: Vec<String> = candidate.script.applied().map(|a| format!("{} at {}\n", a.rule, a.at)).collect();
    crate::file::write_atomic(&path.with_extension("txt"), rewrites.concat().as_bytes())
}
