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

/// Measures the input and the best candidate, if there is time: checking may leave none.
pub fn start_leader(run: &mut Run<'_>, comparison: &mut Comparison) {
    let leader = comparison.ranking.first().map(|at| &mut comparison.candidates[*at]);
    if let Some(leader) = leader.filter(|leader| leader.startup.is_none()) {
        leader.startup = startups(run, Some(leader)).map(|startups| startups.output);
    }
}

/// The input and what is written, each in a process of its own; `None`, where that is not possible,
/// or no time is left for it.
pub fn startups(run: &mut Run<'_>, winner: Option<&Candidate>) -> Option<Startups> {
    let known = winner.map_or(run.startup, |winner| winner.startup);
    if let (Some(input), Some(output)) = (run.startup, known) {
        return Some(Startups { input, output });
    }
    if run.is_interrupted() || run.evaluator.is_timed() && !run.clock.affords_starting() {
        return None;
    }
    let start = Instant::now();
    run.phase(Phase::Measure, "what it takes to start a process");
    let measured = of_input(run).and_then(|input| Ok((input, winner.map_or(Ok(input), |winner| run.evaluator.start_up(Some(winner)))?)));
    run.journal.seconds.measure += start.elapsed().as_secs_f64();
    match measured {
        Ok((input, output)) => input.zip(output).map(|(input, output)| Startups { input, output }),
        Err(why) => {
            let warning = format!("what it takes to start a process was not measured: {}", why.cause);
            if !run.journal.warnings.contains(&warning) {
                run.journal.warnings.push(warning);
            }
            None
        }
    }
}

/// Drops candidates that exceed the limits, with a note.
pub fn retain_admitted(run: &mut Run<'_>, candidates: &mut Vec<Candidate>) -> Result<(), Failure> {
    let mut admitted = Vec::with_capacity(candidates.len());
    for mut candidate in candidates.drain(..) {
        if admits(run, &mut candidate)? {
            admitted.push(candidate);
        }
    }
    *candidates = admitted;
    Ok(())
}

/// Whether a process that loads the candidate stays within the limits. If not, or if that is not
/// known, notes why.
pub fn admits(run: &mut Run<'_>, candidate: &mut Candidate) -> Result<bool, Failure> {
    let Some(why) = exceeded(run, candidate)? else { return Ok(true) };
    let because = format!("{why}{}", grown(run, candidate));
    run.journal.not_done.push(NotDone { what: candidate.name.clone(), at: "starting".into(), because });
    Ok(false)
}

/// The same without a note.
pub fn is_within(run: &mut Run<'_>, candidate: &mut Candidate) -> Result<bool, Failure> {
    exceeded(run, candidate).map(|why| why.is_none())
}

/// Why a candidate exceeds the limits, if it does.
fn exceeded(run: &mut Run<'_>, candidate: &mut Candidate) -> Result<Option<String>, Failure> {
    let limits = run.job.request.limits;
    // The input at the opset that was asked for is written whatever it takes.
    if limits.is_empty() || run.job.input.converted && candidate.script.is_empty() {
        return Ok(None);
    }
    let input = of_input(run)?;
    if candidate.startup.is_none() {
        run.phase(Phase::Measure, &format!("{}: what it takes to start a process", candidate.name));
        match run.evaluator.start_up(Some(candidate)) {
            Ok(startup) => candidate.startup = startup,
            Err(why) => return Ok(Some(why.cause)),
        }
    }
    Ok(limits.exceeded(input.as_ref(), candidate.startup.as_ref()))
}

/// What a process takes that loads the input; measured once.
pub fn of_input(run: &mut Run<'_>) -> Result<Option<Startup>, Failure> {
    if run.startup.is_none() {
        run.startup = run.evaluator.start_up(None)?;
    }
    Ok(run.startup)
}

/// Rules that made the weights grow.
fn grown(run: &Run<'_>, candidate: &Candidate) -> String {
    let (job, prices) = (run.job, run.evaluator.prices());
    let rules = growth(&job.input.graph, &candidate.script, &job.sizes().symbols, prices.model());
    let named: Vec<String> = rules.iter().take(RULES_NAMED).map(|(rule, more)| format!("{} by {rule}", show_bytes(*more as u64))).collect();
    if named.is_empty() { String::new() } else { format!("; weights grow by {}", named.join(", ")) }
}
