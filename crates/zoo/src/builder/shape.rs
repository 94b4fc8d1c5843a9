//! Dimensions, and the rules that combine them.

use regraft_onnx::proto::{
    TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto::{self, dimension},
    type_proto,
};

use super::Value;

/// One dimension of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dim {
    /// A known size.
    Fixed(i64),
    /// A multiple of the symbolic batch `N`.
    Batch(i64),
}

impl Dim {
    /// The known size.
    pub(crate) fn size(self) -> i64 {
        match self {
            Self::Fixed(size) => size,
            Self::Batch(_) => panic!("the batch has no fixed size"),
        }
    }

    /// This dimension merged with an inner one of `size`.
    pub(crate) fn times(self, size: i64) -> Self {
        match self {
            Self::Fixed(own) => Self::Fixed(own * size),
            Self::Batch(factor) => Self::Batch(factor * size),
        }
    }

    fn to_proto(self) -> tensor_shape_proto::Dimension {
        let value = match self {
            Self::Fixed(size) => dimension::Value::DimValue(size),
            Self::Batch(1) => dimension::Value::DimParam("N".to_owned()),
            Self::Batch(factor) => dimension::Value::DimParam(format!("{factor}*N")),
        };
        tensor_shape_proto::Dimension { denotation: None, value: Some(value) }
    }
}

/// Dimensions, outermost first.
pub(crate) type Shape = Vec<Dim>;

/// A shape of known sizes.
pub(crate) fn fixed(dims: &[i64]) -> Shape {
    dims.iter().copied().map(Dim::Fixed).collect()
}

/// The shape of an elementwise operation on two tensors.
pub(crate) fn broadcast(left: &[Dim], right: &[Dim]) -> Shape {
    let rank = left.len().max(right.len());
    let at = |shape: &[Dim], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => Dim::Fixed(1),
    };
    (0..rank)
        .map(|axis| match (at(left, axis), at(right, axis)) {
            (a, b) if a == b => a,
            (Dim::Fixed(1), other) | (other, Dim::Fixed(1)) => other,
            (a, b) => panic!("cannot broadcast {a:?} with {b:?} (shapes {left:?} and {right:?})"),
        })
        .collect()
}

/// Opens the sizes of an image or recording (batch, channels, ..) in a declaration: with names in
/// an input, without in a result.
pub(super) fn open_field(value: &mut ValueInfoProto, is_input: bool) {
    let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else { return };
    let dims = tensor.shape.iter_mut().flat_map(|shape| shape.dim.iter_mut().skip(2)).collect::<Vec<_>>();
    let names: &[&str] = if dims.len() == 1 { &["L"] } else { &["H", "W"] };
    for (dim, name) in dims.into_iter().zip(names) {
        dim.value = is_input.then(|| dimension::Value::DimParam((*name).to_owned()));
    }
}

/// The declaration of `value` in a graph.
pub(super) fn value_info(value: &Value) -> ValueInfoProto {
    let tensor = type_proto::Tensor {
        elem_type: Some(value.element.code()),
        shape: Some(TensorShapeProto { dim: value.shape.iter().map(|dim| dim.to_proto()).collect() }),
    };
    ValueInfoProto {
        name: Some(value.name.clone()),
        r#type: Some(TypeProto { denotation: None, value: Some(type_proto::Value::TensorType(tensor)) }),
        ..ValueInfoProto::default()
    }
}
