//! Small models with bodies, in a terse notation.

use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Tensor, Value};
use regraft_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};

/// Domain of local functions.
pub const LOCAL: &str = "local";

fn words(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(|w| w.trim().to_string()).collect() }
}

/// `f32 x [2,N]`, `i64 n []`, `bool c []`; a type without brackets has no shape, `f32 x [_,4]` an
/// open size.
pub fn value(text: &str) -> ValueInfoProto {
    let mut parts = text.splitn(3, ' ');
    let code = match parts.next() {
        Some("f32") => 1,
        Some("i64") => 7,
        _ => 9,
    };
    let name = parts.next().unwrap_or_default().to_string();
    let dim = |word: &String| Dimension {
        value: match word.parse() {
            Ok(size) => Some(dimension::Value::DimValue(size)),
            Err(_) if word == "_" => None,
            Err(_) => Some(dimension::Value::DimParam(word.clone())),
        },
        denotation: None,
    };
    let shape = parts.next().map(|s| words(s.trim_matches(['[', ']'])).iter().map(dim).collect()).map(|dim| TensorShapeProto { dim });
    let tensor = Tensor { elem_type: Some(code), shape };
    ValueInfoProto {
        name: Some(name),
        r#type: Some(TypeProto { value: Some(Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    }
}

/// A weight with values derived from its name.
pub fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let start = name.bytes().fold(7u64, |state, byte| state.wrapping_mul(131).wrapping_add(u64::from(byte)));
    let mut state = start | 1;
    let count = dims.iter().product::<i64>();
    let mut raw = Vec::new();
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 40) as f32 / (1u64 << 24) as f32;
        raw.extend((unit - 0.3).to_le_bytes());
    }
    tensor(name, 1, dims, raw)
}

/// A weight above zero.
pub fn positive(name: &str, dims: &[i64]) -> TensorProto {
    let TensorProto { raw_data, .. } = weight(name, dims);
    let bytes = raw_data.unwrap_or_default();
    let raw = bytes.chunks_exact(4).flat_map(|b| (f32::from_le_bytes([b[0], b[1], b[2], b[3]]).abs() + 0.5).to_le_bytes()).collect();
    tensor(name, 1, dims, raw)
}

/// Integers.
pub fn ints(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    tensor(name, 7, dims, values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

/// `true`, a scalar.
pub fn yes(name: &str) -> TensorProto {
    tensor(name, 9, &[], vec![1])
}

fn tensor(name: &str, code: i32, dims: &[i64], raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(code),
        dims: dims.to_vec(),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    }
}

/// `c = Add(a, b)`.
pub fn node(text: &str) -> NodeProto {
    let (outputs, call) = text.split_once('=').unwrap_or(("", text));
    let (op, inputs) = call.trim().trim_end_matches(')').split_once('(').unwrap_or((call, ""));
    let (domain, op) = op.split_once(':').unwrap_or(("", op));
    NodeProto {
        input: words(inputs),
        output: words(outputs.trim()),
        op_type: Some(op.into()),
        domain: Some(domain.into()),
        name: Some(format!("n_{}", outputs.trim().replace(", ", "_"))),
        ..NodeProto::default()
    }
}

/// The node with an integer attribute.
pub fn int(mut node: NodeProto, name: &str, value: i64) -> NodeProto {
    let kind = AttributeType::Int as i32;
    node.attribute.push(AttributeProto { name: Some(name.into()), r#type: Some(kind), i: Some(value), ..AttributeProto::default() });
    node
}

/// The node with a body.
pub fn body(mut node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    let kind = AttributeType::Graph as i32;
    node.attribute.push(AttributeProto { name: Some(name.into()), r#type: Some(kind), g: Some(graph), ..AttributeProto::default() });
    node
}

/// A graph: inputs and outputs as in [`value`], nodes as in [`node`].
pub fn graph(inputs: &[&str], initializers: Vec<TensorProto>, nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("g".into()),
        input: inputs.iter().map(|i| value(i)).collect(),
        output: outputs.iter().map(|o| value(o)).collect(),
        node: nodes,
        initializer: initializers,
        ..GraphProto::default()
    }
}

/// Nodes without attributes.
pub fn nodes(texts: &[&str]) -> Vec<NodeProto> {
    texts.iter().map(|t| node(t)).collect()
}

/// A model of opset 17, with the local function `local:Twice(a) = a + a`.
pub fn model(graph: GraphProto) -> ModelProto {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset("", 17), opset(LOCAL, 1)],
        functions: vec![FunctionProto {
            name: Some("Twice".into()),
            domain: Some(LOCAL.into()),
            input: vec!["a".into()],
            output: vec!["b".into()],
            node: vec![node("b = Add(a, a)")],
            opset_import: vec![opset("", 17)],
            ..FunctionProto::default()
        }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}
