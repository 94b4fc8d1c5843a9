//! Uses only what a frozen store remembers: nothing is measured, and a run repeats exactly.

use std::time::{Duration, Instant};

use regraft_cost::Ceiling;
use regraft_runtime::Startup;

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timed, Timings};
use crate::optimize::evaluate::measuring::check_whole;
use crate::optimize::evaluate::{Evaluator, Prices, ratio_key, startup_key};
use crate::optimize::load::Job;
use crate::optimize::standing::MARGIN;
use crate::report::{Check, Speedup};

/// Share of a candidate's price that may rest on guesses, and the gain that the price list must
/// predict.
const GUESSED: f64 = 0.05;
const LISTED_MARGIN: f64 = 0.02;

/// An evaluator that only remembers.
pub struct Frozen<'a> {
    job: &'a Job,
    prices: Prices,
}

impl<'a> Frozen<'a> {
    /// With the prices in the store.
    pub fn new(job: &'a Job, prices: Prices) -> Frozen<'a> {
        Frozen { job, prices }
    }
}

impl Evaluator for Frozen<'_> {
    fn prices(&self) -> &Prices {
        &self.prices
    }

    fn prices_mut(&mut self) -> &mut Prices {
        &mut self.prices
    }

    fn into_prices(self: Box<Self>) -> Prices {
        self.prices
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// An earlier comparison takes precedence; otherwise the price list decides, if it covers the
    /// whole candidate.
    fn time(&mut self, candidates: &mut [Candidate], _: Instant, _: Duration, _: &dyn Fn() -> bool) -> Result<Timings, Failure> {
        let input = self.prices.total(&self.job.input.graph) as f64;
        let never = Timings::never(self.job.bindings.len(), self.job.threads);
        let recall = |candidate: &Candidate, setting: &str| self.prices.recall_ratio(&ratio_key(self.job, candidate, setting));
        let is_timed = |candidate: &Candidate| self.job.bindings.iter().all(|binding| recall(candidate, &binding.label).is_some());
        // What was timed takes precedence over what is only priced.
        let any_timed = candidates.iter().any(|candidate| !candidate.script.is_empty() && is_timed(candidate));
        for candidate in candidates {
            let ratio = input / candidate.predicted.max(1) as f64;
            let known = self.prices.guessed(&candidate.graph) < GUESSED && candidate.script.bodies.is_empty();
            let listed = (known && !any_timed).then_some(Speedup { median: ratio, low: ratio, high: ratio, pairs: 0 });
            let known = |setting: &str| {
                let speedup = recall(candidate, setting).or(listed).unwrap_or(Speedup::NONE);
                Timed { median_ns: candidate.predicted as f64, speedup }
            };
            let deciding = self.job.bindings.iter().map(|binding| known(&binding.label)).collect();
            let single = self.job.bindings.iter().take(never.single.len()).map(|binding| known(&binding.label_at_one_thread())).collect();
            candidate.timings = Timings { deciding, single };
        }
        Ok(never)
    }

    fn start_up(&mut self, candidate: Option<&Candidate>) -> Result<Option<Startup>, Failure> {
        Ok(self.prices.recall_startup(&startup_key(self.job, candidate)))
    }

    fn ceiling(&mut self, _: bool) -> Result<Option<Ceiling>, Failure> {
        Ok(self.prices.recall_ceiling())
    }

    fn wins(&self, candidate: &Candidate) -> bool {
        let speedup = candidate.timed().speedup;
        speedup.low > 1.0 + if speedup.pairs > 0 { MARGIN } else { LISTED_MARGIN }
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        check_whole(self.job, candidate, deadline)
    }
}
