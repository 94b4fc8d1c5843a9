//! Small models for tests, and inputs for them.

use regraft_onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto,
    type_proto,
};
use regraft_runtime::{Feeds, Fill, FillOptions, InputSpec, Session, fill_inputs};

pub fn value(name: &str, elem_type: i32, dims: &[&str]) -> ValueInfoProto {
    use tensor_shape_proto::{Dimension, dimension::Value};
    let dim = |d: &&str| Dimension {
        value: Some(d.parse().map_or_else(|_| Value::DimParam((*d).to_owned()), Value::DimValue)),
        ..Dimension::default()
    };
    let tensor = type_proto::Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim: dims.iter().map(dim).collect() }) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}

pub fn node(op: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_owned()),
        name: Some(name.to_owned()),
        input: inputs.iter().map(|s| (*s).to_owned()).collect(),
        output: outputs.iter().map(|s| (*s).to_owned()).collect(),
        ..NodeProto::default()
    }
}

pub fn weights(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(1),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    }
}

pub fn model(nodes: Vec<NodeProto>, initializer: Vec<TensorProto>, input: Vec<ValueInfoProto>, output: Vec<ValueInfoProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        graph: Some(GraphProto { name: Some("g".to_owned()), node: nodes, initializer, input, output, ..GraphProto::default() }),
        ..ModelProto::default()
    }
}

/// relu(x w + x w): two expensive products, and a sum.
pub fn products(size: i64, copies: usize) -> ModelProto {
    let mut nodes = vec![node("MatMul", "first", &["x", "w"], &["t0"])];
    for i in 1..=copies {
        nodes.push(node("MatMul", &format!("again{i}"), &[&format!("t{}", i - 1), "w"], &[&format!("t{i}")]));
    }
    nodes.push(node("Relu", "", &[&format!("t{copies}")], &["y"]));
    let w: Vec<f32> = (0..size * size).map(|i| if i % (size + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let size = size.to_string();
    model(
        nodes,
        vec![weights("w", &[size.parse().unwrap(); 2], &w)],
        vec![value("x", 1, &["N", &size])],
        vec![value("y", 1, &["N", &size])],
    )
}

pub fn feeds_for(session: &dyn Session, rows: usize) -> Feeds {
    let specs = InputSpec::from_values(session.inputs(), |_, _| Some(rows)).unwrap();
    fill_inputs(Fill::Normal, &specs, &FillOptions::default()).unwrap()
}
