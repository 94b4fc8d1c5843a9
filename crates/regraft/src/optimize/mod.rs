//! `optimize`: read, normalize, search and measure in turns, choose end to end, check, write.

mod artifact;
mod bodies;
mod candidate;
mod certify;
mod choose;
mod cut;
mod decide;
mod evidence;
mod hunt;
mod library;
mod memory;
mod mend;
mod nudge;
mod observer;
mod open_sizes;
mod pace;
mod piecewise;
mod points;
mod prices;
mod proofs;
mod propose;
mod questions;
mod regions;
mod request;
mod room;
mod verify;
mod worth;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use regraft_certify::{Certificate, ModelDigest};
use regraft_ir::Graph;
use regraft_onnx::{Model, OpaqueNode, WriteOptions, Written};
use regraft_rules::{Numeric, Trust};
use regraft_runtime::{MachineKey, ModelSource, OnnxRuntime, Runtime};

pub use bodies::{Bodies, Inside, rewrite_bodies};
pub use choose::{Comparison, Effort, MARGIN, compare};
pub use evidence::Rewritten;
pub use library::{Choice, Usable, load_library, read_library};
pub use observer::{Observer, Phase, Silent};
pub use prices::Prices;
pub use propose::{Proposal, Proposals, everywhere, propose, scramble};
pub use request::{CostKind, Request, SearchKind};
pub(crate) use verify::{BLURRED, FLOOR_FACTOR, HEAVY_FLOPS, before_saturation, flops, to_values};
pub use verify::{Subject, TOLERANCE, TOLERANCE_BILINEAR, verify};
pub use worth::{Networks, Paid, WorthRequest};

use crate::certificate::{beside, discard};
use crate::diff::computing_nodes;
use crate::discrete::decided_by_floats;
use crate::error::Failure;
use crate::exact::{CONFIRMED, CONFIRMED_ROUNDED};
use crate::report::{Applied, AtBinding, Check, Report, SCHEMA, Seconds, Speedup, Timing};
use candidate::Candidate;
use certify::Certifier;
use hunt::{Hunt, InModel};
use memory::Memory;
use open_sizes::not_shown;
use pace::Pace;
use piecewise::{Pieces, verify_pieces};
use points::Point;
pub use room::Room;

