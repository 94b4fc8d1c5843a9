//! How candidates are priced, timed and checked: by measuring, from a frozen store, from a
//! recording of another machine, or, when memory is short, by the price list.

mod frozen;
mod listed;
mod measuring;
mod predicting;
mod prices;

use std::time::{Duration, Instant};

use regraft_cost::Ceiling;
use regraft_ir::Graph;
use regraft_onnx::Written;
use regraft_runtime::Startup;

pub use prices::{Prices, Profiler, open_store};

use crate::error::Failure;
use crate::optimize::artifact::Artifact;
use crate::optimize::binding::Binding;
use crate::optimize::candidate::{Candidate, Timings};
use crate::optimize::headroom::Profiled;
use crate::optimize::load::Job;
use crate::optimize::time_budget::Runs;
use crate::report::Check;
use crate::sizes::Sizes;
use frozen::Frozen;
use listed::Listed;
use measuring::Measuring;
use predicting::Predicting;

/// How candidates are priced, timed and checked.
pub trait Evaluator {
    /// Prices of operators.
    fn prices(&self) -> &Prices;

    /// The same, mutable for corrections.
    fn prices_mut(&mut self) -> &mut Prices;

    /// The same, when nothing more is evaluated.
    fn into_prices(self: Box<Self>) -> Prices;

    /// Whether the clock may end searches and trials. If not, a run repeats exactly.
    fn is_timed(&self) -> bool {
        true
    }

    /// Whether trying candidates corrects prices, so that a later search may find others.
    fn learns(&self) -> bool {
        false
    }

    /// Profiles the input, and keeps it open to run beside candidates.
    fn profile_input(&mut self, _go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        Ok(Runs::default())
    }

    /// The same with a candidate in the place of an input that the runtime does not load.
    fn profile_first(&mut self, _candidate: &Candidate, _go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        Ok(Runs::default())
    }

    /// Profiles a candidate beside the input, if that is open, and records its time; returns
    /// whether it did. An error is the candidate's fault.
    fn profile(&mut self, _candidate: &mut Candidate, _go_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
        Ok(false)
    }

    /// A written model, in the form this evaluator needs.
    fn artifact(&self, written: Written) -> Result<Artifact, Failure> {
        Artifact::runnable(written)
    }

    /// Times candidates end to end at every setting and records their times; returns the input's.
    /// A sitting takes about `each` per model, at the least.
    fn time(&mut self, candidates: &mut [Candidate], until: Instant, each: Duration, stop: &dyn Fn() -> bool) -> Result<Timings, Failure>;

    /// What a process of its own takes that loads a candidate, or the input, and runs it once;
    /// `None` if that is not known.
    fn start_up(&mut self, _candidate: Option<&Candidate>) -> Result<Option<Startup>, Failure> {
        Ok(None)
    }

    /// Where the time of runs of a candidate, or of the input, went. `None` if it was not profiled;
    /// it is now, if `affordable`.
    fn profiled(&mut self, _candidate: Option<&Candidate>, _affordable: bool) -> Result<Option<Profiled>, Failure> {
        Ok(None)
    }

    /// The most that this machine reaches. `None` if it was not measured; it is now, if
    /// `affordable`.
    fn ceiling(&mut self, _affordable: bool) -> Result<Option<Ceiling>, Failure> {
        Ok(None)
    }

    /// The same measured again, if that can be, because a model reached more.
    fn renewed_ceiling(&mut self, known: Ceiling) -> Result<Ceiling, Failure> {
        Ok(known)
    }

    /// Whether a candidate that was timed is better than the input.
    fn wins(&self, candidate: &Candidate) -> bool;

    /// The numeric check of a candidate at every binding, up to the first that fails.
    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check;
}

/// The evaluator that a job needs.
pub fn evaluator(job: &Job) -> Result<Box<dyn Evaluator + '_>, Failure> {
    let sizes: Vec<&Sizes> = job.bindings.iter().map(|binding| &binding.sizes).collect();
    let prices = Prices::open(&job.request, (&*job.runtime, job.threads), &sizes, &job.input.graph)?;
    Ok(if job.memory.is_tight() || job.request.untimed {
        Box::new(Listed::new(job, prices)?)
    } else if job.request.frozen && !prices.is_recorded() {
        Box::new(Frozen::new(job, prices))
    } else {
        learning(job, prices)
    })
}

/// An evaluator that learns by profiling, with these prices.
pub fn learning(job: &Job, prices: Prices) -> Box<dyn Evaluator + '_> {
    if prices.is_recorded() { Box::new(Predicting::new(job, prices)) } else { Box::new(Measuring::new(job, prices)) }
}

/// Key of the input and a candidate in the store, at the setting with this label.
fn ratio_key(job: &Job, candidate: &Candidate, setting: &str) -> String {
    let setting = if setting.is_empty() { String::new() } else { format!("@{setting}") };
    format!("ratio:{}:{}{setting}", graph_key(job.input.model.graph()), candidate_key(job, candidate))
}

/// Key of what it takes to start with the input, or with a candidate.
fn startup_key(job: &Job, candidate: Option<&Candidate>) -> String {
    let model = candidate.map_or_else(|| graph_key(job.input.model.graph()), |candidate| candidate_key(job, candidate));
    format!("startup:{model}@{}", job.sizes().shown())
}

fn candidate_key(job: &Job, candidate: &Candidate) -> String {
    let places = candidate.script.bodies.iter().flat_map(|body| &body.rewrites).map(|rewrite| rewrite.step.match_id());
    let bodies = places.map(|place| format!(":{place:x}")).collect::<String>();
    format!("{}{bodies}{}", graph_key(&candidate.graph), if job.input.flushes { ":flushed" } else { "" })
}

fn graph_key(graph: &Graph) -> String {
    format!("{:032x}", regraft_ir::key::canonical_key(graph))
}

/// Checks each binding, up to the first that fails.
fn check_each(job: &Job, check: impl Fn(&Binding) -> Result<Check, Failure>) -> Check {
    let mut all = Check { passed: true, ..Check::default() };
    for binding in &job.bindings {
        all.join(&binding.label, check(binding).unwrap_or_else(|e| Check { notes: vec![e.cause], ..Check::default() }));
        if !all.passed {
            break;
        }
    }
    all
}
