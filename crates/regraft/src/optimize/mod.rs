//! `regraft optimize` as a pipeline. Each stage is a file, and takes what the one before it gives:
//!
//! ```text
//! load ──> tune ──> compare ──> validate ──> write ──> report
//!                      ^            │
//!                      └── bisect ──┘  a candidate fails: the rule to blame is left out
//! ```
//!
//! If what an earlier run found is not confirmed by comparing, tuning and comparing come again.
//!
//! | stage | gives |
//! |---|---|
//! | [`load`] | a [`Job`](load::Job): the model, the rules, the runtime, the sizes to run at |
//! | [`tune`] | [`Candidate`](candidate::Candidate)s: proposed by searches, measured as wholes, the most promising first |
//! | [`compare`] | a [`Comparison`](compare::Comparison): end-to-end times of the input and the candidates, and who beats it |
//! | [`validate`] | a [`Decision`](validate::Decision): the best candidate that passes its check and whose certificate holds |
//! | [`write`] | an [`Output`](write::Output): the file, and the certificate beside it |
//! | [`report`] | the [`Report`] |

mod arena;
mod artifact;
mod binding;
mod bisect;
mod candidate;
mod ceiling;
mod certify;
mod compare;
mod contest;
mod cut;
mod end_to_end;
mod evaluate;
mod evidence;
mod excerpt;
mod fastest;
mod headroom;
mod interface;
mod library;
mod load;
mod memory_budget;
mod observer;
mod open_sizes;
mod perturb;
mod piecewise;
mod place;
mod proofs;
mod questions;
mod reference;
mod regions;
mod rehearsal;
mod report;
mod request;
mod run;
mod savings;
mod script;
#[cfg(test)]
mod scripted;
mod standing;
mod starting;
mod subnormal;
mod surcharge;
#[cfg(test)]
mod tests;
mod time_budget;
mod tune;
mod validate;
mod verify;
mod write;

use std::sync::Arc;
use std::time::Instant;

use regraft_runtime::Runtime;

pub use arena::Contender;
pub(crate) use ceiling::measure as measure_ceiling;
pub use end_to_end::{Effort, EndToEnd, time_end_to_end};
pub use fastest::{default_budget, fastest};
pub use library::{Choice, Usable, load_library, read_library};
pub use load::{InModel, clean};
pub use memory_budget::MemoryBudget;
pub use observer::{Observer, Phase, Silent};
pub(crate) use reference::{HEAVY_FLOPS, flops, to_values};
pub(crate) use rehearsal::rehearse;
pub use request::{Agent, CostKind, DEFAULT_BUDGET, Request, STEPS, Search, SearchKind};
pub use savings::{Networks, Paid, SavingsRequest};
pub use script::{Rewrite, Rewritten};
pub use standing::MARGIN;
pub use subnormal::NAME as SUBNORMAL_WEIGHTS;
pub(crate) use tune::place as place_of;
pub use tune::{Bodies, Inside, Proposal, Proposals, everywhere, propose, rewrite_bodies, scramble};
pub(crate) use verify::{BLURRED, FLOOR_FACTOR, before_saturation};
pub use verify::{TOLERANCE, TOLERANCE_BILINEAR};

use crate::error::Failure;
use crate::report::Report;
use candidate::Candidate;
use compare::{Comparison, compare};
use run::Run;
use time_budget::TimeBudget;
use tune::Tuner;

/// Optimizes a model file, writes the result, and reports.
///
/// # Errors
///
/// Input that cannot be read, run or written, and requests that contradict themselves. The output
/// is then left untouched.
pub fn optimize(request: &Request, observer: &mut dyn Observer) -> Result<Report, Failure> {
    optimize_on(&|| request.runtime.load_with(request.starter.clone()), request, observer)
}

/// The same on a runtime chosen by the caller, which is requested once the model is read.
fn optimize_on(
    runtime: &dyn Fn() -> Result<Arc<dyn Runtime>, Failure>,
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<Report, Failure> {
    let mut clock = TimeBudget::new(Instant::now(), request.budget);
    let (job, journal) = load::load(request, runtime, &mut clock, observer)?;
    clock.loaded(job.threads);
    let mut run = Run::new(&job, clock, journal, observer)?;
    let mut comparison = compared(&mut run)?;
    if run.recalled && !comparison.has_winner() && !run.is_interrupted() {
        drop(comparison);
        run.doubt_record();
        comparison = compared(&mut run)?;
    }
    starting::start_leader(&mut run, &mut comparison);
    let decision = validate::validate(&mut run, comparison)?;
    let startups = starting::startups(&mut run, decision.winner());
    let headroom = headroom::headroom(&mut run, &decision);
    let output = write::write(&mut run, &decision)?;
    Ok(report::report(run, decision, output, startups, headroom))
}

/// Finds candidates and compares them with the input; again, with what that showed, while time is
/// left.
fn compared(run: &mut Run<'_>) -> Result<Comparison, Failure> {
    let mut tuner = Tuner::new(run);
    let candidates = tuner.candidates()?;
    let mut comparison = compare(tuner.run, candidates, None)?;
    let number = |candidates: &[Candidate]| candidates.iter().filter(|candidate| candidate.is_compared()).count();
    while tuner.run.may_go_on() {
        let Comparison { input, candidates, .. } = comparison;
        let before = number(&candidates);
        // The input in normal form is no rewrite to go on from, and may have to be written.
        let (cleaned, rewritten): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| candidate.script.is_empty());
        let mut candidates = tuner.more(rewritten)?;
        candidates.extend(cleaned);
        comparison = compare(tuner.run, candidates, Some(input))?;
        if number(&comparison.candidates) == before {
            break;
        }
    }
    run.journal.complete &= tuner.end();
    Ok(comparison)
}
