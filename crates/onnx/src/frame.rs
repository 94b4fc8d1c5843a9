//! A graph made in memory, as a model of its own.

use regraft_ir::{Graph, Op, TensorType, ValueId};

use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};

/// An opset that has all operators in the form that they have today.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;
// ONNX's numbers of element types.
const FLOAT: i32 = 1;
const INT64: i32 = 7;

/// A model with the inputs and outputs of a graph, all of them 32-bit floating-point numbers of
/// known sizes, which computes zeros: [`Model::write`](crate::Model::write) makes it compute the
/// graph. `None` if a size is not known.
pub fn frame(graph: &Graph) -> Option<ModelProto> {
    let shape = |value: ValueId| graph.ty(value).and_then(TensorType::known_shape);
    let mut proto = GraphProto { name: Some("model".into()), ..GraphProto::default() };
    for input in graph.inputs() {
        let Op::Input(declared) = &graph.node(*input).op else { return None };
        proto.input.push(value(&declared.name, &shape(input.out())?));
    }
    for output in graph.outputs() {
        let (name, shape) = (output.name.to_string(), shape(output.value)?);
        proto.output.push(value(&name, &shape));
        proto.initializer.push(TensorProto {
            name: Some(format!("{name}.sizes")),
            data_type: Some(INT64),
            dims: vec![shape.len() as i64],
            int64_data: shape,
            ..TensorProto::default()
        });
        proto.node.push(NodeProto {
            op_type: Some("ConstantOfShape".into()),
            input: vec![format!("{name}.sizes")],
            output: vec![name],
            ..NodeProto::default()
        });
    }
    Some(ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
        graph: Some(proto),
        ..ModelProto::default()
    })
}

fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = |size: &i64| Dimension { value: Some(dimension::Value::DimValue(*size)), ..Dimension::default() };
    let shape = TensorShapeProto { dim: shape.iter().map(dim).collect() };
    let ty = type_proto::Tensor { elem_type: Some(FLOAT), shape: Some(shape) };
    let r#type = Some(TypeProto { value: Some(type_proto::Value::TensorType(ty)), ..TypeProto::default() });
    ValueInfoProto { name: Some(name.into()), r#type, ..ValueInfoProto::default() }
}
