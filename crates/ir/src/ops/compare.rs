//! Comparisons of two broadcast operands; the result is boolean. Nothing compares with
//! not-a-number.

use std::cmp::Ordering;

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{import_broadcast, infer_broadcast, int_order, since, zip};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

const EQUAL: &[Since] = &[
    (1, Types::BOOL.and(Types::I32).and(Types::I64)),
    (11, Types::FLOATS.and(Types::NARROW_INTS).and(Types::U32).and(Types::U64)),
    (13, Types::BF16),
];
const ORDER: &[Since] = &[(1, Types::FLOATS), (9, Types::INTS), (13, Types::BF16)];
const WEAK_ORDER: &[Since] = &[(12, Types::FLOATS.and(Types::INTS)), (16, Types::BF16)];

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident, $commutative:expr, $types:expr, $holds:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {} }

        impl Operator for $name {
            const COMMUTATIVE: bool = $commutative;
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                let types = infer_broadcast(stringify!($name), inputs, 2, Some(DType::Bool))?;
                accepts::check(stringify!($name), $types, inputs[0].dtype)?;
                Ok(types)
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                compare(inputs, context.input_types[0].dtype, $holds)
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                import_broadcast(node, crate::Op::$name($name {}))
            }
            fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                since(stringify!($name), version, 7)?;
                accepts::spelled(stringify!($name), $types, version, inputs[0].dtype)?;
                Ok(OnnxSpelling::plain(stringify!($name), 2))
            }
        }
    )*};
}

comparison! {
    /// `a == b`, of numbers or booleans.
    Equal, true, EQUAL, Ordering::is_eq;
    /// `a > b`.
    Greater, false, ORDER, Ordering::is_gt;
    /// `a >= b`.
    GreaterOrEqual, false, WEAK_ORDER, Ordering::is_ge;
    /// `a < b`.
    Less, false, ORDER, Ordering::is_lt;
    /// `a <= b`.
    LessOrEqual, false, WEAK_ORDER, Ordering::is_le;
}

fn compare<S: Scalar>(inputs: &[Value<S>], dtype: DType, holds: impl Fn(Ordering) -> bool) -> Result<Vec<Value<S>>, EvalError> {
    let result = match inputs {
        [Value::Real(a), Value::Real(b)] => zip(a, b, |x, y| Ok(x.compare(y)?.is_some_and(&holds)))?,
        [Value::Int(a), Value::Int(b)] => zip(a, b, |x, y| Ok(holds(int_order(dtype, *x, *y))))?,
        [Value::Bool(a), Value::Bool(b)] => zip(a, b, |x, y| Ok(holds(x.cmp(y))))?,
        _ => return Err(EvalError::value("compared operands are of different kinds")),
    };
    Ok(vec![Value::bool(result)])
}
