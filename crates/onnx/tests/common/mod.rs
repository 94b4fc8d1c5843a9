//! Small hand-made models.

#![allow(dead_code, reason = "each test binary uses a part")]

use prost::Message;
use regraft_onnx::Model;
use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Tensor, Value};
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};

/// `f32` value with dims such as `"N,3,-1"`.
pub fn value(name: &str, dims: &str) -> ValueInfoProto {
    typed(name, 1, dims)
}

pub fn typed(name: &str, code: i32, dims: &str) -> ValueInfoProto {
    let dim = dims.split(',').filter(|d| !d.is_empty()).map(|d| {
        let value = match d.parse::<i64>() {
            Ok(n) => Some(dimension::Value::DimValue(n)),
            Err(_) if d == "_" => None,
            Err(_) => Some(dimension::Value::DimParam(d.to_string())),
        };
        Dimension { value, denotation: None }
    });
    let tensor = Tensor { elem_type: Some(code), shape: Some(TensorShapeProto { dim: dim.collect() }) };
    let ty = TypeProto { value: Some(Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(1),
        dims: dims.to_vec(),
        raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

pub fn ints(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(7),
        dims: vec![values.len() as i64],
        raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

/// `node("Add", "a,b", "c")`.
pub fn node(op_type: &str, inputs: &str, outputs: &str) -> NodeProto {
    let list = |s: &str| if s.is_empty() { Vec::new() } else { s.split(',').map(ToString::to_string).collect() };
    NodeProto {
        op_type: Some(op_type.into()),
        name: Some(format!("n_{outputs}")),
        input: list(inputs),
        output: list(outputs),
        ..NodeProto::default()
    }
}

pub fn with(mut node: NodeProto, attribute: AttributeProto) -> NodeProto {
    node.attribute.push(attribute);
    node
}

pub fn int(name: &str, v: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Int as i32), i: Some(v), ..AttributeProto::default() }
}

pub fn tensor(name: &str, v: TensorProto) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Tensor as i32), t: Some(v), ..AttributeProto::default() }
}

pub fn subgraph(name: &str, v: GraphProto) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Graph as i32), g: Some(v), ..AttributeProto::default() }
}

pub fn graph(
    inputs: Vec<ValueInfoProto>,
    outputs: Vec<ValueInfoProto>,
    nodes: Vec<NodeProto>,
    initializer: Vec<TensorProto>,
) -> GraphProto {
    GraphProto { name: Some("g".into()), input: inputs, output: outputs, node: nodes, initializer, ..GraphProto::default() }
}

pub fn model(graph: GraphProto) -> ModelProto {
    versions(graph, 8, 17)
}

pub fn versions(graph: GraphProto, ir: i64, opset: i64) -> ModelProto {
    ModelProto {
        ir_version: Some(ir),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) }],
        producer_name: Some("by hand".into()),
        graph: Some(graph),
        ..ModelProto::default()
    }
}

pub fn read(proto: &ModelProto) -> Model {
    Model::from_bytes(proto.encode_to_vec().into(), None).unwrap_or_else(|e| panic!("{e}"))
}

/// The nodes, one line each: `c = Add(a, b)`.
pub fn listing(proto: &ModelProto) -> Vec<String> {
    let graph = proto.graph.as_ref().expect("a graph");
    graph.node.iter().map(|n| format!("{} = {}({})", n.output.join(","), n.op_type(), n.input.join(","))).collect()
}

pub fn initializers(proto: &ModelProto) -> Vec<&str> {
    proto.graph.as_ref().expect("a graph").initializer.iter().map(|t| t.name()).collect()
}
