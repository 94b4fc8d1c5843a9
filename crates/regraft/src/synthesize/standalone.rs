//! One layer as a model of its own.

use regraft_ir::{DType as IrType, Graph, TensorType, ValueId};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};
use regraft_onnx::{Model, WriteOptions};

use crate::error::Failure;

/// An opset that has all operators that layers are written in, in the form that they have today.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;

/// The model that computes what `build` adds to a graph for its input, `x` of this shape.
pub fn standalone(shape: &[i64], build: impl FnOnce(&mut Graph, ValueId) -> Result<ValueId, Failure>) -> Result<Vec<u8>, Failure> {
    let mut graph = Graph::new("layer");
    let x = graph.add_input("x", TensorType::new(IrType::F32, shape.iter().copied()));
    let y = build(&mut graph, x)?;
    let result = graph.ty(y).and_then(TensorType::known_shape).ok_or_else(|| Failure::new("a layer's result has no known shape"))?;
    graph.add_output("y", y);
    let model = Model::from_proto(frame(shape, &result))?;
    let written = model.write(&graph, &WriteOptions { allow_growth: Some(u64::MAX / 2), ..WriteOptions::default() })?;
    Ok(written.to_bytes()?)
}

/// A model with the input and output, which computes something else.
fn frame(input: &[i64], output: &[i64]) -> ModelProto {
    let dim = |size: &i64| Dimension { value: Some(dimension::Value::DimValue(*size)), ..Dimension::default() };
    let value = |name: &str, shape: &[i64]| {
        let shape = TensorShapeProto { dim: shape.iter().map(dim).collect() };
        let ty = type_proto::Tensor { elem_type: Some(1), shape: Some(shape) };
        let r#type = Some(TypeProto { value: Some(type_proto::Value::TensorType(ty)), ..TypeProto::default() });
        ValueInfoProto { name: Some(name.into()), r#type, ..ValueInfoProto::default() }
    };
    let sizes = TensorProto {
        name: Some("sizes".into()),
        data_type: Some(7),
        dims: vec![output.len() as i64],
        int64_data: output.to_vec(),
        ..TensorProto::default()
    };
    let node = NodeProto {
        op_type: Some("ConstantOfShape".into()),
        input: vec!["sizes".into()],
        output: vec!["y".into()],
        ..NodeProto::default()
    };
    ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
        graph: Some(GraphProto {
            name: Some("layer".into()),
            node: vec![node],
            initializer: vec![sizes],
            input: vec![value("x", input)],
            output: vec![value("y", output)],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}
