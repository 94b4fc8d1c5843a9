//! The most that this machine reaches with the target runtime: a few products and one element-wise
//! operator, timed by themselves.

use std::time::{Duration, Instant};

use prost::Message;
use regraft_cost::Ceiling;
use regraft_onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto,
    type_proto,
};
use regraft_runtime::{DType, Feeds, HostTensor, ModelSource, Runtime, SessionOptions, TimingOptions, time_interleaved};

use crate::error::Failure;

/// Rows, inner size and columns of products: which one a runtime is best at depends on its blocking
/// and on the caches.
const PRODUCTS: [[usize; 3]; 3] = [[256, 512, 512], [384, 768, 768], [1024, 768, 1152]];
/// Elements of a sum whose operands no cache holds.
const ELEMENTS: usize = 8 << 20;
/// Bytes of an element.
const ELEMENT: usize = 4;
/// Minimum and maximum runs, and how long they may take for each model.
const RUNS: (usize, usize) = (4, 16);
const LASTS: Duration = Duration::from_millis(200);
/// How long all of it may take.
pub const TAKES: Duration = Duration::from_millis(1500);
/// A standard opset and file format that every runtime knows.
const OPSET: i64 = 13;
const IR_VERSION: i64 = 7;

/// Measures both ceilings with so many threads.
pub fn measure(runtime: &dyn Runtime, threads: usize) -> Result<Ceiling, Failure> {
    let mut ceiling = Ceiling { flops: 0.0, bandwidth: 0.0 };
    for [rows, inner, columns] in PRODUCTS {
        let model = model("MatMul", &[rows, inner], &[rows, columns], &[("w", &[inner, columns])]);
        let ns = fastest(runtime, threads, &model, &[("x", vec![rows, inner])])?;
        ceiling.flops = ceiling.flops.max(2.0 * (rows * inner * columns) as f64 / ns);
    }
    let model = model("Add", &[ELEMENTS], &[ELEMENTS], &[]);
    let ns = fastest(runtime, threads, &model, &[("x", vec![ELEMENTS]), ("w", vec![ELEMENTS])])?;
    ceiling.bandwidth = (3 * ELEMENTS * ELEMENT) as f64 / ns;
    Ok(ceiling)
}

/// The shortest run of a model, ns.
fn fastest(runtime: &dyn Runtime, threads: usize, model: &ModelProto, inputs: &[(&str, Vec<usize>)]) -> Result<f64, Failure> {
    let zeros =
        |(name, shape): &(&str, Vec<usize>)| Ok(((*name).to_owned(), HostTensor::zeros(DType::F32, shape.clone()).map_err(Failure::new)?));
    let feeds = inputs.iter().map(zeros).collect::<Result<Feeds, Failure>>()?;
    let options = SessionOptions { threads, ..SessionOptions::default() };
    let mut session = runtime.open(ModelSource::bytes(&model.encode_to_vec()), &options)?;
    session.bind(&feeds)?;
    let timing = TimingOptions { warmup: 2, min_rounds: RUNS.0, max_rounds: RUNS.1, ..TimingOptions::default() };
    let until = Instant::now() + LASTS;
    let samples = time_interleaved(&mut [&mut *session], &timing, &mut || Instant::now() < until)?;
    let fastest = samples.sessions[0].iter().min().copied().unwrap_or(u64::MAX);
    Ok(fastest.max(1) as f64)
}

/// `y = operator(x, w)`, where `w` is an input, or one of the weights.
fn model(operator: &str, x: &[usize], y: &[usize], weights: &[(&str, &[usize])]) -> ModelProto {
    let dims = |shape: &[usize]| shape.iter().map(|size| *size as i64).collect::<Vec<i64>>();
    let dim = |size: i64| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(size)),
        ..tensor_shape_proto::Dimension::default()
    };
    let value = |name: &str, shape: &[usize]| {
        let shape = TensorShapeProto { dim: dims(shape).into_iter().map(dim).collect() };
        let ty = type_proto::Tensor { elem_type: Some(DType::F32.to_onnx()), shape: Some(shape) };
        let r#type = Some(TypeProto { value: Some(type_proto::Value::TensorType(ty)), ..TypeProto::default() });
        ValueInfoProto { name: Some(name.into()), r#type, ..ValueInfoProto::default() }
    };
    let weight = |(name, shape): &(&str, &[usize])| TensorProto {
        name: Some((*name).into()),
        data_type: Some(DType::F32.to_onnx()),
        dims: dims(shape),
        raw_data: Some(vec![0; shape.iter().product::<usize>() * ELEMENT].into()),
        ..TensorProto::default()
    };
    let node =
        NodeProto { op_type: Some(operator.into()), input: vec!["x".into(), "w".into()], output: vec!["y".into()], ..NodeProto::default() };
    let mut graph = GraphProto { name: Some("ceiling".into()), node: vec![node], ..GraphProto::default() };
    (graph.input, graph.output) = (vec![value("x", x)], vec![value("y", y)]);
    if weights.is_empty() {
        graph.input.push(value("w", x));
    }
    graph.initializer = weights.iter().map(weight).collect();
    let opset_import = vec![OperatorSetIdProto { version: Some(OPSET), ..OperatorSetIdProto::default() }];
    ModelProto { graph: Some(graph), opset_import, ir_version: Some(IR_VERSION), ..ModelProto::default() }
}
