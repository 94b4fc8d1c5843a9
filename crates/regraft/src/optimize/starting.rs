//! What a process takes that loads a model and runs it once, and whether that is within the limits.

use std::time::Instant;

use regraft_runtime::Startup;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::compare::Comparison;
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::surcharge::growth;
use crate::report::{NotDone, Startups};
use crate::units::show_bytes;

/// Maximum number of rules named that make a model grow.
const RULES_NAMED: usize = 3;

/// Measures the input and the best candidate, if there is time for that and for checking: if the
/// check takes longer than expected, it may leave none.
pub fn start_leader(run: &mut Run<'_>, comparison: &mut Comparison) {
    if run.evaluator.is_timed() && !run.clock.affords_starting_and_checking() {
        return;
    }
    let leader = comparison.ranking.first().map(|at| &mut comparison.candidates[*at]);
    if let Some(leader) = leader.filter(|leader| leader.startup.is_none()) {
        leader.startup = startups(run, Some(leader)).map(|startups| startups.output);
    }
}

/// The input and what is written, each in a process of its own; `None`, where that is not possible,
/// or no time is left for it.
pub fn startups(run: &mut Run<'_>, winner: Option<&Candidate>) -> Option<Startups> {
    let start = Instant::now();
    let is_late = || run.evaluator.is_timed() && run.job.request.limits.is_empty() && !run.clock.affords_starting();
    let known = run.startup.get().is_some() && winner.is_none_or(|winner| winner.startup.is_some());
    if !known && (run.is_interrupted() || is_late()) {
        return None;
    }
    let input = of_input(run)?;
    let output = match winner {
        None => Some(input),
        Some(winner) => winner.startup.or_else(|| {
            let measured = run.evaluator.start_up(Some(winner));
            measured.unwrap_or_else(|why| warn(run, &why))
        }),
    };
    run.journal.seconds.measure += start.elapsed().as_secs_f64();
    Some(Startups { input, output: output? })
}

/// That a process could not be started, or failed.
fn warn(run: &mut Run<'_>, why: &Failure) -> Option<Startup> {
    let warning = format!("what it takes to start a process was not measured: {}", why.cause);
    if !run.is_interrupted() && !run.journal.warnings.contains(&warning) {
        run.journal.warnings.push(warning);
    }
    None
}

/// Drops candidates that exceed the limits, with a note.
pub fn retain_admitted(run: &mut Run<'_>, candidates: &mut Vec<Candidate>) {
    candidates.retain_mut(|candidate| admits(run, candidate));
}

/// Whether a process that loads the candidate stays within the limits. If not, or if that is not
/// known, notes why.
pub fn admits(run: &mut Run<'_>, candidate: &mut Candidate) -> bool {
    let Some(why) = exceeded(run, candidate) else { return true };
    let because = format!("{why}{}", grown(run, candidate));
    run.journal.not_done.push(NotDone { what: candidate.name.clone(), at: "starting".into(), because });
    false
}

/// The same without a note.
pub fn is_within(run: &mut Run<'_>, candidate: &mut Candidate) -> bool {
    exceeded(run, candidate).is_none()
}

/// Why a candidate exceeds the limits, if it does.
fn exceeded(run: &mut Run<'_>, candidate: &mut Candidate) -> Option<String> {
    let limits = run.job.request.limits;
    // The input as it was asked for is written whatever it takes.
    if limits.is_empty() || run.job.input.is_converted() && candidate.script.is_empty() {
        return None;
    }
    let input = of_input(run);
    if candidate.startup.is_none() {
        run.phase(Phase::Measure, &format!("{}: what it takes to start a process", candidate.name));
        match run.evaluator.start_up(Some(candidate)) {
            Ok(startup) => candidate.startup = startup,
            Err(why) => return Some(why.cause),
        }
    }
    limits.exceeded(input.as_ref(), candidate.startup.as_ref())
}

/// What a process takes that loads the input, if that is known; measured once.
pub fn of_input(run: &mut Run<'_>) -> Option<Startup> {
    if run.startup.get().is_none() {
        run.phase(Phase::Measure, "the input: what it takes to start a process");
        let measured = run.evaluator.start_up(None).unwrap_or_else(|why| warn(run, &why));
        let _ = run.startup.set(measured);
    }
    run.startup.get().copied().flatten()
}

/// Rules that made the weights grow.
fn grown(run: &Run<'_>, candidate: &Candidate) -> String {
    let (job, prices) = (run.job, run.evaluator.prices());
    let rules = growth(&job.input.graph, &candidate.script, &job.sizes().symbols, prices.model());
    let named: Vec<String> = rules.iter().take(RULES_NAMED).map(|(rule, more)| format!("{} by {rule}", show_bytes(*more as u64))).collect();
    if named.is_empty() { String::new() } else { format!("; weights grow by {}", named.join(", ")) }
}
