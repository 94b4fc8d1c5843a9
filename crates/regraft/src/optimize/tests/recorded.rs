//! Decisions by prices that were recorded on another machine.

use std::sync::Arc;
use std::time::Duration;

use regraft_cost::Recording;
use regraft_runtime::Runtime;

use super::{EVEN, GELU, Scene};
use crate::optimize::scripted::Scripted;
use crate::optimize::{CostKind, Request, Silent, optimize_on};
use crate::record::{RecordRequest, record_on};
use crate::recording::Recorded;
use crate::render::verdict;
use crate::report::Report;

/// Where a fused operator is slow.
const SLOW: Scripted = Scripted { operator: |kind| if kind == "Gelu" { 1_000_000 } else { 10_000 }, ..EVEN };

impl Scene {
    /// What a device records of the model.
    fn recorded(&self, device: Scripted) -> Recording {
        let request = RecordRequest {
            models: vec![self.path("in.onnx")],
            shapes: Vec::new(),
            binds: Vec::new(),
            budget: Duration::from_secs(60),
            threads: None,
            seed: 0,
            runtime: Default::default(),
        };
        let runtime: Arc<dyn Runtime> = Arc::new(device);
        record_on(&runtime, &request, &mut Silent).expect("a model that runs").expect("nobody interrupts").recording
    }

    /// A request that decides by a recording.
    fn predicting(&self, recording: Recording) -> Request {
        let recorded = Recorded { file: "device.json".into(), recording };
        Request { cost: CostKind::Recorded(Arc::new(recorded)), ..self.request() }
    }

    fn predicted(&self, here: Scripted, recording: Recording) -> Report {
        self.run(here, &self.predicting(recording), &mut Silent)
    }
}

/// Only what the model itself consists of.
fn without_variants(mut recording: Recording) -> Recording {
    let own: Vec<String> = recording.models[0].profile.iter().map(|(_, signature, _)| signature.clone()).collect();
    recording.prices.retain(|price| own.contains(&price.signature));
    recording
}

#[test]
fn a_recording_knows_what_rules_would_make() {
    let scene = Scene::new(&GELU);
    let recording = scene.recorded(EVEN);
    let [model] = recording.models.as_slice() else { panic!("{recording:?}") };
    assert_eq!((model.run_ns, model.spread_ns, model.shapes.clone()), (51_000.0, 0.0, vec![("x".to_string(), vec![4, 8])]));
    assert!(model.variants > 0 && model.profile.len() == 5 && model.digest[0].len() == 64, "{model:?}");
    let gelu = recording.prices.iter().find(|price| price.signature.starts_with("Gelu")).expect("the fused operator");
    assert!(gelu.kernel.is_some() && gelu.samples > 0, "{gelu:?}");
    assert_eq!(Recording::parse(&recording.to_text()).as_ref(), Ok(&recording));
    assert!(!scene.path("store.sqlite").exists(), "the machine's own store is not touched");
}

