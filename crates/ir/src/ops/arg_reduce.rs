//! Positions of extreme elements along an axis.

use std::cmp::Ordering;

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{int_order, only};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;
use crate::{Attr, Op};

const NUMBERS: &[Since] = &[(1, Types::FLOATS.and(Types::INTS)), (13, Types::BF16)];

macro_rules! position {
    ($($(#[$doc:meta])* $name:ident, $order:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {
            /// The axis searched, ≥ 0.
            pub axis: i64,
            /// Keep the axis, with size 1.
            pub keepdims: bool,
            /// Among equal elements the last one counts, not the first.
            pub select_last_index: bool
        } }

        impl Operator for $name {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                infer(stringify!($name), self.axis, self.keepdims, inputs)
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                let axis = self.axis as usize;
                let mut found = match inputs {
                    [Value::Real(x)] => search(x, axis, self.select_last_index, $order, |a, b| Ok(a.compare(b)?))?,
                    [Value::Int(x)] => {
                        let dtype = context.input_types[0].dtype;
                        search(x, axis, self.select_last_index, $order, |a, b| Ok(Some(int_order(dtype, *a, *b))))?
                    }
                    _ => return Err(EvalError::value(concat!(stringify!($name), " is defined for numbers"))),
                };
                if !self.keepdims {
                    found.shape.remove(axis);
                }
                Ok(vec![Value::int(found)])
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                node.import(Op::$name($name {
                    axis: node.axis(node.int("axis").unwrap_or(0), node.ty(0)?.rank())?,
                    keepdims: node.flag("keepdims", true)?,
                    select_last_index: node.flag("select_last_index", false)?,
                }))
            }
            fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                accepts::spelled(stringify!($name), NUMBERS, version, inputs[0].dtype)?;
                let spelling = OnnxSpelling::plain(stringify!($name), 1)
                    .with("axis", Attr::Int(self.axis))
                    .with("keepdims", Attr::Int(i64::from(self.keepdims)));
                match (self.select_last_index, version < 12) {
                    (false, _) => Ok(spelling),
                    (true, false) => Ok(spelling.with("select_last_index", Attr::Int(1))),
                    (true, true) => {
                        Err(NoSpelling { op: stringify!($name), why: format!("it takes the last index since opset 12, the model has {version}") })
                    }
                }
            }
            fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
                let elements: f64 = inputs.iter().map(|s| s.iter().product::<usize>() as f64).sum();
                Work { flops: elements, extra_bytes: 0.0, kernel: Kernel::Window }
            }
        }
    )*};
}

position! {
    /// The index of the largest element, as `i64`.
    ArgMax, Ordering::Greater;
    /// The index of the smallest element, as `i64`.
    ArgMin, Ordering::Less;
}

fn infer(name: &str, axis: i64, keepdims: bool, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
    let operand = only(name, inputs)?;
    accepts::check(name, NUMBERS, operand.dtype)?;
    let Some(size) = usize::try_from(axis).ok().and_then(|axis| operand.shape.get(axis)) else {
        return Err(TypeError::invalid(format!("{name} of {operand} has no axis {axis}")));
    };
    if size.is(0) {
        return Err(TypeError::invalid(format!("{name} of {operand} searches the empty axis {axis}")));
    }
    let mut shape = operand.shape.clone();
    if keepdims {
        shape[axis as usize] = Dim::from(1);
    } else {
        shape.remove(axis as usize);
    }
    Ok(vec![TensorType { dtype: DType::I64, shape }])
}

/// Index along `axis` of the element that comes first in `order`; the axis stays, with size 1.
/// Nothing beats not-a-number, and it beats nothing.
fn search<T: Clone>(
    x: &Tensor<T>,
    axis: usize,
    last: bool,
    order: Ordering,
    compare: impl Fn(&T, &T) -> Result<Option<Ordering>, EvalError>,
) -> Result<Tensor<i64>, EvalError> {
    let length = x.shape[axis];
    if length == 0 {
        return Err(EvalError::value("the position of an extreme among no elements"));
    }
    let inner: usize = x.shape[axis + 1..].iter().product();
    let mut shape = x.shape.clone();
    shape[axis] = 1;
    let mut found = Vec::with_capacity(shape.iter().product());
    for block in x.data.chunks_exact((length * inner).max(1)) {
        for at in 0..inner {
            let mut best = 0;
            for i in 1..length {
                let found = compare(&block[i * inner + at], &block[best * inner + at])?;
                if found == Some(order) || (last && found == Some(Ordering::Equal)) {
                    best = i;
                }
            }
            found.push(best as i64);
        }
    }
    Ok(Tensor::new(shape, found))
}
