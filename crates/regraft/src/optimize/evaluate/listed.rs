//! Uses the price list alone, on request or when memory is short. Where memory is short, whole
//! models are not run, and each changed region is checked by itself.

use std::time::{Duration, Instant};

use regraft_onnx::{WriteOptions, Written};

use crate::error::Failure;
use crate::optimize::artifact::Artifact;
use crate::optimize::candidate::{Candidate, Timings};
use crate::optimize::evaluate::measuring::check_whole;
use crate::optimize::evaluate::{Evaluator, Prices, check_each};
use crate::optimize::load::Job;
use crate::optimize::piecewise::{Pieces, verify_pieces};
use crate::optimize::verify::tolerance;
use crate::report::Check;

/// An evaluator that times nothing.
pub struct Listed<'a> {
    job: &'a Job,
    prices: Prices,
    /// The input as it would be written to a file, if whole models are not run.
    untouched: Option<Written>,
}

impl<'a> Listed<'a> {
    /// With these prices.
    pub fn new(job: &'a Job, prices: Prices) -> Result<Listed<'a>, Failure> {
        let model = &job.input.model;
        let untouched = job.memory.is_tight().then(|| model.write(model.graph(), &WriteOptions::default())).transpose()?;
        Ok(Listed { job, prices, untouched })
    }
}

impl Evaluator for Listed<'_> {
    fn prices(&self) -> &Prices {
        &self.prices
    }

    fn prices_mut(&mut self) -> &mut Prices {
        &mut self.prices
    }

    fn into_prices(self: Box<Self>) -> Prices {
        self.prices
    }

    fn artifact(&self, written: Written) -> Result<Artifact, Failure> {
        if self.untouched.is_some() { Ok(Artifact::unserialized(written)) } else { Artifact::runnable(written) }
    }

    /// With enough memory, what is found depends on the model alone.
    fn is_timed(&self) -> bool {
        self.untouched.is_some()
    }

    fn time(&mut self, candidates: &mut [Candidate], _: Instant, _: Duration, _: &dyn Fn() -> bool) -> Result<Timings, Failure> {
        let never = Timings::never(self.job.bindings.len(), self.job.threads);
        candidates.iter_mut().for_each(|candidate| candidate.timings.clone_from(&never));
        Ok(never)
    }

    /// The whole must gain; and where it cannot be run, every single rewrite. A body is rewritten
    /// only where it gains, which the price of the graph around it does not show.
    fn wins(&self, candidate: &Candidate) -> bool {
        let input = self.prices.total(&self.job.input.graph);
        let cheaper = if candidate.script.main.is_empty() { candidate.predicted <= input } else { candidate.predicted < input };
        cheaper && (self.untouched.is_none() || candidate.script.applied().all(|step| step.gain_ns > 0))
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        let (job, model) = (self.job, &self.job.input.model);
        let Some(untouched) = &self.untouched else { return check_whole(job, candidate, deadline) };
        check_each(job, |binding| {
            let pieces = Pieces {
                before: (model.graph(), untouched),
                after: (&candidate.graph, &candidate.artifact.written),
                sizes: &binding.sizes,
                seed: job.request.seed,
                threads: job.threads,
                tolerance: tolerance(candidate),
                memory: job.memory,
            };
            verify_pieces(&*job.runtime, &pieces)
        })
    }
}
