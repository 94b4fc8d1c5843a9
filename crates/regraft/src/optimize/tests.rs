//! The pipeline on a scripted runtime: rounds, pruning, budget and interruption, whatever the
//! machine's clock says.

mod store;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto, type_proto,
};
use tempfile::TempDir;

use super::scripted::Scripted;
use super::{Observer, Phase, Request, Silent, optimize_on};
use crate::report::Report;

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
        optimize_on(&|| Ok(Arc::new(runtime)), request, observer).expect("a model that runs")
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
const EVEN: Scripted = Scripted { operator: |_| 10_000, besides: |_| 0 };

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