/// Optimizes a model file, writes the result, and reports.
pub fn optimize(request: &Request, observer: &mut dyn Observer) -> Result<Report, Failure> {
    let start = Instant::now();
    let mut seconds = Seconds::default();
    observer.phase(Phase::Load, &request.input.display().to_string());
    let Usable { library, left_out, own } = load_library(&request.rules, "onnxruntime")?;
    let rules = library.rules().len();
    let model = Model::read(&request.input)?;
    if model.has_external_data() {
        let refused = |why| Failure::new(format!("cannot write {}: {why}", request.output.display())).hint("name a file with -o");
        regraft_onnx::takes_weights(&request.output).map_err(refused)?;
    }
    let converted = request.opset.is_some_and(|version| model.opset("") != Some(version));
    let model = match request.opset {
        Some(version) => model
            .at_opset(version)
            .map_err(|e| Failure::new(format!("{}: {e}", request.input.display())).hint("leave --opset out to keep its version"))?,
        None => model,
    };
    let mut warnings = warnings_of(&model)?;
    let untrusted = |(rule, trust): &(String, regraft_rules::Trust)| {
        format!("the rule `{rule}` is {trust} and was left out (hint: --allow {trust} takes it)")
    };
    warnings.extend(left_out.iter().map(untrusted));
    let room = Room::new(&model, request.memory);
    let request = &room_for(request, room);
    let library = if room.is_tight() { library.filter(|r| !r.explore && r.runtime.is_none()) } else { library };
    let runtime = OnnxRuntime::load(request.runtime_library.as_deref())?;
    let original = ModelSource::path(&request.input);
    if room.is_tight() {
        if converted {
            return Err(Failure::new("a model that is brought to another opset must be run, and there is not memory enough for that")
                .hint("give more with --memory, or leave --opset out"));
        }
        regraft_runtime::return_freed_memory();
        warnings.push(explain(room));
    }
    let points = Point::all(request, &model, (!room.is_tight()).then_some((original, &runtime as &dyn Runtime)))?;
    let sizes = &points[0].sizes;
    if sizes.guessed {
        let done = if room.is_tight() { "priced" } else { "measured" };
        warnings.push(format!("sizes that the model leaves open were guessed; {done} at {} (give yours with --shape)", sizes.shown()));
    }
    warnings.extend(decided_by_floats(model.graph()).iter().map(ToString::to_string));
    let (cleaned, cleanups) = clean(model.graph());
    let prices = Prices::open(request, &runtime, sizes)?;
    seconds.load = start.elapsed().as_secs_f64();

    let memory = prices.recall_hunt(&Memory::key(&cleaned, &model, sizes, request));
    let mut hunt = Hunt {
        request,
        model: &model,
        runtime: &runtime,
        points: &points,
        feeds: &points[0].feeds,
        library: &library,
        prices,
        seconds,
        not_done: Vec::new(),
        visited: 0,
        complete: true,
        measured: 0,
        named: 0,
        pace: Pace::new(start, request.budget),
        memory,
        settled: false,
        room,
    };
    let mut candidates = hunt.run(&cleaned, observer)?;
    if !room.is_tight() {
        hunt.not_done.extend(not_shown(&model, &cleaned, sizes, hunt.library, &InModel::new(&model)));
        candidates.extend(hunt.with_bodies(&cleaned, &candidates, observer)?);
    }
    regraft_onnx::release_weights();
    // Every candidate is cleaned. Where a comparison is dear, the cleaned input alone takes part only if there is nothing better.
    let roomy = if candidates.is_empty() { hunt.pace.affords_comparison() } else { hunt.pace.finalists() == FINALISTS };
    if converted || (!cleanups.is_empty() && roomy) {
        let written = hunt.write(&cleaned)?;
        candidates.push(Candidate {
            name: "cleaned".into(),
            graph: cleaned.clone(),
            applied: Vec::new(),
            places: Vec::new(),
            moves: Vec::new(),
            bodies: Vec::new(),
            rewritten: Vec::new(),
            predicted: hunt.prices.total(&cleaned),
            profiled: None,
            artifact: hunt.artifact(&written)?,
            written,
        });
    }
    let choosing = Instant::now();
    observer.phase(Phase::Choose, &format!("{} candidates", candidates.len()));
    let (mut timings, mut by_point, order) = hunt.decide(&cleaned, original, &candidates, observer)?;
    hunt.seconds.choose = choosing.elapsed().as_secs_f64();

    let checking = Instant::now();
    let deadline = start + request.budget;
    let untouched = if room.is_tight() { Some(model.write(model.graph(), &WriteOptions::default()).map_err(Failure::new)?) } else { None };
    // The output may take the input's place.
    let digest = request.certificate.is_some().then(|| ModelDigest::of(&request.input)).transpose()?;
    let certifier = Certifier::new(request, &model, converted, digest.as_ref(), &library, &own, room)?;
    let examine = |candidate: &Candidate| {
        certifier.examine(candidate, || match &untouched {
            Some(untouched) => check_regions(request, &model, &runtime, &points, candidate, untouched, room),
            None => check_everywhere(request, &model, &runtime, &points, candidate, deadline),
        })
    };
    let mut winner = None;
    let mut check = Check::default();
    let mut dropped = Vec::new();
    for (turn, at) in order.into_iter().enumerate() {
        observer.phase(Phase::Check, &candidates[at].name);
        check = examine(&candidates[at]);
        if check.passed {
            winner = Some(at);
            break;
        }
        let fate = if check.incomplete { "could not be checked" } else { "failed its check" };
        warnings.push(format!("{} {fate} and was dropped: {}", candidates[at].name, check.notes.join("; ")));
        dropped.push((at, fate));
        if check.incomplete {
            continue;
        }
        keep_for_report(&candidates[at])?;
        // Rewrites inside bodies have no script of their own to bisect.
        if turn > 0 || candidates[at].applied.is_empty() || !candidates[at].bodies.is_empty() {
            continue;
        }
        let mended = hunt.mend(&cleaned, &candidates[at], deadline, &examine, observer)?;
        warnings.extend(mended.guilty.iter().map(|(rule, place)| format!("the rule `{rule}` at {place} is to blame: it was left out")));
        warnings.extend(mended.note.map(str::to_owned));
        let Some((candidate, passed)) = mended.candidate else { continue };
        let (mut times, mut times_by_point, accepted) = hunt.decide(&cleaned, original, std::slice::from_ref(&candidate), observer)?;
        candidates.push(candidate);
        timings.extend(times.pop());
        by_point.iter_mut().zip(&mut times_by_point).for_each(|(all, more)| all.extend(more.pop()));
        if !accepted.is_empty() {
            (check, winner) = (passed, Some(candidates.len() - 1));
            break;
        }
    }
    // What was asked for is written even if it is slower: the input has another version.
    if let Some(at) = candidates.iter().position(|c| c.applied.is_empty()).filter(|_| converted && winner.is_none()) {
        observer.phase(Phase::Check, &candidates[at].name);
        check = examine(&candidates[at]);
        if !check.passed {
            let cause = format!("the model at the new opset computes something else: {}", check.notes.join("; "));
            return Err(Failure::new(cause).hint("leave --opset out to keep its version"));
        }
        winner = Some(at);
    }
    hunt.seconds.check = checking.elapsed().as_secs_f64();

    observer.phase(Phase::Write, &request.output.display().to_string());
    let input_size = model.size();
    let mut certified = None;
    let old = [Some(beside(&request.output)), request.certificate.clone()];
    old.iter().flatten().filter(|path| **path != request.output).try_for_each(|path| discard(path))?;
    // A copy of the input is certified by no steps at all: what was done to it since is told as well.
    let mut trails = Some(Vec::new());
    let (speedup, applied, predicted, output_size, nodes) = match winner {
        Some(at) => {
            let candidate = &candidates[at];
            candidate
                .written
                .save(&request.output, model.has_external_data())
                .map_err(|e| Failure::new(e).hint("check the output path with -o"))?;
            trails = certifier.trails(candidate).map(|(_, trails)| trails);
            let predicted = hunt.prices.total(&cleaned) as f64 / candidate.predicted.max(1) as f64;
            (
                timings[at + 1].speedup,
                candidate.applied.clone(),
                (!candidate.applied.is_empty()).then_some(predicted),
                candidate.written.size(),
                computing_nodes(&candidate.written.proto),
            )
        }
        None => {
            copy_input(&model, &request.input, &request.output)?;
            // What a candidate failed is told by a warning; it says nothing of the copy.
            check = Check { passed: true, tolerance: check.tolerance, ..Check::default() };
            (Speedup::NONE, Vec::new(), None, input_size, computing_nodes(model.proto()))
        }
    };
    match (&request.certificate, &digest, trails) {
        (Some(path), Some(input), Some(trails)) => {
            let input = input.clone();
            let (output, opset) = (ModelDigest::of(&request.output)?, request.opset.filter(|_| converted));
            let certificate = Certificate { tool: crate::tool(), input, output, opset, trails };
            crate::file::write_atomic(path, certificate.to_text().as_bytes())?;
            certified = Some(path.display().to_string());
        }
        (Some(_), _, None) => warnings.push("no certificate was written: a rewrite reads a value of unknown type".into()),
        _ => {}
    }
    let kept_input = winner.is_none();
    hunt.explain_losers(winner.map(|at| &candidates[at]), &candidates, &timings, &dropped);
    if let Some(least) = hunt.pace.too_short() {
        let least = (1.2 * least.as_secs_f64()).ceil();
        warnings.push(format!("the budget is too short to try out anything with a model of this size (hint: --budget {least}s)"));
    }
    hunt.remember(&cleaned, sizes, winner.map(|at| &candidates[at]))?;
    hunt.seconds.total = start.elapsed().as_secs_f64();
    let machine = MachineKey::detect();
    Ok(Report {
        rules,
        schema: SCHEMA,
        tool: format!("regraft {}", env!("CARGO_PKG_VERSION")),
        input: request.input.display().to_string(),
        output: Some(request.output.display().to_string()),
        certificate: certified,
        shapes: sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect(),
        guessed_shapes: sizes.guessed,
        runtime: format!("{} {}", runtime.name(), runtime.version()),
        machine: machine.cpu.clone(),
        threads: request.threads,
        seed: request.seed,
        search: format!("{:?}", request.search).to_lowercase(),
        cost: format!("{:?}", request.cost).to_lowercase(),
        timings,
        speedup,
        predicted_speedup: predicted,
        bindings: winner.map_or_else(Vec::new, |at| bindings(&points, &by_point, at)),
        applied,
        cleaned: if kept_input { Vec::new() } else { cleanups },
        not_done: hunt.not_done,
        check,
        bytes: (input_size, output_size),
        nodes: (computing_nodes(model.proto()), nodes),
        seconds: hunt.seconds,
        ended: if observer.interrupted() {
            "interrupted"
        } else if hunt.complete {
            "complete"
        } else {
            "budget"
        }
        .into(),
        visited: hunt.visited,
        measured_models: hunt.measured,
        warnings,
        reproduce: request.reproduce.clone(),
    })
}

