//! What element-wise operators share: broadcasting type rules and loops.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, broadcast_concrete, wrap_int};
use crate::ty::{TensorType, broadcast_shapes};

/// The type rule of `count` broadcast operands of one element type; the result's is `result`, or theirs.
pub(crate) fn infer_broadcast(
    name: &str,
    inputs: &[TensorType],
    count: usize,
    result: Option<DType>,
) -> Result<Vec<TensorType>, TypeError> {
    let Some(first) = inputs.first().filter(|_| inputs.len() == count) else {
        return Err(TypeError::invalid(format!("{name} takes {count} operands, not {}", inputs.len())));
    };
    if let Some(other) = inputs.iter().find(|t| t.dtype != first.dtype) {
        return Err(TypeError::invalid(format!("{name} mixes {} and {}", first.dtype, other.dtype)));
    }
    let shape = broadcast_shapes(inputs.iter().map(|t| t.shape.as_slice())).ok_or_else(|| {
        TypeError::invalid(format!("{name} cannot broadcast {}", inputs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" with ")))
    })?;
    Ok(vec![TensorType { dtype: result.unwrap_or(first.dtype), shape }])
}

/// `f` over two broadcast tensors.
pub(crate) fn zip<A: Clone, B: Clone, C: Clone>(
    a: &Tensor<A>,
    b: &Tensor<B>,
    mut f: impl FnMut(&A, &B) -> Result<C, EvalError>,
) -> Result<Tensor<C>, EvalError> {
    if a.shape == b.shape {
        let data = a.data.iter().zip(&b.data).map(|(x, y)| f(x, y)).collect::<Result<_, _>>()?;
        return Ok(Tensor::new(a.shape.clone(), data));
    }
    let shape = broadcast_concrete([a.shape.as_slice(), b.shape.as_slice()])
        .ok_or_else(|| EvalError::value(format!("cannot broadcast {:?} with {:?}", a.shape, b.shape)))?;
    let (ia, ib) = (a.broadcast_index(&shape), b.broadcast_index(&shape));
    let data = ia.into_iter().zip(ib).map(|(i, j)| f(&a.data[i], &b.data[j])).collect::<Result<_, _>>()?;
    Ok(Tensor::new(shape, data))
}

/// Arithmetic on two broadcast values: `real` on real elements, `int` on integers (then wrapped to `dtype`).
pub(crate) fn arithmetic<S: Scalar>(
    inputs: &[Value<S>],
    dtype: DType,
    real: impl Fn(&S, &S) -> Result<S, EvalError>,
    int: impl Fn(i64, i64) -> Result<i64, EvalError>,
) -> Result<Vec<Value<S>>, EvalError> {
    match inputs {
        [Value::Real(a), Value::Real(b)] => Ok(vec![Value::real(zip(a, b, real)?)]),
        [Value::Int(a), Value::Int(b)] => Ok(vec![Value::int(zip(a, b, |x, y| int(*x, *y).map(|v| wrap_int(dtype, v)))?)]),
        _ => Err(EvalError::value("operands are not numbers of one kind")),
    }
}

/// Declares binary arithmetic operators: name, ONNX type, commutativity, meaning on reals and on integers.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident, $commutative:expr, |$x:ident, $y:ident| $real:expr, |$i:ident, $j:ident| $int:expr;)*) => {$(
        $crate::operator! { $(#[$doc])* pub struct $name {} }

        impl $crate::op::Operator for $name {
            const COMMUTATIVE: bool = $commutative;
            fn infer(&self, inputs: &[$crate::TensorType]) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
                $crate::ops::elementwise::infer_broadcast(stringify!($name), inputs, 2, None)
            }
            fn eval<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                $crate::ops::elementwise::arithmetic(inputs, context.output_types[0].dtype, |$x: &S, $y: &S| $real, |$i: i64, $j: i64| $int)
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &$crate::onnx::OnnxNode) -> Result<$crate::onnx::Imported, $crate::onnx::Opaque> {
                $crate::ops::elementwise::reject_legacy_broadcast(node)?;
                node.import($crate::Op::$name($name {}))
            }
            fn spell(&self, _: &[$crate::TensorType], _: &[$crate::TensorType], version: i64) -> Result<$crate::onnx::OnnxSpelling, $crate::onnx::NoSpelling> {
                $crate::ops::elementwise::since(stringify!($name), version, 7)?;
                Ok($crate::onnx::OnnxSpelling::plain(stringify!($name), 2))
            }
        }
    )*};
}
pub(crate) use binary;

/// Opsets before 7 broadcast by an `axis` attribute; such nodes stay opaque.
pub(crate) fn reject_legacy_broadcast(node: &crate::onnx::OnnxNode) -> Result<(), crate::onnx::Opaque> {
    if node.version < 7 {
        Err(crate::onnx::Opaque(format!("{} of opset {} broadcasts by attribute", node.op_type, node.version)))
    } else {
        Ok(())
    }
}

/// The operator exists since opset `first`.
pub(crate) fn since(op: &'static str, version: i64, first: i64) -> Result<(), crate::onnx::NoSpelling> {
    if version < first {
        Err(crate::onnx::NoSpelling { op, why: format!("it exists since opset {first}, the model has {version}") })
    } else {
        Ok(())
    }
}
