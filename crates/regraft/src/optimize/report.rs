//! Last stage: the report of the run.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use regraft_onnx::is_stream;
use regraft_runtime::MachineKey;

use crate::diff::computing_nodes;
use crate::optimize::candidate::{Candidate, Timed, Timings};
use crate::optimize::compare::Comparison;
use crate::optimize::run::Run;
use crate::optimize::standing::{Standing, Wanted, further, further_to_hold};
use crate::optimize::validate::Decision;
use crate::optimize::write::Output;
use crate::recording::{Recorded, digest, hashes};
use crate::refused::Refused;
use crate::render;
use crate::report::{
    AtBinding, Check, Headroom, NotDone, Predicted, Report, SCHEMA, Seconds, SingleThread, Speedup, Startups, Timing, Undecided,
};

/// The report of a run that ended.
pub fn report(mut run: Run<'_>, decision: Decision, output: Output, startup: Option<Startups>, headroom: Headroom) -> Report {
    let (request, input) = (&run.job.request, &run.job.input);
    let (winner, comparison) = (decision.winner(), &decision.comparison);
    run.journal.not_done.extend(losers(comparison, winner, request.cost.recorded().is_some()));
    let undecided = undecided(&run, comparison, winner);
    if let Some(overrun) = run.clock.overrun().filter(|_| run.evaluator.is_timed() && run.clock.too_short().is_none()) {
        run.journal.warnings.push(late(&run, overrun));
    }
    if let Some(least) = run.clock.too_short().filter(|_| !run.observer.interrupted()) {
        let least = (1.2 * least.as_secs_f64()).ceil();
        let warning = format!("the budget is too short to try out anything with a model of this size (hint: --budget {least}s)");
        run.journal.warnings.push(warning);
    }
    run.journal.seconds.total = run.clock.elapsed().as_secs_f64();
    let price = run.evaluator.prices().total(&input.graph) as f64;
    let rewritten = winner.filter(|winner| !winner.script.is_empty());
    let shapes = |sizes: &crate::sizes::Sizes| sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect();
    let ended = match (run.observer.interrupted(), run.journal.complete && undecided.is_empty()) {
        (true, _) => "interrupted",
        (false, true) => "complete",
        (false, false) => "budget",
    };
    Report {
        schema: SCHEMA,
        tool: crate::tool(),
        rules: run.job.rules.library.rules().len(),
        input: request.input.display().to_string(),
        output: Some(request.output.display().to_string()),
        certificate: output.certificate,
        shapes: shapes(run.job.sizes()),
        guessed_shapes: run.job.sizes().guessed,
        frozen: input.fixed.0.iter().map(|input| (input.name.clone(), input.sizes.clone())).collect(),
        runtime: format!("{} {}", run.job.runtime.name(), run.job.runtime.version()),
        machine: MachineKey::detect().cpu,
        threads: run.job.threads,
        seed: request.seed,
        search: request.search.to_string(),
        cost: request.cost.name().into(),
        prediction: run.job.request.cost.recorded().map(|recorded| prediction(&run, recorded, &decision)),
        timings: timings(comparison),
        undecided,
        speedup: winner.map_or(Speedup::NONE, |winner| winner.timed().speedup),
        single_thread: winner.and_then(|winner| single_thread(&comparison.input.single, &winner.timings.single)),
        predicted_speedup: rewritten.map(|winner| price / winner.predicted.max(1) as f64),
        bindings: winner.map_or_else(Vec::new, |winner| at_bindings(&run, comparison, winner)),
        refused: run.job.refusal.as_ref().map(Refused::from),
        rescued: run.job.refusal.is_some() && winner.is_some(),
        startup,
        headroom: Some(headroom),
        applied: winner.map_or_else(Vec::new, |winner| winner.script.applied().cloned().collect()),
        cleaned: if winner.is_some() { input.cleaned.clone() } else { Vec::new() },
        check: check(comparison, winner),
        bytes: (input.model.size(), output.bytes),
        nodes: (computing_nodes(input.model.proto()), output.nodes),
        ended: ended.into(),
        not_done: run.journal.not_done,
        seconds: run.journal.seconds,
        visited: run.journal.visited,
        measured_models: run.journal.measured,
        measured_excerpts: run.journal.excerpts,
        trials: run.journal.trials,
        fastest: None,
        warnings: run.journal.warnings,
        reproduce: request.reproduce.clone(),
    }
}

