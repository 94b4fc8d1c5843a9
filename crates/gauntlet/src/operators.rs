//! `operators`: operators drawn for the layers of a network. Every one computes, in both spellings
//! and at three small bindings, what its loops say; and how many a second there are, with and
//! without the canonical forms and the distance to the input.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use regraft_ir::eval::{self, NoOpaque};
use regraft_ir::{SplitMix64, Tensor, Value, parallel};
use regraft_runtime::Clock;
use regraft_synth::{Dims, Explorer, Filter, Found, Key, Layer, Loops, Operator, Sampler, Spec, Spelling, State, audit, graph, presets};
use serde::Serialize;

use crate::summary::Summary;

/// Operators drawn for layers: each computes what its loops say; how many a second, with what left
/// out
#[derive(ClapArgs)]
pub struct Args {
    /// Layers: a preset
    #[arg(long, default_value = "resnet-18-layer")]
    preset: String,
    /// Processor time for each way to draw, s
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A few seconds
    #[arg(long)]
    short: bool,
    /// Also compare all operators of at most so many steps for a small layer with those that
    /// canonical forms leave
    #[arg(long, value_name = "DEPTH")]
    audit: Option<usize>,
    /// Also make so many operators for a small layer, and key them once more by their formulas: all
    /// differ
    #[arg(long, value_name = "N")]
    distinct: Option<usize>,
    /// Time for that, s
    #[arg(long, default_value_t = 7200.0)]
    within: f64,
    /// Threads for that
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Seconds of the short mode.
const SHORT: f64 = 2.0;
/// Kernels may differ from their loops by this much, relative to the largest value.
const TOLERANCE: f64 = 1e-9;
/// Terms of loops that are run.
const TERMS: usize = 400_000;

/// What drawing in one way came to.
#[derive(Serialize)]
struct Drawn {
    way: &'static str,
    seconds: f64,
    walks: usize,
    ended: usize,
    distinct: usize,
    windows: usize,
    /// The last two, at each of some equal parts of the time.
    over_time: Vec<[usize; 2]>,
}

/// Parts of the time.
const PARTS: usize = 10;

#[derive(Serialize)]
struct Figures {
    preset: String,
    seed: u64,
    ways: Vec<Drawn>,
}

/// The ways: what is published as ablations, with equal processor time.
const WAYS: [(&str, Filter, bool); 5] = [
    ("with a window", Filter { canonical: true, approximate: false, distance: true }, true),
    ("any", Filter { canonical: true, approximate: false, distance: true }, false),
    ("any, approximate forms too", Filter { canonical: true, approximate: true, distance: true }, false),
    ("any, no canonical forms", Filter { canonical: false, approximate: false, distance: true }, false),
    ("any, no distance", Filter { canonical: true, approximate: false, distance: false }, false),
];

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let spec = presets::find(&args.preset).with_context(|| format!("no preset is called `{}`", args.preset))?.spec;
    let seconds = if args.short { SHORT } else { args.seconds };
    let mut summary = Summary::default();
    let mut ways = Vec::new();
    println!("{:28} {:>8} {:>8} {:>9} {:>8} {:>12}", "drawn", "walks", "ended", "distinct", "windows", "windows / s");
    for (way, filter, windows) in WAYS {
        let (drawn, found) = draw(&spec, way, filter, windows, seconds, args.seed);
        let rate = drawn.windows as f64 / drawn.seconds;
        println!("{way:28} {:>8} {:>8} {:>9} {:>8} {rate:>12.2}", drawn.walks, drawn.ended, drawn.distinct, drawn.windows);
        ways.push(drawn);
        summary.join(found);
    }
    if let Some(depth) = args.audit {
        println!("{:#?}", audit(&small(), depth));
    }
    if let Some(count) = args.distinct {
        summary.join(distinct(count, args.within, args.threads));
    }
    if let Some(path) = &args.json {
        let figures = Figures { preset: args.preset.clone(), seed: args.seed, ways };
        std::fs::write(path, serde_json::to_string_pretty(&figures)? + "\n").with_context(|| path.display().to_string())?;
    }
    Ok(summary.conclude("operators", args.seed))
}

