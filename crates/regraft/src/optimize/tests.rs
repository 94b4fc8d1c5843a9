//! The pipeline on a scripted runtime: rounds, pruning, budget and interruption, whatever the
//! machine's clock says.

mod headroom;
mod recorded;
mod starting;
mod store;
mod threads;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto, type_proto,
};
use regraft_runtime::{OptLevel, Runtime};
use tempfile::TempDir;

use super::scripted::Scripted;
use super::{Observer, Phase, Request, Silent, optimize_on};
use crate::render;
use crate::report::{Aim, Report, Speedup};
use crate::units::{ShapeArg, Size};

/// A folder with a model made of operators, each written as `Operator inputs > output`; constants
/// are numbers.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new(operators: &[&str]) -> Scene {
        let scene = Scene { folder: tempfile::tempdir().expect("a temporary folder") };
        scene.put(&model(operators));
        scene
    }

    /// Puts a model in the place of the one that is optimized.
    fn put(&self, model: &ModelProto) {
        std::fs::write(self.path("in.onnx"), model.encode_to_vec()).expect("writable");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn request(&self) -> Request {
        let mut request = Request::new(self.path("in.onnx"), self.path("out.onnx"));
        (request.cost_store, request.certificate) = (Some(self.path("store.sqlite")), Some(self.path("out.certificate")));
        request
    }

    fn run(&self, runtime: Scripted, request: &Request, observer: &mut dyn Observer) -> Report {
        self.run_on(Arc::new(runtime), request, observer)
    }

    fn run_on(&self, runtime: Arc<dyn Runtime>, request: &Request, observer: &mut dyn Observer) -> Report {
        optimize_on(&|| Ok(runtime.clone()), request, observer).expect("a model that runs")
    }

    /// Types of the operators that were written.
    fn written(&self) -> Vec<String> {
        let bytes = std::fs::read(self.path("out.onnx")).expect("an output");
        let graph = ModelProto::decode(bytes.as_slice()).expect("a model").graph.expect("a graph");
        graph.node.iter().map(|node| node.op_type().to_owned()).collect()
    }
}

fn model(operators: &[&str]) -> ModelProto {
    let dim = |size| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(size)),
        ..tensor_shape_proto::Dimension::default()
    };
    let ty = type_proto::Tensor { elem_type: Some(1), shape: Some(TensorShapeProto { dim: vec![dim(4), dim(8)] }) };
    let value = |name: &str| ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(ty.clone())), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    };
    let mut graph = GraphProto { name: Some("g".into()), input: vec![value("x")], output: vec![value("y")], ..GraphProto::default() };
    for text in operators {
        let (left, output) = text.split_once(" > ").expect("an output");
        let mut words = left.split(' ');
        let op_type = words.next().map(str::to_owned);
        let inputs: Vec<String> = words.map(str::to_owned).collect();
        for number in inputs.iter().filter(|input| input.parse::<f32>().is_ok()) {
            if graph.initializer.iter().any(|tensor| tensor.name() == number) {
                continue;
            }
            let tensor = TensorProto {
                name: Some(number.clone()),
                data_type: Some(1),
                float_data: number.parse().into_iter().collect(),
                ..TensorProto::default()
            };
            graph.initializer.push(tensor);
        }
        let name = Some(format!("{}_{output}", op_type.clone().unwrap_or_default()));
        let attribute: Vec<AttributeProto> = Vec::new();
        graph.node.push(NodeProto { op_type, input: inputs, output: vec![output.into()], name, attribute, ..NodeProto::default() });
    }
    let opset_import = vec![OperatorSetIdProto { version: Some(20), ..OperatorSetIdProto::default() }];
    ModelProto { graph: Some(graph), opset_import, ir_version: Some(9), ..ModelProto::default() }
}

/// GELU as exporters write it.
const GELU: [&str; 5] = ["Div x 1.4142135 > a", "Erf a > b", "Add b 1 > c", "Mul x c > d", "Mul d 0.5 > y"];

/// Every operator takes ten microseconds.
const EVEN: Scripted = Scripted {
    operator: |_| 10_000,
    per_row: |_| 0,
    besides: |_| 0,
    refuses: |_, _| None,
    starts: None,
    threads: 1,
    alone: |_| 0,
    rows: None,
};

