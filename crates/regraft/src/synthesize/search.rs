//! Operators for the layers of a specification, without a model: the front of what is fast, small,
//! and accurate after training.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_synth::{Explorer, Filter, Found, Operator, Proposal, Sampler, Spec, Tree, presets};

use crate::error::Failure;
use crate::optimize::{Observer, Phase};
use crate::runtime::RuntimeChoice;
use crate::synthesize::candidates::parsed;
use crate::synthesize::judging::{Judging, SearchReport, Trainer};

/// What to search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Layers, and limits of the search.
    pub spec: Spec,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Wall time.
    pub budget: Duration,
    /// Seed of the search.
    pub seed: u64,
    /// A folder for what is on the front: formulas, ONNX, PyTorch and TVM.
    pub emit: Option<PathBuf>,
    /// The runtime.
    pub runtime: RuntimeChoice,
}

/// Operators that are trained together, of which the worse half is dropped early.
const TOGETHER: usize = 4;

/// Looks for operators until the time is up.
///
/// # Errors
///
/// If the specification has no dense layer, nothing in it can be computed, a kernel is wrong, or
/// files cannot be written.
pub fn search(request: &SearchRequest, trainer: &mut dyn Trainer, observer: &mut dyn Observer) -> Result<SearchReport, Failure> {
    let until = Instant::now() + request.budget;
    let mut explorer = Explorer::new(&request.spec, Filter::default());
    judged(request, &mut explorer, trainer, observer, |judging, explorer, observer| {
        // Known families and the search take turns.
        let mut families = presets::families(&request.spec).into_iter();
        let mut tree = Tree::new(request.seed);
        let mut sampler = Sampler::new(explorer, request.seed, false);
        let mut searching = true;
        loop {
            let (room, training) = judging.room(until);
            let room = room.min(TOGETHER);
            if room == 0 || observer.interrupted() {
                return Ok(());
            }
            let mut batch: Vec<(Found, Option<Proposal>)> = Vec::new();
            while batch.len() < room && !observer.interrupted() && Instant::now() < until {
                let family = families.next();
                if family.is_none() && !searching {
                    break;
                }
                if let Some(formula) = family {
                    observer.phase(Phase::Measure, &format!("known: {formula}"));
                    let operator = Operator::parse(&formula, &mut explorer.coordinates).ok();
                    batch.extend(operator.and_then(|operator| explorer.judged(operator)).map(|found| (found, None)));
                }
                if searching && batch.len() < room {
                    observer.phase(Phase::Search, &judging.so_far());
                    match tree.propose(explorer, &mut sampler) {
                        Some(proposal) => batch.push((proposal.found.clone(), Some(proposal))),
                        None => searching = false,
                    }
                }
            }
            if batch.is_empty() && families.len() == 0 && !searching {
                return Ok(());
            }
            observer.phase(Phase::Measure, &judging.so_far());
            let operators: Vec<(&Found, bool)> = batch.iter().map(|(found, proposal)| (found, proposal.is_none())).collect();
            let ranks = judging.take(&operators, training, explorer)?;
            for ((_, proposal), rank) in batch.iter().zip(ranks) {
                proposal.iter().for_each(|proposal| tree.reward(proposal, rank));
            }
        }
    })
}

/// Judges these operators, all together.
///
/// # Errors
///
/// As for [`search`]; also if a formula is no operator of the specification.
pub fn judge(
    request: &SearchRequest,
    formulas: &[String],
    trainer: &mut dyn Trainer,
    observer: &mut dyn Observer,
) -> Result<SearchReport, Failure> {
    let mut explorer = Explorer::new(&request.spec, Filter::default());
    judged(request, &mut explorer, trainer, observer, |judging, explorer, observer| {
        let mut all = Vec::new();
        for formula in formulas {
            let operator = parsed(formula, explorer)?;
            let lacks = || Failure::new(format!("{formula}: it cannot be computed for the layers of {}", request.spec.name));
            all.push(explorer.described(operator).ok_or_else(lacks)?);
        }
        let mut families = HashSet::new();
        for formula in presets::families(&request.spec) {
            let operator = Operator::parse(&formula, &mut explorer.coordinates).ok();
            families.extend(operator.and_then(|operator| explorer.key(&operator)));
        }
        observer.phase(Phase::Measure, &format!("{} operators", all.len()));
        let all: Vec<(&Found, bool)> = all.iter().map(|found| (found, families.contains(&found.key))).collect();
        judging.take(&all, true, explorer).map(|_| ())
    })
}

fn judged<'a>(
    request: &'a SearchRequest,
    explorer: &mut Explorer<'a>,
    trainer: &mut dyn Trainer,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut Judging<'_, '_>, &mut Explorer<'a>, &mut dyn Observer) -> Result<(), Failure>,
) -> Result<SearchReport, Failure> {
    let start = Instant::now();
    observer.phase(Phase::Load, &request.spec.name);
    if let Some(folder) = &request.emit {
        crate::synthesize::emit::make_folder(folder)?;
    }
    let runtime = request.runtime.load()?;
    let mut judging = Judging::new(&request.spec, runtime.as_ref(), request.threads, explorer, trainer)?;
    work(&mut judging, explorer, observer)?;
    let longest = judging.longest();
    let report = judging.report(start.elapsed());
    if report.timed.is_empty() && !observer.interrupted() {
        let failure = Failure::new(format!("{}: no operator within the limits was found in time", request.spec.name));
        let took = longest.as_secs_f64();
        return Err(failure.hint(format!(
            "the layer itself took {took:.0} s, and an operator takes as long: give a larger --budget, or wider [limits] in the specification"
        )));
    }
    if let Some(folder) = &request.emit {
        observer.phase(Phase::Write, &folder.display().to_string());
        crate::synthesize::emit::emit(folder, &report.front, explorer)?;
    }
    Ok(report)
}
