//! Measures: candidates are profiled beside the input, and timed end to end.

use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timed};
use crate::optimize::end_to_end::{Effort, MARGIN, time_end_to_end};
use crate::optimize::evaluate::prices::{Prices, Profiler};
use crate::optimize::evaluate::{Evaluator, check_each, ratio_key};
use crate::optimize::load::Job;
use crate::optimize::verify::{Subject, verify};
use crate::report::{Check, Speedup};

/// Sittings, and the minimum and maximum rounds of each.
const SITTINGS: usize = 3;
const ROUNDS: (usize, usize) = (4, 24);

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
        Profiler { runtime: &*self.job.runtime, feeds: &self.job.bindings[0].feeds, threads: request.threads, budget: request.budget }
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

    fn profile_input(&mut self, go_on: &dyn Fn() -> bool) -> Result<Duration, Failure> {
        let graph = &self.job.input.graph;
        let artifact = self.artifact(self.job.write(graph)?)?;
        self.prices.observe_input(&self.profiler(), graph, &artifact, go_on)?;
        Ok(self.prices.input_run())
    }

    fn profile_first(&mut self, candidate: &Candidate, go_on: &dyn Fn() -> bool) -> Result<Duration, Failure> {
        self.prices.observe_input(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)?;
        Ok(self.prices.input_run())
    }

    fn profile(&mut self, candidate: &mut Candidate, go_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
        if !self.prices.has_input() || self.prices.knows(&candidate.graph) {
            return Ok(false);
        }
        let ratio = self.prices.observe(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)?;
        candidate.profiled = Some(ratio);
        candidate.predicted = self.prices.total(&candidate.graph);
        Ok(true)
    }

    fn time(&mut self, candidates: &mut [Candidate], until: Instant, stop: &dyn Fn() -> bool) -> Result<Vec<Timed>, Failure> {
        let job = self.job;
        let mut input = Vec::new();
        for (at, binding) in job.bindings.iter().enumerate() {
            // Each binding gets an equal share of the remaining time.
            let now = Instant::now();
            let until = now + until.saturating_duration_since(now) / (job.bindings.len() - at) as u32;
            let effort = Effort { sittings: SITTINGS, rounds: ROUNDS, until };
            let models: Vec<_> = std::iter::once(job.source()).chain(candidates.iter().filter_map(|c| c.artifact.source())).collect();
            let times = time_end_to_end(&*job.runtime, &models, &binding.feeds, job.request.threads, effort, job.request.seed, stop)?;
            drop(models);
            let timed = |at: usize| Timed { median_ns: times.medians[at], speedup: times.ratios[at].map_or(Speedup::NONE, Speedup::from) };
            input.push(Timed { median_ns: timed(0).median_ns, speedup: Speedup { pairs: timed(0).speedup.pairs, ..Speedup::NONE } });
            for (at, candidate) in candidates.iter_mut().enumerate() {
                let timed = timed(at + 1);
                self.prices.remember_ratio(&ratio_key(job, candidate, binding), timed.speedup)?;
                candidate.timings.push(timed);
            }
        }
        Ok(input)
    }

    /// A rewritten model must be faster beyond noise; the cleaned input need only not be slower.
    fn wins(&self, candidate: &Candidate) -> bool {
        let speedup = candidate.timed().speedup;
        if candidate.script.is_empty() {
            return speedup.pairs > 0 && speedup.median >= 1.0 && speedup.high >= 1.0;
        }
        speedup.pairs > 0 && speedup.low > 1.0 + MARGIN
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        check_whole(self.job, candidate, deadline)
    }
}

/// The numeric check of a candidate that can be run as a whole.
pub fn check_whole(job: &Job, candidate: &Candidate, deadline: Instant) -> Check {
    let Some(rewritten) = candidate.artifact.source() else { return Check::default() };
    check_each(job, |binding| verify(&Subject { job, candidate, rewritten, binding, deadline }))
}
