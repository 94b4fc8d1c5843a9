//! How far the result is from what the machine can do.

use super::starting::pairs;
use super::*;
use crate::report::Headroom;

fn of(report: &Report) -> &Headroom {
    report.headroom.as_ref().expect("told")
}

/// Tanh takes longest.
const UNEVEN: Scripted = Scripted { operator: |kind| if kind == "Tanh" { 40_000 } else { 10_000 }, ..EVEN };

#[test]
fn arithmetic_and_the_slowest_operators_are_told() {
    let scene = Scene::new(&CHAIN);
    scene.put(&pairs());
    let report = scene.run(UNEVEN, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["MatMul", "Tanh", "MatMul"]);
    let told = of(&report);
    // Rows, twice for a multiply-add, and the elements of the weights.
    assert_eq!((told.flops, told.uncounted), ((4.0 * 2.0 * 48.0, 4.0 * 2.0 * 128.0), (0, 0)));
    let (peak, (before, after)) = (told.peak.expect("measured"), told.share.expect("timed"));
    let speeds = [(told.flops.0, 81e-6), (told.flops.1, 61e-6)].map(|(flops, seconds)| flops / seconds / peak);
    assert!((before / speeds[0] - 1.0).abs() < 1e-6 && (after / speeds[1] - 1.0).abs() < 1e-6, "{told:?}");
    assert_eq!(told.slowest.iter().map(|slow| slow.operator.as_str()).collect::<Vec<_>>(), ["Tanh", "MatMul", "MatMul"]);
    let tanh = &told.slowest[0];
    assert!(tanh.at == "r" && (tanh.ns - 40_000.0).abs() < 1.0 && tanh.limit_ns < tanh.ns, "{tanh:?}");
    assert!((tanh.share - 40.0 / 60.0).abs() < 1e-4, "{tanh:?}");
    // A later run knows what the machine reaches, and looks where the time goes.
    let again = scene.run(UNEVEN, &scene.request(), &mut Silent);
    let (again, measured) = (of(&again), again.measured_models);
    assert!(measured == 0 && again.peak.is_some_and(|known| (known / peak - 1.0).abs() < 1e-6), "{again:?}");
    let names = |told: &Headroom| told.slowest.iter().map(|slow| slow.at.clone()).collect::<Vec<_>>();
    assert_eq!((again.flops, names(again)), (told.flops, names(told)));
}

#[test]
fn of_a_kept_input_the_same_is_told_twice() {
    let scene = Scene::new(&["Tanh x > y"]);
    let report = scene.run(EVEN, &scene.request(), &mut Silent);
    let told = of(&report);
    assert_eq!((told.flops, told.share), ((0.0, 0.0), Some((0.0, 0.0))));
    assert_eq!(told.slowest.iter().map(|slow| slow.at.as_str()).collect::<Vec<_>>(), ["y"]);
}

#[test]
fn what_was_not_measured_is_left_out() {
    let scene = Scene::new(&CHAIN);
    scene.put(&pairs());
    let short = scene.run(UNEVEN, &Request { memory: Some(1), ..scene.request() }, &mut Silent);
    let told = of(&short);
    assert_eq!((told.peak, told.share, told.slowest.len(), told.flops.0), (None, None, 0, 384.0));
    scene.run(UNEVEN, &scene.request(), &mut Silent);
    let frozen = scene.run(UNEVEN, &Request { frozen: true, ..scene.request() }, &mut Silent);
    let told = of(&frozen);
    assert!(told.peak.is_some() && told.share.is_none() && told.slowest.is_empty() && told.flops.1 == 1024.0, "{told:?}");
}