/// What the decision rests on, if prices of another machine made it.
fn prediction(run: &Run<'_>, recorded: &Recorded, decision: &Decision) -> Predicted {
    let (request, recording) = (&run.job.request, &recorded.recording);
    let digest = |path: &Path| if is_stream(path).unwrap_or(true) { Vec::new() } else { digest(path).unwrap_or_default() };
    let input = run.job.input.digest.as_ref().map_or_else(Vec::new, hashes);
    let sizes: Vec<_> = run.job.bindings.iter().map(|binding| &binding.sizes).collect();
    let models = recorded.models(&request.input, &input, &sizes).unwrap_or_default();
    let winner = decision.winner();
    let graph = winner.map_or(&run.job.input.graph, |winner| &winner.graph);
    let predictions = run.evaluator.prices().predictions(&run.job.input.graph, graph);
    let carried = predictions.iter().map(|prediction| prediction.carried).fold(0.0, f64::max);
    Predicted {
        file: recorded.file.display().to_string(),
        device: recording.device.clone(),
        machine: recording.target.machine.clone(),
        runtime: recording.target.runtime.clone(),
        threads: recording.target.threads,
        recorded_at: recording.recorded_at,
        run_ns: models.first().map_or(0.0, |model| model.run_ns),
        spread_ns: models.first().map_or(0.0, |model| model.spread_ns),
        speedup: winner.map_or(Speedup::NONE, |winner| winner.timed().speedup),
        carried,
        shared: run.evaluator.prices().shared(),
        is_kept: winner.is_none_or(|winner| winner.script.is_empty()),
        input: request.input.display().to_string(),
        models: (input, digest(&request.output)),
    }
}

/// Rewritten models that may or may not be faster than the input, if nothing better was found and
/// speed decides.
fn undecided(run: &Run<'_>, comparison: &Comparison, winner: Option<&Candidate>) -> Vec<Undecided> {
    if run.job.refusal.is_some() || winner.is_some_and(|winner| winner.wanted == Wanted::Faster) {
        return Vec::new();
    }
    let is_open = |c: &&Candidate| c.wanted == Wanted::Faster && c.standing() == Standing::Open && !c.compared.is_zero();
    let open = comparison.candidates.iter().filter(is_open).map(|candidate| {
        let Timings { deciding, single } = &candidate.timings;
        let gains = Timings { deciding: deciding.clone(), single: Vec::new() }.standing(Wanted::Faster) == Standing::Taken;
        let alone = single.iter().map(|timed| timed.speedup);
        let least = alone.clone().find(|speedup| speedup.pairs == 0);
        let least = least.or_else(|| alone.min_by(|a, b| a.median.total_cmp(&b.median)));
        let (at_one_thread, speedup, more) = match least.filter(|_| gains) {
            Some(never) if never.pairs == 0 => (true, never, candidate.compared),
            Some(least) => (true, least, further_to_hold(&least, candidate.compared)),
            None => (false, candidate.timed().speedup, further(&candidate.timed().speedup, candidate.compared)),
        };
        let budget = run.clock.elapsed().max(run.job.request.budget) + more;
        let (seconds, budget) = (more.as_secs_f64().ceil(), budget.as_secs_f64().ceil());
        Undecided { model: candidate.name.clone(), at_one_thread, speedup, seconds, budget }
    });
    open.collect()
}

