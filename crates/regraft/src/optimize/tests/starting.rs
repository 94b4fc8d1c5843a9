//! What a process takes that loads the result, and limits on it.

use regraft_runtime::Startup;

use super::*;
use crate::limits::{Limit, Limits};

/// A thousandth of a second and a megabyte for each operator.
const EACH: Scripted = Scripted { starts: Some(|kinds, _| Ok(startup(kinds.len() as u64))), ..EVEN };

const fn startup(amount: u64) -> Startup {
    Startup { load_ns: amount * 1_000_000, peak_bytes: Some(amount * 1_000_000) }
}

/// A request with a limit on the memory.
fn within(scene: &Scene, memory: Limit) -> Request {
    Request { limits: Limits { load: None, memory: Some(memory) }, ..scene.request() }
}

#[test]
fn what_it_takes_to_start_is_reported() {
    let scene = Scene::new(&CHAIN);
    let report = scene.run(EACH, &scene.request(), &mut Silent);
    let told = report.startup.expect("measured");
    assert_eq!((told.input, told.output), (startup(5), startup(2)));
    let frozen = scene.run(EACH, &Request { frozen: true, ..scene.request() }, &mut Silent);
    assert_eq!(frozen.startup, Some(told));
    let kept = Scene::new(&["Tanh x > y"]);
    let told = kept.run(EACH, &kept.request(), &mut Silent).startup.expect("measured");
    assert_eq!((told.input, told.output), (startup(1), startup(1)));
    // Where no process can be started nothing is told.
    assert_eq!(scene.run(EVEN, &scene.request(), &mut Silent).startup, None);
}

/// The fused operator takes ten times as much as all others.
const HEAVY: Scripted = Scripted { starts: Some(|kinds, _| Ok(startup(if kinds.contains(&"Gelu") { 50 } else { 5 }))), ..EVEN };

#[test]
fn a_result_that_exceeds_a_limit_is_refused_and_the_next_one_has_its_turn() {
    let scene = Scene::new(
        &[&["Relu x > r", "Relu r > q", "Div q 1.4142135 > a", "Erf a > b"], &GELU[2..3], &["Mul q c > d"], &GELU[4..]].concat(),
    );
    scene.run(HEAVY, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Gelu"]);
    for limit in [Limit::Times(2.0), Limit::Most(10_000_000)] {
        let report = scene.run(HEAVY, &within(&scene, limit), &mut Silent);
        let written = scene.written();
        assert!(!written.contains(&"Gelu".into()) && report.check.passed, "{report:?}");
        // What else gains is not lost.
        assert_eq!(written.iter().filter(|kind| *kind == "Relu").count(), 1, "{written:?}: {report:?}");
        assert!(report.not_done.iter().any(|n| n.at == "starting" && n.because.contains("--max-memory")), "{:?}", report.not_done);
    }
    // What it takes to load is limited as well, and within wide limits nothing is refused.
    let slow = Limits { load: Some(Limit::Times(2.0)), memory: None };
    scene.run(HEAVY, &Request { limits: slow, ..scene.request() }, &mut Silent);
    assert!(!scene.written().contains(&"Gelu".into()));
    scene.run(HEAVY, &within(&scene, Limit::Times(20.0)), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Gelu"]);
}

#[test]
fn what_is_not_known_is_not_within_a_limit() {
    let scene = Scene::new(&CHAIN);
    let report = scene.run(EVEN, &within(&scene, Limit::Most(u64::MAX)), &mut Silent);
    assert_eq!((scene.written().len(), report.applied.len()), (CHAIN.len(), 0));
    assert!(report.not_done.iter().any(|n| n.because.contains("not known")), "{:?}", report.not_done);
}

#[test]
fn a_process_that_fails_is_told_and_ends_nothing() {
    let scene = Scene::new(&CHAIN);
    let failing = Scripted { starts: Some(|_, _| Err("it was killed")), ..EVEN };
    let report = scene.run(failing, &scene.request(), &mut Silent);
    assert_eq!((scene.written().len(), report.startup), (2, None));
    let warnings = report.warnings.iter().filter(|warning| warning.contains("it was killed"));
    assert_eq!(warnings.count(), 1, "{:?}", report.warnings);
    // One that only the rewritten model lets fail.
    let heavy = Scripted { starts: Some(|kinds, _| if kinds.len() < 5 { Err("it was killed") } else { Ok(startup(5)) }), ..EVEN };
    let report = scene.run(heavy, &within(&scene, Limit::Times(2.0)), &mut Silent);
    assert_eq!((scene.written().len(), report.startup.map(|told| told.output)), (5, Some(startup(5))));
    assert!(report.not_done.iter().any(|n| n.at == "starting" && n.because.contains("it was killed")), "{:?}", report.not_done);
}

#[test]
fn a_frozen_run_goes_by_what_was_measured() {
    let scene = Scene::new(&GELU);
    scene.run(HEAVY, &scene.request(), &mut Silent);
    let frozen = |limit| Request { frozen: true, ..within(&scene, limit) };
    scene.run(EVEN, &frozen(Limit::Times(2.0)), &mut Silent);
    assert_eq!(scene.written().len(), GELU.len());
    scene.run(HEAVY, &within(&scene, Limit::Times(20.0)), &mut Silent);
    scene.run(EVEN, &frozen(Limit::Times(20.0)), &mut Silent);
    assert_eq!(scene.written(), ["Gelu"]);
}

/// Two products by thin matrices, twice. Each pair is one product by a square one, whose weights
/// are larger: by 32 elements where the inner size is 2, by 48 where it is 1.
pub(super) fn pairs() -> ModelProto {
    let mut model = model(&["MatMul x a > p", "MatMul p b > q", "Tanh q > r", "MatMul r c > s", "MatMul s d > y"]);
    let weight = |(name, rows, columns): (&str, i64, i64)| TensorProto {
        name: Some(name.into()),
        data_type: Some(1),
        dims: vec![rows, columns],
        float_data: (0..rows * columns).map(|at| (at % 7) as f32 / 8.0 - 0.3).collect(),
        ..TensorProto::default()
    };
    let weights = [("a", 8, 2), ("b", 2, 8), ("c", 8, 1), ("d", 1, 8)].map(weight);
    model.graph.as_mut().expect("a graph").initializer.extend(weights);
    model
}

#[test]
fn weights_grow_as_far_as_the_limit_allows_where_that_gains_most() {
    let scene = Scene::new(&CHAIN);
    scene.put(&pairs());
    let weighty = Scripted { starts: Some(|_, elements| Ok(startup(elements as u64))), ..EVEN };
    let all = scene.run(weighty, &scene.request(), &mut Silent);
    assert_eq!((scene.written().len(), all.startup.map(|told| told.output)), (3, Some(startup(128))), "{all:?}");
    // Only the smaller of both fits.
    let report = scene.run(weighty, &within(&scene, Limit::Most(90_000_000)), &mut Silent);
    assert_eq!(scene.written(), ["MatMul", "Tanh", "MatMul", "MatMul"], "{report:?}");
    assert_eq!(report.startup.map(|told| told.output), Some(startup(80)));
    assert!(report.not_done.iter().any(|n| n.because.contains("; weights grow by")), "{:?}", report.not_done);
    let gains = report.applied.iter().map(|applied| applied.gain_ns).sum::<i64>();
    assert!((5_000..20_000).contains(&gains), "gains are told without a surcharge: {gains}");
    // None does.
    scene.run(weighty, &within(&scene, Limit::Most(60_000_000)), &mut Silent);
    assert_eq!(scene.written().len(), 5);
}
