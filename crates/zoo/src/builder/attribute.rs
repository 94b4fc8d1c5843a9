//! Node attributes.

use regraft_onnx::proto::{AttributeProto, attribute_proto::AttributeType};

/// An integer attribute.
pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..empty(name, AttributeType::Int) }
}

/// An integer list attribute.
pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..empty(name, AttributeType::Ints) }
}

/// A floating-point attribute.
pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..empty(name, AttributeType::Float) }
}

/// A text attribute.
pub(super) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.to_owned().into()), ..empty(name, AttributeType::String) }
}

fn empty(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
}
