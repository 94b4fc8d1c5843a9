//! Third stage: the input and the candidates are timed end to end, and the candidates that beat the
//! input are ranked.

use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timed};
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::script::Script;
use crate::optimize::standing::is_slower;
use crate::report::{NotDone, Speedup};

/// Maximum number of candidates compared end to end, besides the input and its normal form.
pub const FINALISTS: usize = 3;

/// The input and the candidates, timed.
pub struct Comparison {
    /// Times of the input at each binding.
    pub input: Vec<Timed>,
    /// Candidates, with their times.
    pub candidates: Vec<Candidate>,
    /// Indices of those that beat the input, best first.
    pub ranking: Vec<usize>,
}

impl Comparison {
    /// Whether a rewritten model beats the input.
    pub fn has_winner(&self) -> bool {
        self.ranking.iter().any(|at| !self.candidates[*at].script.is_empty())
    }
}

/// Times all candidates, and the input's normal form if that is affordable, against the input.
pub fn compare(run: &mut Run<'_>, mut candidates: Vec<Candidate>) -> Result<Comparison, Failure> {
    candidates.extend(cleaned(run, candidates.is_empty())?);
    let start = Instant::now();
    run.phase(Phase::Choose, &format!("{} candidates", candidates.len()));
    let input = time_accepted(run, &mut candidates)?;
    let mut ranking: Vec<usize> = (0..candidates.len()).filter(|at| beats_input(run, &candidates[*at])).collect();
    // By what is sure: of several, the highest median is that of a lucky one.
    ranking.sort_by(|a, b| {
        let [a, b] = [*a, *b].map(|at| &candidates[at]);
        let lows = [a, b].map(|candidate| candidate.timed().speedup.low);
        lows[1].total_cmp(&lows[0]).then(a.predicted.cmp(&b.predicted))
    });
    run.journal.seconds.choose += start.elapsed().as_secs_f64();
    Ok(Comparison { input, candidates, ranking })
}

/// The input in normal form. Every candidate starts from it: if comparing is expensive, it takes
/// part only if there is nothing better.
fn cleaned(run: &mut Run<'_>, alone: bool) -> Result<Option<Candidate>, Failure> {
    let input = &run.job.input;
    let timed = run.evaluator.is_timed();
    let affordable = !timed || if alone { run.clock.affords_comparison() } else { run.clock.finalists() == FINALISTS };
    // The input written anew was tried first of all, if the runtime refuses it as it is.
    let pointless = input.cleaned.is_empty() || !affordable || run.job.refusal.is_some();
    if !input.is_converted() && pointless {
        return Ok(None);
    }
    let artifact = run.evaluator.artifact(run.job.write(&input.graph)?)?;
    let (graph, predicted) = (input.graph.clone(), run.evaluator.prices().total(&input.graph));
    let (timings, compared, script) = (Vec::new(), Duration::ZERO, Script::default());
    Ok(Some(Candidate { name: "cleaned".into(), graph, script, artifact, predicted, profiled: None, timings, compared, check: None }))
}

/// Times candidates against the input at every binding; returns the input's times. Candidates that
/// the runtime does not run are dropped, with a note.
pub fn time_accepted(run: &mut Run<'_>, candidates: &mut Vec<Candidate>) -> Result<Vec<Timed>, Failure> {
    let failure = match time(run, candidates) {
        Ok(input) => return Ok(input),
        Err(failure) => failure,
    };
    let before = candidates.len();
    candidates.retain(|candidate| runs(run, candidate));
    candidates.iter_mut().for_each(|candidate| candidate.timings.clear());
    if candidates.len() == before { Err(failure) } else { time(run, candidates) }
}

/// Whether the runtime loads and runs a candidate as deployed. If not, notes why.
fn runs(run: &mut Run<'_>, candidate: &Candidate) -> bool {
    let Some(Err(why)) = candidate.artifact.source().map(|source| run.job.run_once(source)) else { return true };
    let (what, because) = (candidate.name.clone(), Failure::from(why).cause);
    run.journal.not_done.push(NotDone { what, at: "loading".into(), because });
    false
}

/// Times candidates against the input at every binding; returns the input's times.
fn time(run: &mut Run<'_>, candidates: &mut [Candidate]) -> Result<Vec<Timed>, Failure> {
    if candidates.is_empty() {
        return Ok(vec![Timed::NEVER; run.job.bindings.len()]);
    }
    let until = if run.recalled { run.clock.confirming_ends() } else { run.clock.comparing_ends() };
    let observer = &*run.observer;
    run.evaluator.time(candidates, until, &|| observer.interrupted())
}

/// Whether a candidate is better than the input overall, and slower at no binding, beyond noise.
/// Notes where it is slower. Whatever runs is better than an input that the runtime refuses.
pub fn beats_input(run: &mut Run<'_>, candidate: &Candidate) -> bool {
    // To load at all is a gain, however large.
    if run.job.refusal.is_some() {
        return runs(run, candidate);
    }
    if !run.evaluator.wins(candidate) {
        return false;
    }
    let bindings = if run.job.bindings.len() > 1 { run.job.bindings.as_slice() } else { &[] };
    let slower = bindings.iter().zip(&candidate.timings).find(|(_, timed)| is_slower(&timed.speedup));
    if let Some((binding, timed)) = slower {
        let Speedup { median, low, high, .. } = timed.speedup;
        let because = format!("it runs {median:.3} times as fast as the input there [{low:.3}, {high:.3}]");
        run.journal.not_done.push(NotDone { what: candidate.name.clone(), at: binding.label.clone(), because });
    }
    slower.is_none()
}