/// The check of each changed region alone, where whole models cannot be run; at every binding, up to the first that fails.
fn check_regions(
    request: &Request,
    model: &Model,
    runtime: &OnnxRuntime,
    points: &[Point],
    candidate: &Candidate,
    untouched: &Written,
    room: Room,
) -> Check {
    let mut all = Check { passed: true, ..Check::default() };
    for point in points {
        let pieces = Pieces {
            before: (model.graph(), untouched),
            after: (&candidate.graph, &candidate.written),
            sizes: &point.sizes,
            seed: request.seed,
            threads: request.threads,
            tolerance: tolerance(candidate),
            room,
        };
        let check = verify_pieces(runtime, &pieces).unwrap_or_else(|e| Check { notes: vec![e.cause], ..Check::default() });
        all.join(&point.label, check);
        if !all.passed {
            break;
        }
    }
    all
}

/// What real outputs may differ by, relative to their largest magnitude.
fn tolerance(candidate: &Candidate) -> f64 {
    let bilinear = candidate.applied.iter().any(|a| a.numeric == Numeric::FastBilinear.to_string());
    if bilinear { TOLERANCE_BILINEAR } else { TOLERANCE }
}

/// What is rounding of a difference in double precision, where constants are not folded yet but may have been rounded by rules.
fn confirmed(candidate: &Candidate) -> f64 {
    let rounds = |a: &Applied| a.numeric == Numeric::RoundsConstants.to_string() || a.trust == Trust::Bounded.to_string();
    if candidate.applied.iter().any(rounds) { CONFIRMED_ROUNDED } else { CONFIRMED }
}

