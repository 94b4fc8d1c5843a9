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
    let input = time(run, &mut candidates)?;
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
    if !input.converted && (input.cleaned.is_empty() || !affordable) {
        return Ok(None);
    }
    let artifact = run.evaluator.artifact(run.job.write(&input.graph)?)?;
    let (graph, predicted) = (input.graph.clone(), run.evaluator.prices().total(&input.graph));
    let (timings, compared, script) = (Vec::new(), Duration::ZERO, Script::default());
    Ok(Some(Candidate { name: "cleaned".into(), graph, script, artifact, predicted, profiled: None, timings, compared, check: None }))
}

/// Times candidates against the input at every binding; returns the input's times.
pub fn time(run: &mut Run<'_>, candidates: &mut [Candidate]) -> Result<Vec<Timed>, Failure> {
    if candidates.is_empty() {
        return Ok(vec![Timed::NEVER; run.job.bindings.len()]);
    }
    let until = if run.recalled { run.clock.confirming_ends() } else { run.clock.comparing_ends() };
    let observer = &*run.observer;
    run.evaluator.time(candidates, until, &|| observer.interrupted())
}

/// Whether a candidate is better than the input overall, and slower at no binding, beyond noise.
/// Notes where it is slower.
pub fn beats_input(run: &mut Run<'_>, candidate: &Candidate) -> bool {
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