#[test]
fn the_device_decides_and_not_this_machine() {
    let scene = Scene::new(&GELU);
    // What is fast here is slow there, and the other way round.
    let report = scene.predicted(EVEN, scene.recorded(SLOW));
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    assert!(report.prediction.is_some());
    let scene = Scene::new(&GELU);
    let report = scene.predicted(SLOW, scene.recorded(EVEN));
    assert!(scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    let prediction = report.prediction.as_ref().expect("a prediction");
    assert!((report.speedup.median - 51.0 / 11.0).abs() < 0.2 && report.speedup.pairs == 0, "{:?}", report.speedup);
    assert!(report.speedup.low > 1.0 && report.speedup.low < report.speedup.median, "{:?}", report.speedup);
    assert!(prediction.carried < 0.01 && !prediction.is_kept && prediction.models.0 != prediction.models.1, "{prediction:?}");
    assert!(report.check.passed && report.cost == "recorded" && report.startup.is_none(), "{report:?}");
    assert!(report.trials.iter().all(|trial| trial.measured.is_none()), "{:?}", report.trials);
    let said = verdict(&report, &[]);
    for part in ["predicted 4.", "from prices recorded on", "not measured here", "`regraft bench --here "] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_was_not_recorded_is_carried_over() {
    let slower = Scripted { operator: |_| 30_000, ..EVEN };
    let scene = Scene::new(&GELU);
    let recording = without_variants(scene.recorded(slower));
    assert!(recording.prices.iter().all(|price| !price.signature.starts_with("Gelu")));
    let report = scene.predicted(EVEN, recording);
    assert!(scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    let prediction = report.prediction.as_ref().expect("a prediction");
    assert!(prediction.carried > 0.5 && prediction.shared >= 3, "{prediction:?}");
    // Five operators of thirty microseconds become one.
    assert!((report.speedup.median - 151.0 / 31.0).abs() < 1.0, "{:?}", report.speedup);
    assert!(report.speedup.high / report.speedup.low > 1.1, "less sure than what was recorded: {:?}", report.speedup);
    assert!(verdict(&report, &[]).contains("carried over from this machine"), "{}", verdict(&report, &[]));
}

#[test]
fn a_gain_within_its_uncertainty_is_not_taken() {
    let scene = Scene::new(&["Relu x > a", "Relu a > b", "Tanh b > y"]);
    let tanh = Scripted { operator: |kind| if kind == "Tanh" { 1_000_000 } else { 20_000 }, ..EVEN };
    let sure = scene.recorded(tanh);
    let report = scene.predicted(EVEN, sure.clone());
    assert_eq!(scene.written(), ["Relu", "Tanh"], "{report:?}");
    let mut noisy = sure;
    noisy.prices.iter_mut().for_each(|price| (price.spread_ns, price.samples) = (8 * price.median_ns, 1));
    let report = scene.predicted(EVEN, noisy);
    assert_eq!(scene.written(), ["Relu", "Relu", "Tanh"], "{report:?}");
    let said = verdict(&report, &[]);
    assert!(said.contains("no gain beyond its uncertainty is predicted; the input was written unchanged"), "{said}");
    assert!(!said.contains("bench --here"), "{said}");
}

#[test]
fn frozen_runs_depend_on_the_recording_and_the_store_alone() {
    let scene = Scene::new(&GELU);
    let recording = scene.recorded(EVEN);
    // Some store must be there.
    scene.run(EVEN, &scene.request(), &mut Silent);
    let request = Request { frozen: true, ..scene.predicting(recording) };
    let report = scene.run(SLOW, &request, &mut Silent);
    assert!(scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    assert_eq!((report.measured_models, report.speedup.pairs), (0, 0));
    let first = std::fs::read(scene.path("out.onnx")).expect("an output");
    scene.run(SLOW, &request, &mut Silent);
    assert_eq!(std::fs::read(scene.path("out.onnx")).expect("an output"), first);
}

#[test]
fn recordings_of_something_else_are_refused() {
    let scene = Scene::new(&GELU);
    let good = scene.recorded(EVEN);
    let refused = |change: &dyn Fn(&mut Recording), parts: &[&str]| {
        let mut recording = good.clone();
        change(&mut recording);
        let runtime: Arc<dyn Runtime> = Arc::new(EVEN);
        let why = optimize_on(&|| Ok(runtime.clone()), &scene.predicting(recording), &mut Silent).expect_err("refused").to_string();
        parts.iter().for_each(|part| assert!(why.contains(part), "{why}"));
        assert!(why.contains("(hint: ") && !scene.path("out.onnx").exists(), "{why}");
    };
    refused(&|r| r.target.runtime = "openvino 2026".into(), &["was recorded under openvino 2026", "--target openvino"]);
    refused(&|r| r.models[0].digest[0] = "00".into(), &["is not about", "it was recorded with in.onnx", "cost record"]);
    refused(&|r| r.models[0].shapes[0].1[0] = 5, &["was recorded at x:5,8, and this run is at x:4,8", "--shape x:4,8"]);
    let request = Request { untimed: true, ..scene.predicting(good.clone()) };
    let runtime: Arc<dyn Runtime> = Arc::new(EVEN);
    assert!(optimize_on(&|| Ok(runtime.clone()), &request, &mut Silent).expect_err("refused").cause.contains("--untimed"));
}
