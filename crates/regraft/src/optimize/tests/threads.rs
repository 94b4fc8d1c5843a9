//! What is written gains with the threads of the run and is no slower at one.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use regraft_runtime::{ModelSource, RuntimeError, Session, SessionOptions};

use super::*;

/// Two threads unless told otherwise.
const TWO: Scripted = Scripted { threads: 2, ..EVEN };

/// Without a Neg, a run takes half a millisecond more at one thread.
const SLOW_ALONE: Scripted = Scripted { alone: |kinds| if kinds.contains(&"Neg") { 0 } else { 500_000 }, ..TWO };

/// Numbers of threads with which a runtime was asked to open models.
struct Watched(Scripted, Mutex<BTreeSet<usize>>);

impl Runtime for Watched {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn default_threads(&self) -> usize {
        self.0.default_threads()
    }

    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).insert(options.threads);
        self.0.open(model, options)
    }
}

/// Numbers of threads of the sessions that a run opens.
fn opened(scene: &Scene, runtime: Scripted, request: &Request) -> (Report, Vec<usize>) {
    let watched = Arc::new(Watched(runtime, Mutex::default()));
    let report = scene.run_on(watched.clone(), request, &mut Silent);
    let threads = watched.1.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    (report, threads)
}

#[test]
fn the_number_of_threads_is_what_the_runtime_would_use() {
    let scene = Scene::new(&CHAIN);
    let (report, _) = opened(&scene, TWO, &scene.request());
    assert_eq!((report.threads, scene.written()), (2, vec!["Relu".to_owned(), "Tanh".to_owned()]));
    let single = report.single_thread.expect("timed at one thread").speedup;
    assert!((single.median - 51.0 / 21.0).abs() < 1e-9 && single.pairs > 0, "{single:?}");
    assert!(report.timings[1..].iter().any(|timing| timing.single_thread == Some(single)), "{:?}", report.timings);
    let verdict = render::verdict(&report, &[]);
    assert!(verdict.contains("x faster [2.") && verdict.contains(" with 2 threads, 2.43x ["), "{verdict}");
}

#[test]
fn a_run_at_one_thread_opens_nothing_with_more() {
    let scene = Scene::new(&CHAIN);
    for runtime in [TWO, EVEN] {
        let (report, threads) = opened(&scene, runtime, &Request { threads: Some(1), ..scene.request() });
        assert_eq!((report.threads, threads, report.single_thread), (1, vec![1], None));
        assert_eq!(scene.written(), ["Relu", "Tanh"]);
    }
}

#[test]
fn what_gains_with_several_threads_and_loses_at_one_is_refused() {
    let scene = Scene::new(&CHAIN);
    let report = scene.run(SLOW_ALONE, &scene.request(), &mut Silent);
    // A part of it gains at both.
    assert_eq!(scene.written(), ["Relu", "Neg", "Neg", "Tanh"], "{:?}", report.timings);
    assert!(report.single_thread.is_some_and(|single| single.speedup.low > 1.0), "{:?}", report.single_thread);
    let said = report.not_done.iter().find(|n| n.at == "1 thread").expect("why not the others");
    assert!(said.because.starts_with("it runs 0.") && said.because.contains("times as fast as the input there"), "{said:?}");
    // All that it finds is slower at one thread.
    let scene = Scene::new(&["Neg x > a", "Neg a > b", "Tanh b > y"]);
    let report = scene.run(SLOW_ALONE, &scene.request(), &mut Silent);
    assert_eq!((scene.written().len(), report.speedup, report.single_thread), (3, Speedup::NONE, None));
    assert!(report.not_done.iter().any(|n| n.at == "1 thread"), "{:?}", report.not_done);
    // At one thread only one matters.
    let report = scene.run(TWO, &Request { threads: Some(1), ..scene.request() }, &mut Silent);
    assert!(scene.written() == ["Tanh"] && report.speedup.low > 1.0, "{report:?}");
}

#[test]
fn a_gain_at_one_thread_only_is_none() {
    let scene = Scene::new(&["Neg x > a", "Neg a > b", "Tanh b > y"]);
    let even_together =
        Scripted { besides: |kinds| 20_000 * (3 - kinds.len() as u64) / 2, alone: |kinds| 90_000 * kinds.len() as u64, ..TWO };
    let report = scene.run(even_together, &scene.request(), &mut Silent);
    assert_eq!((scene.written().len(), report.speedup), (3, Speedup::NONE), "{report:?}");
}

#[test]
fn a_frozen_run_remembers_both() {
    let scene = Scene::new(&CHAIN);
    let first = scene.run(TWO, &scene.request(), &mut Silent);
    let (frozen, _) = opened(&scene, TWO, &Request { frozen: true, ..scene.request() });
    let both = |report: &Report| (report.speedup.pairs, report.single_thread.map(|single| single.speedup.pairs));
    assert_eq!((frozen.applied.len(), both(&frozen)), (first.applied.len(), both(&first)));
    let scene = Scene::new(&["Neg x > a", "Neg a > b", "Tanh b > y"]);
    scene.run(SLOW_ALONE, &scene.request(), &mut Silent);
    scene.run(SLOW_ALONE, &Request { frozen: true, ..scene.request() }, &mut Silent);
    assert_eq!(scene.written().len(), 3);
    // What was learned with two threads is not asked at one.
    let (report, threads) = opened(&scene, SLOW_ALONE, &Request { frozen: true, threads: Some(1), ..scene.request() });
    assert!(report.applied.is_empty() && threads == [1], "{report:?}");
}
