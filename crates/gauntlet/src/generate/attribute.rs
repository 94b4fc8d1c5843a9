//! Attributes of ONNX nodes.

use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::{AttributeProto, GraphProto, TensorProto};

fn named(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

/// An integer.
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..named(name, AttributeType::Int) }
}

/// A list of integers.
pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..named(name, AttributeType::Ints) }
}

/// A number.
pub fn float(name: &str, value: f64) -> AttributeProto {
    AttributeProto { f: Some(value as f32), ..named(name, AttributeType::Float) }
}

/// A list of numbers.
pub fn floats(name: &str, values: &[f64]) -> AttributeProto {
    AttributeProto { floats: values.iter().map(|v| *v as f32).collect(), ..named(name, AttributeType::Floats) }
}

/// A string.
pub fn word(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.as_bytes().to_vec()), ..named(name, AttributeType::String) }
}

/// A tensor.
pub fn tensor(name: &str, value: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(value), ..named(name, AttributeType::Tensor) }
}

/// A graph.
pub fn graph(name: &str, value: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(value), ..named(name, AttributeType::Graph) }
}
