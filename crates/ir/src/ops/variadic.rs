//! Operators on one or more broadcast operands.

use std::cmp::Ordering;

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{arithmetic, infer_broadcast, int_order, pass, pick};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

const SUM: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];
const EXTREME: &[Since] = &[(1, Types::FLOATS), (12, Types::INTS), (13, Types::BF16)];

macro_rules! variadic {
    ($($(#[$doc:meta])* $name:ident, $types:expr, |$inputs:ident, $dtype:ident| $fold:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {} }

        impl Operator for $name {
            const COMMUTATIVE: bool = true;
            const ELEMENTWISE: bool = true;
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                if inputs.is_empty() {
                    return Err(TypeError::invalid(concat!(stringify!($name), " takes at least one operand")));
                }
                let types = infer_broadcast(stringify!($name), inputs, inputs.len(), None)?;
                accepts::check(stringify!($name), $types, inputs[0].dtype)?;
                Ok(types)
            }
            fn eval<S: Scalar>(&self, $inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                let $dtype = context.output_types[0].dtype;
                Ok(vec![$fold])
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            /// Before opset 8 the shapes are equal, which broadcasting includes.
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                node.import(crate::Op::$name($name {}))
            }
            fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                accepts::spelled(stringify!($name), $types, version, inputs[0].dtype)?;
                if version < 8 && inputs.iter().any(|t| t.shape != inputs[0].shape) {
                    let why = format!("it broadcasts since opset 8, the model has {version}");
                    return Err(NoSpelling { op: stringify!($name), why });
                }
                Ok(OnnxSpelling::plain(stringify!($name), inputs.len()))
            }
            fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
                pass(outputs, Kernel::Elementwise, inputs.len().saturating_sub(1).max(1) as f64)
            }
        }
    )*};
}

variadic! {
    /// The sum of all operands.
    Sum, SUM, |inputs, dtype| sum(inputs, dtype)?;
    /// The arithmetic mean of all operands.
    Mean, SUM, |inputs, dtype| mean(inputs, dtype)?;
    /// The largest operand; not-a-number if one is.
    Max, EXTREME, |inputs, dtype| extreme(inputs, dtype, Ordering::Greater)?;
    /// The smallest operand; not-a-number if one is.
    Min, EXTREME, |inputs, dtype| extreme(inputs, dtype, Ordering::Less)?;
}

fn fold<S: Scalar>(
    inputs: &[Value<S>],
    dtype: DType,
    real: impl Fn(&S, &S) -> Result<S, EvalError>,
    int: impl Fn(i64, i64) -> Result<i64, EvalError>,
) -> Result<Value<S>, EvalError> {
    let (first, rest) = inputs.split_first().ok_or_else(|| EvalError::value("no operands"))?;
    let mut total = first.clone();
    for other in rest {
        total = arithmetic(&[total, other.clone()], dtype, &real, &int)?.remove(0);
    }
    Ok(total)
}

fn sum<S: Scalar>(inputs: &[Value<S>], dtype: DType) -> Result<Value<S>, EvalError> {
    fold(inputs, dtype, |x, y| Ok(x.add(y)), |i, j| Ok(i.wrapping_add(j)))
}

fn mean<S: Scalar>(inputs: &[Value<S>], dtype: DType) -> Result<Value<S>, EvalError> {
    let Value::Real(total) = sum(inputs, dtype)? else { return Err(EvalError::value("Mean is defined for reals")) };
    let count = S::from_f64(inputs.len() as f64);
    Ok(Value::real(total.map(|v| v.div(&count))?))
}

fn extreme<S: Scalar>(inputs: &[Value<S>], dtype: DType, order: Ordering) -> Result<Value<S>, EvalError> {
    fold(inputs, dtype, |x, y| Ok(pick(order, x, y)?), |i, j| Ok(if int_order(dtype, j, i) == order { j } else { i }))
}