fn draw(spec: &Spec, way: &'static str, filter: Filter, windows: bool, seconds: f64, seed: u64) -> (Drawn, Summary) {
    let clock = Clock::for_threads(1);
    let start = clock.now_ns();
    let elapsed = || (clock.now_ns() - start) as f64 / 1e9;
    let mut explorer = Explorer::new(spec, filter);
    let mut sampler = Sampler::new(&mut explorer, seed, windows);
    let mut all: Vec<Found> = Vec::new();
    let (mut walks, mut ended, mut over_time) = (0, 0, Vec::new());
    let of = |all: &[Found], explorer: &Explorer<'_>| {
        [all.len(), all.iter().filter(|found| found.operator.has_window(&explorer.coordinates)).count()]
    };
    while elapsed() < seconds {
        while over_time.len() < (elapsed() / seconds * PARTS as f64) as usize {
            over_time.push(of(&all, &explorer));
        }
        walks += 1;
        if let Some(found) = sampler.draw(&mut explorer) {
            ended += 1;
            all.extend(found);
        }
    }
    let seconds = elapsed();
    let [distinct, windows] = of(&all, &explorer);
    over_time.resize(PARTS, [distinct, windows]);
    let mut summary = Summary::default();
    let bindings = explorer.bindings().layers().to_vec();
    for (at, found) in all.iter().enumerate() {
        match compare(found, &bindings[at % bindings.len()], &explorer) {
            Some(Ok(())) => summary.held += 1,
            Some(Err(what)) => summary.broken.push(what),
            None => summary.skipped += 1,
        }
    }
    (Drawn { way, seconds, walks, ended, distinct, windows, over_time }, summary)
}

/// Both spellings of an operator against its loops; `None` if these are too many.
fn compare(found: &Found, layer: &Layer, explorer: &Explorer<'_>) -> Option<Result<(), String>> {
    let coordinates = &explorer.coordinates;
    let loops = Loops::at(&found.operator, layer, coordinates).filter(|loops| loops.len() <= TERMS)?;
    let mut random = SplitMix64(1);
    let mut tensor = |shape: &[usize]| Tensor::from_fn(shape.to_vec(), |_| random.normal());
    let x = tensor(&loops.input);
    let weights: Vec<Tensor<f64>> = loops.weights.iter().map(|shape| tensor(shape)).collect();
    let expected = loops.run(&x, &weights);
    let shape = coordinates.spec.batch.iter().map(|_| 1).chain(loops.input.iter().copied()).collect();
    let mut feeds = HashMap::from([("x".to_string(), Value::real(x.reshaped(shape)))]);
    feeds.extend(weights.into_iter().enumerate().map(|(w, weight)| (format!("w{w}"), Value::real(weight))));
    let formula = found.operator.show(coordinates);
    for spelling in [Spelling::Convolution, Spelling::Einsum] {
        let graph = match graph(&found.operator, &found.plan, spelling, &Dims::of(layer), coordinates) {
            Ok(graph) => graph,
            Err(error) => return Some(Err(format!("{formula}: {spelling:?}: {error}"))),
        };
        let found = match eval::run(&graph, &feeds, &mut NoOpaque).map(|mut values| values.remove(0)) {
            Ok(Value::Real(tensor)) => tensor,
            Ok(_) => return Some(Err(format!("{formula}: {spelling:?}: no numbers"))),
            Err(error) => return Some(Err(format!("{formula}: {spelling:?}: {error}"))),
        };
        let largest = expected.data.iter().fold(1.0f64, |most, v| most.max(v.abs()));
        let off = expected.data.iter().zip(&found.data).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest;
        if off > TOLERANCE || expected.data.len() != found.data.len() {
            return Some(Err(format!("{formula}: {spelling:?}: off by {off:.1e}")));
        }
    }
    Some(Ok(()))
}

/// Makes operators for some layers until there are so many together, or no more, or time is up;
/// those whose formulas have a key that another one of the layer has, too, are broken.
fn distinct(count: usize, seconds: f64, threads: usize) -> Summary {
    let (mut summary, mut left, start) = (Summary::default(), count, Instant::now());
    for (at, coefficients) in COEFFICIENTS.iter().enumerate() {
        // What one layer leaves of its share, others have.
        let (spec, begun, layers) = (narrow(coefficients), Instant::now(), COEFFICIENTS.len() - at);
        let time = (seconds - start.elapsed().as_secs_f64()) / layers as f64;
        let formulas = made(&spec, left.div_ceil(layers), time, threads);
        left = left.saturating_sub(formulas.len());
        let took = begun.elapsed().as_secs_f64();
        let (part, keys) = keyed(&spec, &formulas, threads);
        println!("{} operators made for a layer with {} in {took:.0} s: {keys} keys", formulas.len(), coefficients.join(", "));
        summary.join(part);
    }
    summary
}

/// The formulas of so many operators, at most, each of which has a key of its own.
fn made(spec: &Spec, count: usize, seconds: f64, threads: usize) -> Vec<String> {
    let (begun, formulas) = (Instant::now(), Mutex::<HashMap<Key, String>>::default());
    let is_over = || begun.elapsed().as_secs_f64() > seconds || locked(&formulas).len() >= count;
    let firsts: Vec<usize> = (0..threads).collect();
    parallel::map(&firsts, threads, |first| {
        let mut at = *first;
        while !is_over() {
            // What an explorer remembers only grows.
            let mut explorer = Explorer::new(spec, Filter::default());
            let openings: Vec<State> = explorer.openings().into_iter().flatten().skip(at).step_by(threads).take(OPENINGS).collect();
            if openings.is_empty() {
                break;
            }
            at += threads * openings.len();
            openings.into_iter().for_each(|opening| below(&mut explorer, opening, &formulas, &is_over));
        }
    });
    locked(&formulas).drain().map(|(_, formula)| formula).collect()
}

