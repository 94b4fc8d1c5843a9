//! Measures: candidates are profiled beside the input, and timed end to end.

use std::time::Instant;

use crate::error::Failure;
use crate::optimize::arena::{Arena, Pace};
use crate::optimize::binding::Binding;
use crate::optimize::candidate::{Candidate, Timed};
use crate::optimize::contest::{Contest, Outcome};
use crate::optimize::evaluate::prices::{Prices, Profiler};
use crate::optimize::evaluate::{Evaluator, check_each, ratio_key};
use crate::optimize::load::Job;
use crate::optimize::standing::{MARGIN, Standing, Wanted, is_slower};
use crate::optimize::time_budget::Runs;
use crate::optimize::verify::{Subject, verify};
use crate::report::{Check, Speedup};

/// An evaluator that measures.
pub struct Measuring<'a> {
    job: &'a Job,
    prices: Prices,
}

impl<'a> Measuring<'a> {
    /// With the prices known so far.
    pub fn new(job: &'a Job, prices: Prices) -> Measuring<'a> {
        Measuring { job, prices }
    }

    fn profiler(&self) -> Profiler<'a> {
        let request = &self.job.request;
        let feeds = self.job.bindings.iter().map(|binding| &binding.feeds).collect();
        Profiler { runtime: &*self.job.runtime, feeds, threads: request.threads, budget: request.budget }
    }
}

impl Evaluator for Measuring<'_> {
    fn prices(&self) -> &Prices {
        &self.prices
    }

    fn prices_mut(&mut self) -> &mut Prices {
        &mut self.prices
    }

    fn learns(&self) -> bool {
        self.prices.is_measured()
    }

    fn profile_input(&mut self, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        let graph = &self.job.input.graph;
        let artifact = self.artifact(self.job.write(graph)?)?;
        self.prices.observe_input(&self.profiler(), graph, &artifact, go_on)
    }

    fn profile_first(&mut self, candidate: &Candidate, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        self.prices.observe_input(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)
    }

    fn profile(&mut self, candidate: &mut Candidate, go_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
        // Known prices do not replace a measurement: they may be wrong, and their sum more so.
        if !self.prices.has_input() {
            return Ok(false);
        }
        let ratio = self.prices.observe(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)?;
        candidate.profiled = Some(ratio);
        candidate.predicted = self.prices.total(&candidate.graph);
        Ok(true)
    }

    fn time(&mut self, candidates: &mut [Candidate], until: Instant, stop: &dyn Fn() -> bool) -> Result<Vec<Timed>, Failure> {
        let Job { request, bindings, runtime, .. } = self.job;
        let models: Vec<_> = std::iter::once(self.job.source()).chain(candidates.iter().filter_map(|c| c.artifact.source())).collect();
        let arenas = bindings.iter().map(|Binding { feeds, .. }| Arena {
            runtime: &**runtime,
            models: models.clone(),
            feeds,
            threads: request.threads,
            seed: request.seed,
        });
        let contest = Contest {
            arenas: arenas.collect(),
            wanted: candidates.iter().map(Candidate::wanted).collect(),
            until,
            pace: Pace { now: &Instant::now, stop },
        };
        let (input, outcomes) = contest.decide()?;
        drop((contest, models));
        for (candidate, Outcome { timings, took }) in candidates.iter_mut().zip(outcomes) {
            (candidate.timings, candidate.compared) = (timings, took);
            for (binding, timed) in bindings.iter().zip(&candidate.timings) {
                let key = ratio_key(self.job, candidate, binding);
                if self.prices.recall_ratio(&key).is_none_or(|known| replaces(candidate, &timed.speedup, &known)) {
                    self.prices.remember_ratio(&key, timed.speedup)?;
                }
            }
        }
        Ok(input)
    }

    /// A rewritten model must be faster beyond noise; the cleaned input need only not be slower.
    fn wins(&self, candidate: &Candidate) -> bool {
        let speedup = candidate.timed().speedup;
        match candidate.wanted() {
            Wanted::Faster => speedup.pairs > 0 && speedup.low > 1.0 + MARGIN,
            Wanted::NotSlower => speedup.pairs > 0 && !is_slower(&speedup),
        }
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        check_whole(self.job, candidate, deadline)
    }
}

/// Whether a new comparison of a candidate replaces that of an earlier run: if it is decided, and is
/// not the same with less evidence.
fn replaces(candidate: &Candidate, new: &Speedup, known: &Speedup) -> bool {
    let standing = candidate.standing();
    let same = Standing::of(candidate.wanted(), std::slice::from_ref(known)) == standing;
    standing != Standing::Open && !(same && known.pairs > new.pairs)
}

/// The numeric check of a candidate that can be run as a whole.
pub fn check_whole(job: &Job, candidate: &Candidate, deadline: Instant) -> Check {
    let Some(rewritten) = candidate.artifact.source() else { return Check::default() };
    check_each(job, |binding| verify(&Subject { job, candidate, rewritten, binding, deadline }))
}