/// What is said if the run took longer than it may: where the time went.
fn late(run: &Run<'_>, overrun: Duration) -> String {
    let Seconds { load, search, measure, choose, check, .. } = run.journal.seconds;
    let total = run.clock.elapsed().as_secs_f64();
    let write = total - load - search - measure - choose - check;
    let after = format!("after comparing, checking took {} and writing {}", render::seconds(check), render::seconds(write.max(0.0)));
    let enough = (total + overrun.as_secs_f64()).ceil();
    format!("the run took {:.1} s longer than its budget: {after} (hint: --budget {enough}s)", overrun.as_secs_f64())
}

/// The winner's check. Another candidate's failure is reported by a warning, and says nothing about
/// a copy of the input.
fn check(comparison: &Comparison, winner: Option<&Candidate>) -> Check {
    let tolerance = comparison.candidates.iter().filter_map(|c| Some(c.check.as_ref()?.tolerance)).fold(0.0, f64::max);
    let own = winner.and_then(|winner| winner.check.clone());
    own.unwrap_or(Check { passed: true, tolerance, ..Check::default() })
}

/// Times of the input and each candidate, over all bindings.
fn timings(comparison: &Comparison) -> Vec<Timing> {
    let timing = |model: &str, timings: &Timings| {
        let Timed { median_ns, speedup } = Timed::mean(&timings.deciding);
        let single_thread = Timed::mean(&timings.single).speedup;
        let single_thread = (single_thread.pairs > 0).then_some(single_thread);
        Timing { model: model.into(), median_ns, speedup, single_thread }
    };
    let input = timing("input", &comparison.input);
    std::iter::once(input).chain(comparison.candidates.iter().map(|c| timing(&c.name, &c.timings))).collect()
}

/// Times of the winner at one thread, if it was timed there: geometric means, of several.
fn single_thread(input: &[Timed], winner: &[Timed]) -> Option<SingleThread> {
    let [input, winner] = [input, winner].map(Timed::mean);
    (winner.speedup.pairs > 0).then_some(SingleThread { median_ns: (input.median_ns, winner.median_ns), speedup: winner.speedup })
}

/// The winner at every binding, if there are several.
fn at_bindings(run: &Run<'_>, comparison: &Comparison, winner: &Candidate) -> Vec<AtBinding> {
    if run.job.bindings.len() < 2 {
        return Vec::new();
    }
    let (before, after) = (&comparison.input, &winner.timings);
    let times = before.deciding.iter().zip(&after.deciding);
    let one = |(at, (binding, (input, winner))): (usize, (&crate::optimize::binding::Binding, (&Timed, &Timed)))| AtBinding {
        binding: binding.label.clone(),
        shapes: binding.sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect(),
        median_ns: (input.median_ns, winner.median_ns),
        speedup: winner.speedup,
        single_thread: before.single.get(at..=at).zip(after.single.get(at..=at)).and_then(|(before, after)| single_thread(before, after)),
    };
    run.job.bindings.iter().zip(times).enumerate().map(one).collect()
}

/// Rules that the winner does not use, and what became of the candidates that used them.
fn losers(comparison: &Comparison, winner: Option<&Candidate>, is_predicted: bool) -> Vec<NotDone> {
    let mut told: HashSet<&str> = winner.into_iter().flat_map(|c| c.script.applied().map(|a| a.rule.as_str())).collect();
    let mut losers = Vec::new();
    for candidate in &comparison.candidates {
        let Speedup { median, low, high, pairs } = candidate.timed().speedup;
        let fate = match candidate.fate() {
            Some(fate) => fate.to_string(),
            None if is_predicted => format!("is predicted to run {median:.3} times as fast as the input [{low:.3}, {high:.3}]"),
            None if pairs == 0 => format!("was not timed and runs {median:.3} times as fast as the input by what is known"),
            None => format!("runs {median:.3} times as fast as the input [{low:.3}, {high:.3}]"),
        };
        for applied in candidate.script.applied() {
            if told.insert(&applied.rule) {
                let because = format!("part of {}, which {fate}", candidate.name);
                losers.push(NotDone { what: applied.rule.clone(), at: applied.at.clone(), because });
            }
        }
    }
    losers
}