/// Keys formulas; and how many keys there are.
fn keyed(spec: &Spec, formulas: &[String], threads: usize) -> (Summary, usize) {
    let seen: Mutex<HashMap<Key, &str>> = Mutex::default();
    let parts: Vec<&[String]> = formulas.chunks(formulas.len().div_ceil(threads.max(1)).max(1)).collect();
    let parts = parallel::map(&parts, threads, |part| {
        let (mut explorer, mut summary) = (Explorer::new(spec, Filter::default()), Summary::default());
        for formula in *part {
            let key = Operator::parse(formula, &mut explorer.coordinates).ok().and_then(|operator| explorer.key(&operator));
            match key.map(|key| locked(&seen).insert(key, formula)) {
                Some(None) => summary.held += 1,
                Some(Some(other)) => summary.broken.push(format!("{formula} is {other}")),
                None => summary.broken.push(format!("{formula} has no key")),
            }
        }
        summary
    });
    let mut summary = Summary::default();
    parts.into_iter().for_each(|part| summary.join(part));
    (summary, locked(&seen).len())
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Steps that an operator may have beyond those that its sums need.
const SLACK: usize = 6;
/// Sets of sums that one explorer looks at.
const OPENINGS: usize = 8;
/// Known operators in a row after which others are looked for that begin with other sums.
const PATIENCE: usize = 3000;

/// Adds the operators that begin with some sums, until new ones have become rare.
fn below(explorer: &mut Explorer<'_>, opening: State, formulas: &Mutex<HashMap<Key, String>>, is_over: &dyn Fn() -> bool) {
    let Some(distance) = explorer.distance(&opening) else { return };
    let depth = explorer.spec().limits.depth.min(opening.sums.len() + usize::from(distance) + SLACK + 1);
    let mut seen = HashSet::from([opening.clone()]);
    let mut open = vec![(opening.sums.len(), opening)];
    let mut known = 0;
    while let Some((steps, state)) = open.pop().filter(|_| known < PATIENCE && !is_over()) {
        for found in explorer.finals(&state).iter() {
            known += 1;
            if let Entry::Vacant(place) = locked(formulas).entry(found.key) {
                place.insert(found.operator.show(&explorer.coordinates));
                known = 0;
            }
        }
        for child in explorer.children(&state).iter() {
            // More sums are another opening.
            let is_on = !child.state.is_opening(&explorer.coordinates) && steps + 2 + usize::from(child.distance) <= depth;
            if is_on && seen.insert(child.state.clone()) {
                open.push((steps + 1, child.state.clone()));
            }
        }
    }
}

/// Coefficients of the layers: windows, strides and groups.
const COEFFICIENTS: [&[&str]; 6] = [
    &["k = [3, 3]", "s = [2, 3]", "g = [4, 3]"],
    &["k = [5, 3]", "s = [2, 3]", "g = [4, 3]"],
    &["k = [3, 3]", "s = [2, 3]", "g = [8, 3]"],
    &["k = [3, 2]", "l = [5, 2]", "s = [2, 3]"],
    &["k = [3, 2]", "l = [7, 2]", "g = [4, 3]"],
    &["k = [7, 3]", "s = [2, 2]", "g = [4, 2]"],
];

/// A layer with one axis beside its channels: keys of its operators take little time.
fn narrow(coefficients: &[&str]) -> Spec {
    let text = format!(
        r#"
        input = ["C_in", "H"]
        output = ["C_out", "H"]
        unordered = ["C_in", "C_out"]
        dense = "sum r0: C_in, r1: k; x[r0, unfold(i1, r1)] * w[i0, r0, r1]"
        [variables]
        C_in = 3
        C_out = 4
        [coefficients]
        {}
        [[layers]]
        C_in = 32
        C_out = 64
        H = 28
        [limits]
        weight = 2
        most-macs = 4.0
        window-ratio = 1.0
    "#,
        coefficients.join("\n        ")
    );
    Spec::parse(&text).unwrap_or_else(|e| unreachable!("{e}"))
}

/// A layer whose operators can all be counted.
fn small() -> Spec {
    let text = r#"
        input = ["C_in", "H", "H"]
        output = ["C_out", "H", "H"]
        unordered = ["C_in", "C_out"]
        [variables]
        C_in = 2
        C_out = 2
        [coefficients]
        k = [3, 2]
        s = [2, 2]
        [[layers]]
        C_in = 16
        C_out = 32
        H = 8
        [limits]
        weight = 2
    "#;
    Spec::parse(text).unwrap_or_else(|e| unreachable!("{e}"))
}