/// The numeric check of a candidate at every binding; it ends at the first that fails.
fn check_everywhere(
    request: &Request,
    model: &Model,
    runtime: &OnnxRuntime,
    points: &[Point],
    candidate: &Candidate,
    deadline: Instant,
) -> Check {
    let mut all = Check { passed: true, ..Check::default() };
    let Some(artifact) = &candidate.artifact else { return Check::default() };
    for point in points {
        let subject = Subject {
            model,
            original: ModelSource::path(&request.input),
            rewritten: artifact.source(),
            graph: &candidate.graph,
            written: &candidate.written,
            sizes: &point.sizes,
            data: &point.data,
            seed: request.seed,
            threads: request.threads,
            tolerance: tolerance(candidate),
            confirmed: confirmed(candidate),
            seconds_left: &|| deadline.saturating_duration_since(Instant::now()).as_secs_f64(),
        };
        let check = verify(runtime, &subject).unwrap_or_else(|e| Check { notes: vec![e.cause], ..Check::default() });
        all.join(&point.label, check);
        if !all.passed {
            break;
        }
    }
    all
}

/// The winner at every binding, if there are several.
fn bindings(points: &[Point], by_point: &[Vec<Timing>], winner: usize) -> Vec<AtBinding> {
    let one = |(point, timings): (&Point, &Vec<Timing>)| AtBinding {
        binding: point.label.clone(),
        shapes: point.sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect(),
        median_ns: (timings[0].median_ns, timings[winner + 1].median_ns),
        speedup: timings[winner + 1].speedup,
    };
    if points.len() > 1 { points.iter().zip(by_point).map(one).collect() } else { Vec::new() }
}

