//! Predicts what runs take on another machine, from prices that were recorded there. No whole model
//! is timed: what is profiled here tells only what operators cost, to carry over what was not
//! recorded.

use std::time::{Duration, Instant};

use regraft_ir::Graph;

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timed, Timings};
use crate::optimize::evaluate::measuring::{Measuring, check_whole};
use crate::optimize::evaluate::{Evaluator, Prices};
use crate::optimize::load::Job;
use crate::optimize::standing::MARGIN;
use crate::optimize::time_budget::Runs;
use crate::report::{Check, Speedup};

/// An evaluator that predicts.
pub struct Predicting<'a> {
    job: &'a Job,
    measuring: Measuring<'a>,
}

impl<'a> Predicting<'a> {
    /// With these prices, which were recorded elsewhere.
    pub fn new(job: &'a Job, prices: Prices) -> Predicting<'a> {
        Predicting { job, measuring: Measuring::new(job, prices) }
    }

    /// The input's times and a graph's, at every binding.
    fn times(&self, graph: &Graph) -> Vec<(f64, Timed)> {
        let predictions = self.prices().predictions(&self.job.input.graph, graph);
        let timed = predictions.into_iter().map(|prediction| {
            let (median, low, high) = prediction.ratio();
            (prediction.before, Timed { median_ns: prediction.after, speedup: Speedup { median, low, high, pairs: 0 } })
        });
        timed.collect()
    }
}

impl Evaluator for Predicting<'_> {
    fn prices(&self) -> &Prices {
        self.measuring.prices()
    }

    fn prices_mut(&mut self) -> &mut Prices {
        self.measuring.prices_mut()
    }

    fn into_prices(self: Box<Self>) -> Prices {
        Box::new(self.measuring).into_prices()
    }

    fn is_timed(&self) -> bool {
        !self.job.request.frozen
    }

    fn learns(&self) -> bool {
        !self.job.request.frozen
    }

    fn profile_input(&mut self, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        self.measuring.profile_input(go_on)
    }

    fn profile_first(&mut self, candidate: &Candidate, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        self.measuring.profile_first(candidate, go_on)
    }

    /// What it took here does not matter: its time is what is predicted.
    fn profile(&mut self, candidate: &mut Candidate, go_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
        if self.job.request.frozen || !self.measuring.profile(candidate, go_on)? {
            return Ok(false);
        }
        let speedups: Vec<Timed> = self.times(&candidate.graph).into_iter().map(|(_, timed)| timed).collect();
        candidate.profiled = Some(1.0 / Timed::mean(&speedups).speedup.median);
        Ok(true)
    }

    fn time(&mut self, candidates: &mut [Candidate], _: Instant, _: Duration, _: &dyn Fn() -> bool) -> Result<Timings, Failure> {
        for candidate in candidates {
            let deciding = self.times(&candidate.graph).into_iter().map(|(_, timed)| timed).collect();
            candidate.timings = Timings { deciding, single: Vec::new() };
        }
        let input = self.times(&self.job.input.graph);
        let deciding = input.into_iter().map(|(median_ns, _)| Timed { median_ns, speedup: Speedup::NONE }).collect();
        Ok(Timings { deciding, single: Vec::new() })
    }

    /// The predicted gain must exceed its uncertainty. Bodies are not priced by the graph around
    /// them.
    fn wins(&self, candidate: &Candidate) -> bool {
        candidate.script.bodies.is_empty() && !candidate.script.is_empty() && candidate.timed().speedup.low > 1.0 + MARGIN
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        check_whole(self.job, candidate, deadline)
    }
}
