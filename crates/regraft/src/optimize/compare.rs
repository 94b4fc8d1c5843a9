//! Third stage: the input and the candidates are timed end to end, and the candidates that beat the
//! input are ranked.

use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timings};
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::script::Script;
use crate::optimize::standing::{Wanted, is_slower, is_slower_alone};
use crate::optimize::starting::retain_admitted;
use crate::report::{NotDone, Speedup};

/// Maximum number of candidates compared end to end, besides the input and its normal form.
pub const FINALISTS: usize = 3;

/// The input and the candidates, timed.
pub struct Comparison {
    /// Times of the input.
    pub input: Timings,
    /// Candidates, with their times.
    pub candidates: Vec<Candidate>,
    /// Indices of those that beat the input, best first.
    pub ranking: Vec<usize>,
}

impl Comparison {
    /// Whether a rewritten model beats the input.
    pub fn has_winner(&self) -> bool {
        let mut ranked = self.ranking.iter().map(|at| &self.candidates[*at]);
        ranked.any(|candidate| !candidate.script.is_empty() && !candidate.is_untimed_alone())
    }
}

/// Times candidates, and the input's normal form if that is affordable, against the input; those
/// that were timed before are not timed again.
pub fn compare(run: &mut Run<'_>, candidates: Vec<Candidate>, before: Option<Timings>) -> Result<Comparison, Failure> {
    let (mut candidates, mut new): (Vec<_>, Vec<_>) = candidates.into_iter().partition(Candidate::is_compared);
    if before.is_none() {
        new.extend(cleaned(run, new.is_empty())?);
    }
    let start = Instant::now();
    run.phase(Phase::Choose, &format!("{} candidates", new.len()));
    let input = match before.filter(|_| new.is_empty()) {
        Some(input) => input,
        None => time_accepted(run, &mut new)?,
    };
    candidates.extend(new);
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
    let clock = &run.clock;
    let usual = if alone { clock.affords_comparison() } else { clock.finalists() == FINALISTS };
    // What trials ran beside was without subnormal weights: it may be faster than all of them.
    let affordable = !timed || usual || input.has_subnormal() && clock.affords_comparison();
    // The input written anew was tried first of all, if the runtime refuses it as it is.
    let pointless = input.cleaned.is_empty() || !affordable || run.job.refusal.is_some();
    if !input.is_converted() && pointless {
        return Ok(None);
    }
    let artifact = run.evaluator.artifact(run.job.write(&input.graph)?)?;
    let (graph, predicted) = (input.graph.clone(), run.evaluator.prices().total(&input.graph));
    let profiled = input.has_subnormal().then_some(1.0);
    let is_wanted = input.is_converted() || input.has_superfluous();
    let wanted = if is_wanted { Wanted::NotSlower } else { Wanted::Faster };
    let (timings, compared, script) = (Timings::default(), Duration::ZERO, Script::default());
    let name = "cleaned".into();
    Ok(Some(Candidate { name, graph, script, wanted, artifact, predicted, profiled, timings, compared, startup: None, check: None }))
}

/// Times candidates against the input at every setting; returns the input's times. Candidates that
/// the runtime does not run, or that exceed the limits, are dropped, with a note.
pub fn time_accepted(run: &mut Run<'_>, candidates: &mut Vec<Candidate>) -> Result<Timings, Failure> {
    retain_admitted(run, candidates);
    let until = if run.recalled { run.clock.confirming_ends() } else { run.clock.comparing_ends() };
    let failure = match time(run, candidates, until) {
        Ok(input) => return Ok(input),
        Err(failure) => failure,
    };
    let before = candidates.len();
    candidates.retain(|candidate| runs(run, candidate));
    candidates.iter_mut().for_each(|candidate| candidate.timings = Timings::default());
    if candidates.len() == before { Err(failure) } else { time(run, candidates, until) }
}

/// Whether the runtime loads and runs a candidate as deployed. If not, notes why.
fn runs(run: &mut Run<'_>, candidate: &Candidate) -> bool {
    let Some(Err(why)) = candidate.artifact.source().map(|source| run.job.run_once(source)) else { return true };
    let (what, because) = (candidate.name.clone(), Failure::from(why).cause);
    run.journal.not_done.push(NotDone { what, at: "loading".into(), because });
    false
}

/// Times candidates against the input at every setting; returns the input's times.
fn time(run: &mut Run<'_>, candidates: &mut [Candidate], until: Instant) -> Result<Timings, Failure> {
    if candidates.is_empty() {
        return Ok(Timings::never(run.job.bindings.len(), run.job.threads));
    }
    let observer = &*run.observer;
    run.evaluator.time(candidates, until, run.clock.shortest_sitting(), &|| observer.interrupted())
}

/// Whether a candidate is better than the input overall, and slower at no setting, beyond noise.
/// Notes where it is slower. Whatever runs is better than an input that the runtime refuses.
pub fn beats_input(run: &mut Run<'_>, candidate: &Candidate) -> bool {
    // To load at all is a gain, however large.
    if run.job.refusal.is_some() {
        return runs(run, candidate);
    }
    if !run.evaluator.wins(candidate) {
        return false;
    }
    let bindings = &run.job.bindings;
    let Timings { deciding, single } = &candidate.timings;
    let several = if bindings.len() > 1 { bindings.as_slice() } else { &[] };
    let several = several.iter().zip(deciding).map(|(binding, timed)| (binding.label.clone(), timed.speedup));
    let single = bindings.iter().zip(single).map(|(binding, timed)| (binding.label_at_one_thread(), timed.speedup));
    let slower = several.filter(|(_, speedup)| is_slower(speedup));
    let slower_alone = single.filter(|(_, speedup)| is_slower_alone(speedup));
    let Some((at, speedup)) = slower.chain(slower_alone).next() else { return true };
    let Speedup { median, low, high, .. } = speedup;
    let because = format!("it runs {median:.3} times as fast as the input there [{low:.3}, {high:.3}]");
    run.journal.not_done.push(NotDone { what: candidate.name.clone(), at, because });
    false
}

/// Whether a candidate that beats the input does so at one thread as well, where it is timed now if
/// it was not before: it was not its turn. Notes if there is no time.
pub fn is_confirmed(run: &mut Run<'_>, candidate: &mut Candidate) -> Result<bool, Failure> {
    if run.job.refusal.is_some() || !candidate.is_untimed_alone() {
        return Ok(true);
    }
    let until = run.clock.comparing_ends();
    if Instant::now() < until {
        time(run, std::slice::from_mut(candidate), until)?;
    }
    if !candidate.is_untimed_alone() {
        return Ok(beats_input(run, candidate));
    }
    let (what, at) = (candidate.name.clone(), run.job.bindings[0].label_at_one_thread());
    run.journal.not_done.push(NotDone { what, at, because: "it was not timed there, and may be slower".into() });
    Ok(false)
}