#[test]
fn what_is_faster_is_found_measured_checked_and_written() {
    let scene = Scene::new(&["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > d", "Tanh d > y"]);
    let report = scene.run(EVEN, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Tanh"]);
    assert!((report.speedup.median - 51.0 / 21.0).abs() < 1e-9, "{:?}", report.speedup);
    assert!(report.check.passed && report.measured_models > 0 && report.ended == "complete", "{report:?}");
    assert_eq!(report.check.replay.as_ref().map(|replay| replay.proved == replay.steps && replay.steps > 0), Some(true));
}

#[test]
fn a_fusion_that_is_slow_is_measured_and_not_kept() {
    let slow = Scripted { operator: |kind| if kind == "Gelu" { 1_000_000 } else { 10_000 }, ..EVEN };
    let scene = Scene::new(&GELU);
    let report = scene.run(slow, &scene.request(), &mut Silent);
    assert!(report.measured_models > 0);
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    assert!(report.speedup.median >= 1.0, "{:?}", report.speedup);
    let scene = Scene::new(&GELU);
    let report = scene.run(EVEN, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Gelu"], "{report:?}");
}

#[test]
fn a_rule_whose_gain_is_lost_elsewhere_is_left_out() {
    // No single operator gets slower, but the whole does: without a Neg, a run takes half a
    // millisecond more.
    let hidden = Scripted { besides: |kinds| if kinds.contains(&"Neg") { 0 } else { 500_000 }, ..EVEN };
    let scene = Scene::new(&["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > d", "Tanh d > y"]);
    let report = scene.run(hidden, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Neg", "Neg", "Tanh"], "{:?}", report.timings);
}

#[test]
fn what_only_a_guess_speaks_against_is_tried_in_the_end() {
    // A Gelu takes less than the launches of the five operators that it stands for seem to take.
    let scene = Scene::new(&["Tanh x > a", "Gelu a > y"]);
    let quick = |kind: &str| match kind {
        "Tanh" => 50_000,
        "Gelu" => 4_000,
        _ => 100,
    };
    let quick = Scripted { operator: quick, ..EVEN };
    let report = scene.run(quick, &scene.request(), &mut Silent);
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{:?}", report.trials);
    assert!(report.trials.iter().any(|trial| trial.aim == Aim::Explore), "{:?}", report.trials);
}

/// Whether an excerpt was measured, and how many whole models.
#[derive(Default)]
struct Trials {
    excerpts: usize,
    models: usize,
}

impl Observer for Trials {
    fn phase(&mut self, phase: Phase, detail: &str) {
        let measured = phase == Phase::Measure && detail.contains("times as fast");
        *(if detail.starts_with("excerpt") { &mut self.excerpts } else { &mut self.models }) += usize::from(measured);
    }

    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn what_is_repeated_is_tried_on_an_excerpt_first() {
    const BLOCKS: usize = 30;
    let name = |at: usize, of: &str| match (at, of) {
        (0, "x") => "x".to_string(),
        (_, "x") => format!("y{}", at - 1),
        (at, "y") if at + 1 == BLOCKS => "y".to_string(),
        _ => format!("{of}{at}"),
    };
    let renamed = |at: usize, text: &str| {
        let one = |word: &str| if ["x", "a", "b", "c", "d", "y"].contains(&word) { name(at, word) } else { word.to_string() };
        text.split(' ').map(one).collect::<Vec<_>>().join(" ")
    };
    let operators: Vec<String> = (0..BLOCKS).flat_map(|at| GELU.map(|text| renamed(at, text))).collect();
    let operators: Vec<&str> = operators.iter().map(String::as_str).collect();
    let scene = Scene::new(&operators);
    scene.put(&open(model(&operators)));
    let request = Request { binds: vec![("N".into(), vec![1, 8])], ..scene.request() };
    let slow = Scripted { operator: |kind| if kind == "Gelu" { 1_000_000 } else { 10_000 }, ..EVEN };
    let mut trials = Trials::default();
    let report = scene.run(slow, &request, &mut trials);
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{:?}", scene.written());
    assert!(trials.excerpts > 0 && report.measured_excerpts == trials.excerpts, "{report:?}");
    let of_excerpts = report.trials.iter().filter(|trial| trial.model.starts_with("excerpt: ")).count();
    assert_eq!((of_excerpts, report.trials.len() - of_excerpts), (report.measured_excerpts, report.measured_models), "{:?}", report.trials);
    // In order, one after the other.
    assert!(report.trials.is_sorted_by(|a, b| a.begun + a.seconds <= b.begun), "{:?}", report.trials);
    assert!(report.trials.iter().all(|trial| trial.measured.is_some() && (0.0..=1.0).contains(&trial.guessed)), "{:?}", report.trials);
    let scene = Scene::new(&operators);
    scene.put(&open(model(&operators)));
    let mut trials = Trials::default();
    let request = Request { binds: vec![("N".into(), vec![1, 8])], ..scene.request() };
    let report = scene.run(EVEN, &request, &mut trials);
    assert_eq!(scene.written(), vec!["Gelu"; BLOCKS], "{report:?}");
    // The first model that is measured as a whole is the right one.
    assert!(trials.excerpts > 0 && trials.models <= 2 && report.measured_models == trials.models, "{} {}", trials.excerpts, trials.models);
}

/// The same with an open number of rows.
fn open(mut model: ModelProto) -> ModelProto {
    let values = model.graph.iter_mut().flat_map(|graph| graph.input.iter_mut().chain(&mut graph.output));
    for value in values {
        let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else { continue };
        let rows = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim).next().expect("two sizes");
        rows.value = Some(tensor_shape_proto::dimension::Value::DimParam("N".into()));
    }
    model
}

#[test]
fn what_suits_one_of_several_sizes_only_is_not_searched_for() {
    // Fused, the GELU is faster for one row and slower for eight; without the negations, the model
    // is faster for any number.
    let fused = Scripted { per_row: |kind| if kind == "Gelu" { 20_000 } else { 0 }, ..EVEN };
    let gelu = GELU.map(|text| text.replace(" x", " m"));
    let operators: Vec<&str> = ["Neg x > n", "Neg n > m"].into_iter().chain(gelu.iter().map(String::as_str)).collect();
    let scene = Scene::new(&operators);
    scene.put(&open(model(&operators)));
    let written = |rows: &[i64]| {
        let request = Request { binds: vec![("N".into(), rows.to_vec())], ..scene.request() };
        let report = scene.run(fused, &request, &mut Silent);
        assert!(report.speedup.median > 1.0 && report.bindings.iter().all(|at| at.speedup.median > 1.0), "{rows:?}: {report:?}");
        scene.written()
    };
    assert_eq!(written(&[1]), ["Gelu"]);
    for rows in [&[8][..], &[1, 8], &[8, 1]] {
        let unfused = written(rows);
        // To divide by a number takes as long as to multiply by another.
        assert!(["Div", "Mul"].contains(&&*unfused[0]), "{rows:?}: {unfused:?}");
        assert_eq!(unfused[1..], ["Erf", "Add", "Mul", "Mul"], "{rows:?}");
    }
}

#[test]
fn without_time_the_input_is_written_and_said_so() {
    let scene = Scene::new(&["Relu x > a", "Relu a > y"]);
    let report = scene.run(EVEN, &Request { budget: Duration::ZERO, ..scene.request() }, &mut Silent);
    assert_eq!((report.measured_models, report.ended.as_str(), scene.written().len()), (0, "budget", 2));
    assert!(report.applied.is_empty() && report.speedup.pairs == 0);
}

/// Interrupts after this many models were measured.
struct After(usize, Cell<usize>);

impl Observer for After {
    fn phase(&mut self, phase: Phase, detail: &str) {
        let measured = phase == Phase::Measure && detail.contains("times as fast");
        self.1.set(self.1.get() + usize::from(measured));
    }

    fn interrupted(&self) -> bool {
        self.1.get() >= self.0
    }
}

#[test]
fn an_interruption_keeps_the_best_so_far() {
    let operators = ["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > d", "Tanh d > y"];
    let scene = Scene::new(&operators);
    let report = scene.run(EVEN, &scene.request(), &mut After(1, Cell::new(0)));
    assert_eq!((report.measured_models, report.ended.as_str()), (1, "interrupted"));
    assert!(scene.written().len() < operators.len() && report.check.passed, "{:?}", scene.written());
    let scene = Scene::new(&operators);
    let report = scene.run(EVEN, &scene.request(), &mut After(0, Cell::new(0)));
    assert_eq!((report.measured_models, scene.written().len()), (0, operators.len()));
}

#[test]
fn a_second_run_repeats_what_the_first_one_found_without_searching() {
    let scene = Scene::new(&["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > d", "Tanh d > y"]);
    let first = scene.run(EVEN, &scene.request(), &mut Silent);
    let second = scene.run(EVEN, &scene.request(), &mut Silent);
    assert_eq!((second.visited, second.measured_models), (0, 0));
    assert_eq!(first.applied.len(), second.applied.len());
    assert!(second.check.replay.is_some_and(|replay| replay.remembered));
    let frozen = scene.run(EVEN, &Request { frozen: true, ..scene.request() }, &mut Silent);
    assert_eq!((frozen.measured_models, frozen.applied.len()), (0, first.applied.len()));
}

/// Five operators, three of which can go.
const CHAIN: [&str; 5] = ["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > d", "Tanh d > y"];

/// A runtime whose optimizer stumbles over one Relu after another.
fn no_relu_twice(kinds: &[&str], level: OptLevel) -> Option<&'static str> {
    let stumbles = level > OptLevel::Disabled && kinds.windows(2).any(|pair| pair == ["Relu", "Relu"]);
    stumbles.then_some("`b` is lost")
}

#[test]
fn a_model_that_the_runtime_refuses_is_rescued() {
    let scene = Scene::new(&CHAIN);
    let picky = Scripted { refuses: no_relu_twice, ..EVEN };
    let report = scene.run(picky, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Tanh"]);
    // The input is timed without the optimizer that refuses it.
    assert!((report.speedup.median - 51.0 / 21.0).abs() < 1e-9, "{:?}", report.speedup);
    let refused = report.refused.as_ref().map(|refused| (refused.level.as_str(), refused.cause.as_str()));
    assert_eq!((refused, report.rescued, report.check.passed), (Some(("disabled", "`b` is lost")), true, true), "{report:?}");
    let verdict = render::verdict(&report, &[]);
    assert!(verdict.starts_with("verdict: rescued: the runtime loads it") && verdict.contains("2.43x faster"), "{verdict}");
    assert!(report.warnings.iter().any(|warning| warning.contains("with it off: `b` is lost")), "{:?}", report.warnings);
    for again in [scene.request(), Request { frozen: true, ..scene.request() }] {
        let again = scene.run(picky, &again, &mut Silent);
        assert_eq!((again.rescued, again.measured_models, again.applied.len()), (true, 0, report.applied.len()), "{again:?}");
    }
}

#[test]
fn to_load_is_a_gain_even_where_it_is_slower() {
    let slow = |kinds: &[&str]| if kinds.iter().filter(|kind| **kind == "Relu").count() < 2 { 500_000 } else { 0 };
    let scene = Scene::new(&CHAIN);
    let report = scene.run(Scripted { refuses: no_relu_twice, besides: slow, ..EVEN }, &scene.request(), &mut Silent);
    assert!(report.rescued && report.speedup.high < 1.0, "{:?}", report.speedup);
    assert!(render::verdict(&report, &[]).contains("x slower ["), "{}", render::verdict(&report, &[]));
}

#[test]
fn where_no_rewrite_helps_the_input_is_written_and_said_so() {
    let scene = Scene::new(&CHAIN);
    let never = Scripted { refuses: |_, level| (level > OptLevel::Basic).then_some("never"), ..EVEN };
    let report = scene.run(never, &scene.request(), &mut Silent);
    let [input, output] = ["in.onnx", "out.onnx"].map(|name| std::fs::read(scene.path(name)).expect("a model"));
    assert!(input == output && report.applied.is_empty() && !report.rescued, "{report:?}");
    assert_eq!(report.refused.as_ref().map(|refused| refused.level.as_str()), Some("basic"));
    let verdict = render::verdict(&report, &[]);
    assert!(
        verdict.contains("no rewrite was found that it loads; the input was written unchanged, and runs with it at `basic`"),
        "{verdict}"
    );
}

#[test]
fn a_rewrite_that_the_prices_do_not_suggest_may_be_the_one_that_helps() {
    let slow = Scripted { operator: |kind| if kind == "Gelu" { 1_000_000 } else { 10_000 }, ..EVEN };
    let scene = Scene::new(&GELU);
    let report = scene.run(slow, &scene.request(), &mut Silent);
    assert!(report.measured_models > 0 && !scene.written().contains(&"Gelu".to_owned()), "{report:?}");
    let no_erf = |kinds: &[&str], level| (level > OptLevel::Disabled && kinds.contains(&"Erf")).then_some("Erf node 'b' is lost.");
    let report = scene.run(Scripted { refuses: no_erf, ..slow }, &scene.request(), &mut Silent);
    assert!(report.rescued && report.check.passed && report.speedup.median < 0.1, "{report:?}");
    assert_eq!(scene.written(), ["Gelu"]);
}

#[test]
fn several_obstacles_are_taken_one_after_the_other() {
    let slow = Scripted { operator: |kind| if ["Gelu", "Mish"].contains(&kind) { 1_000_000 } else { 10_000 }, ..EVEN };
    let mish = ["Softplus e > f", "Tanh f > g", "Mul e g > y"];
    let scene = Scene::new(&[&GELU[..4], &["Mul d 0.5 > e"], &mish].concat());
    scene.run(slow, &scene.request(), &mut Silent);
    assert_eq!(scene.written().len(), 8);
    let refuses = |kinds: &[&str], level: OptLevel| {
        let stumbles = |kind| level > OptLevel::Disabled && kinds.contains(&kind);
        if stumbles("Erf") { Some("`b`") } else { stumbles("Softplus").then_some("`f`") }
    };
    let report = scene.run(Scripted { refuses, ..slow }, &scene.request(), &mut Silent);
    assert!(report.rescued && report.check.passed, "{report:?}");
    assert_eq!(scene.written(), ["Gelu", "Mish"]);
}

#[test]
fn a_rule_whose_result_the_runtime_refuses_is_left_out() {
    let scene =
        Scene::new(&["Relu x > r", "Relu r > q", "Div q 1.4142135 > a", "Erf a > b", "Add b 1 > c", "Mul q c > d", "Mul d 0.5 > y"]);
    let no_gelu = Scripted { refuses: |kinds, _| kinds.contains(&"Gelu").then_some("there is no Gelu"), ..EVEN };
    let report = scene.run(no_gelu, &scene.request(), &mut Silent);
    let written = scene.written();
    assert_eq!(written.iter().filter(|kind| *kind == "Relu").count(), 1, "{written:?}");
    assert!(!written.contains(&"Gelu".to_owned()) && report.speedup.low > 1.0 && report.refused.is_none(), "{report:?}");
    assert!(report.not_done.iter().any(|n| n.because.contains("was left out: there is no Gelu")), "{:?}", report.not_done);
}

#[test]
fn an_input_that_is_refused_only_when_written_anew_is_made_faster() {
    // Without the dead operator, the runtime stumbles over what is left.
    let scene = Scene::new(&[&CHAIN[..], &["Abs x > unread"]].concat());
    let picky = Scripted { refuses: |kinds, level| if kinds.contains(&"Abs") { None } else { no_relu_twice(kinds, level) }, ..EVEN };
    let report = scene.run(picky, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Tanh"]);
    assert!(report.refused.is_none() && !report.rescued && report.speedup.low > 1.0, "{report:?}");
    assert!(report.not_done.iter().any(|n| n.what == "the input written anew"), "{:?}", report.not_done);
}

#[test]
fn a_stored_result_that_the_runtime_refuses_now_is_searched_for_anew() {
    let scene = Scene::new(&CHAIN);
    scene.run(EVEN, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Tanh"]);
    let changed = Scripted { refuses: |kinds, _| (kinds.len() == 2).then_some("not any more"), ..EVEN };
    let report = scene.run(changed, &scene.request(), &mut Silent);
    // A part of it still gains.
    let written = scene.written().len();
    assert!((3..CHAIN.len()).contains(&written) && report.speedup.low > 1.0 && report.check.passed, "{report:?}");
    assert!(report.not_done.iter().any(|n| n.because.contains("not any more")), "{:?}", report.not_done);
    let never = Scripted { refuses: |kinds, _| (kinds.len() < CHAIN.len()).then_some("not any more"), ..EVEN };
    let report = scene.run(never, &scene.request(), &mut Silent);
    assert_eq!((report.speedup, scene.written().len()), (Speedup::NONE, CHAIN.len()), "{report:?}");
}

#[test]
fn a_size_that_is_no_longer_open_is_no_correction() {
    let scene = Scene::new(&["Relu x > a", "Relu a > y"]);
    let mut open = model(&["Relu x > a", "Relu a > y"]);
    let graph = open.graph.as_mut().expect("a graph");
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else { continue };
        let rows = tensor.shape.as_mut().expect("a shape");
        rows.dim[0].value = Some(tensor_shape_proto::dimension::Value::DimParam("N".into()));
    }
    std::fs::write(scene.path("in.onnx"), open.encode_to_vec()).expect("writable");
    let shapes = vec![ShapeArg { input: "x".into(), sizes: vec![Size::Known(4), Size::Known(8)] }];
    let request = Request { shapes, ..scene.request() };
    let report = scene.run(Scripted { rows: Some(4), ..EVEN }, &request, &mut Silent);
    assert_eq!(scene.written(), ["Relu", "Relu"]);
    assert!(report.warnings.iter().any(|warning| warning.contains("at x:8,8: outputs are [[4, 8]] instead of [[8, 8]]")), "{report:?}");
    scene.run(EVEN, &Request { cost_store: Some(scene.path("other.sqlite")), ..request }, &mut Silent);
    assert_eq!(scene.written(), ["Relu"]);
}