/// A candidate that fails its check shows a defect. With `REGRAFT_KEEP_FAILED` naming a folder, it and its rewrites are kept for a report.
fn keep_for_report(candidate: &Candidate) -> Result<(), Failure> {
    let Some(folder) = std::env::var_os("REGRAFT_KEEP_FAILED") else { return Ok(()) };
    let path = Path::new(&folder).join(format!("{}.onnx", candidate.name.replace(' ', "-")));
    candidate.written.save(&path, false).map_err(Failure::new)?;
    let rewrites: Vec<String> = candidate.applied.iter().map(|a| format!("{} at {}\n", a.rule, a.at)).collect();
    crate::file::write_atomic(&path.with_extension("txt"), rewrites.concat().as_bytes())
}

/// Candidates that are compared end to end at most, beside the input and its cleaned form.
const FINALISTS: usize = 3;

/// The request as it can be met: where whole models cannot be run, nothing is measured.
fn room_for(request: &Request, room: Room) -> Request {
    let cost = if room.is_tight() { CostKind::Roofline } else { request.cost };
    Request { cost, ..request.clone() }
}

/// Tells the user what is not done for want of memory.
fn explain(room: Room) -> String {
    let (need, limit) = (crate::units::show_bytes(room.need), crate::units::show_bytes(room.limit));
    format!(
        "a full run of this model takes about {need} of memory, {limit} are allowed (--memory allows more): nothing is measured, only rewrites \
         that gain under the price list are used, and each changed region is checked alone"
    )
}

/// What to tell the user before anything is done; refusals that would lose data are failures.
fn warnings_of(model: &Model) -> Result<Vec<String>, Failure> {
    if let Some(field) = model.unknown_field() {
        return Err(Failure::new(format!("the model has a field that this version does not know ({field}): writing it would lose data"))
            .hint("update regraft"));
    }
    let mut warnings: Vec<String> = model.notes().to_vec();
    warnings.extend(kept(model.opaque_nodes()));
    Ok(warnings)
}

/// What is said of nodes that no rule looks into, and why; the most frequent ones first.
fn kept(nodes: &[OpaqueNode]) -> Option<String> {
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *kinds.entry((&node.op_type, &node.why)).or_default() += 1);
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, number)| Reverse(*number));
    let shown = |((op_type, why), number): &((&str, &str), usize)| match number {
        1 => format!("{op_type} ({why})"),
        _ => format!("{op_type} ×{number} ({why})"),
    };
    let mut said: Vec<String> = kinds.iter().take(KINDS_SHOWN).map(shown).collect();
    if kinds.len() > KINDS_SHOWN {
        said.push(format!("{} more kinds", kinds.len() - KINDS_SHOWN));
    }
    let how_many = if nodes.len() == 1 { "1 node is kept as it is".into() } else { format!("{} nodes are kept as they are", nodes.len()) };
    (!nodes.is_empty()).then(|| format!("{how_many}: {}", said.join(", ")))
}

/// Kinds of kept nodes in the warning, at most.
const KINDS_SHOWN: usize = 6;

/// The graph in normal form, and what that removed.
pub fn clean(graph: &Graph) -> (Graph, Vec<(String, usize)>) {
    let mut graph = graph.clone();
    let mut done = Vec::new();
    for (name, removed) in
        [("common-subexpressions", regraft_ir::normal::cse(&mut graph)), ("dead-code", regraft_ir::normal::dce(&mut graph))]
    {
        if removed > 0 {
            done.push((name.to_string(), removed));
        }
    }
    (graph, done)
}

/// Writes the input again, under the output's name. External data goes along.
fn copy_input(model: &Model, input: &Path, output: &Path) -> Result<(), Failure> {
    if model.has_external_data() {
        let saved = model.save(model.graph(), output, &WriteOptions::default());
        return saved.map(|_| ()).map_err(|e| Failure::new(e).hint("check the output path with -o"));
    }
    crate::file::copy_atomic(input, output)
}
