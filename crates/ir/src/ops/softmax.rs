//! Softmax and its logarithm along one axis.

use std::cmp::Ordering;

use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{only, pass, pick};
use crate::ops::reshape::Reshape;
use crate::scalar::{Function, Scalar, Unsupported};
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;
use crate::{Attr, Op};

const SOFTMAX: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];

macro_rules! softmax {
    ($($(#[$doc:meta])* $name:ident, $line:ident, $flops:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {
            /// The axis to normalize, ≥ 0.
            pub axis: i64
        } }

        impl Operator for $name {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                let operand = only(stringify!($name), inputs)?;
                accepts::check(stringify!($name), SOFTMAX, operand.dtype)?;
                if !(0..operand.rank() as i64).contains(&self.axis) {
                    return Err(TypeError::invalid(format!("{} of {operand} has no axis {}", stringify!($name), self.axis)));
                }
                Ok(vec![operand.clone()])
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                let [Value::Real(x)] = inputs else {
                    return Err(EvalError::value(concat!(stringify!($name), " is defined for reals")));
                };
                Ok(vec![Value::real(along(x, self.axis as usize, $line)?)])
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                import(node, |axis| Op::$name($name { axis }))
            }
            fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                accepts::spelled(stringify!($name), SOFTMAX, version, inputs[0].dtype)?;
                if version < 13 && inputs[0].shape.iter().skip(self.axis as usize + 1).any(|d| !d.is(1)) {
                    let why = format!("along an axis before the last one it exists since opset 13, the model has {version}");
                    return Err(NoSpelling { op: stringify!($name), why });
                }
                Ok(OnnxSpelling::plain(stringify!($name), 1).with("axis", Attr::Int(self.axis)))
            }
            fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
                pass(outputs, Kernel::Transcendental, $flops)
            }
        }
    )*};
}

softmax! {
    /// `exp(x) / sum(exp(x))` along one axis.
    Softmax, softmax_line, 12.0;
    /// `x - log(sum(exp(x)))` along one axis.
    LogSoftmax, log_softmax_line, 12.0;
}

/// From opset 13 on one axis is normalized; before, all axes from `axis` on jointly.
fn import(node: &OnnxNode, op: impl Fn(i64) -> Op) -> Result<Imported, Opaque> {
    let ty = node.ty(0)?;
    if node.version >= 13 {
        return Ok(node.import_with(op(node.axis(node.int("axis").unwrap_or(-1), ty.rank())?), &[0]));
    }
    let axis = node.axis(node.int("axis").unwrap_or(1), ty.rank())?;
    let (before, together) = ty.shape.split_at(axis as usize);
    let mut wide = (axis..).zip(together).filter(|(_, d)| !d.is(1)).map(|(at, _)| at);
    let first = wide.next().unwrap_or(axis);
    if wide.next().is_none() {
        return Ok(node.import_with(op(first), &[0]));
    }
    let elements = together.iter().fold(Dim::from(1), |product, d| product * d.clone());
    let flat = Reshape { shape: before.iter().cloned().chain([elements]).collect() };
    let inner = Imported { op: op(axis), operands: vec![ImportOperand::Node(Box::new(node.import_with(Op::Reshape(flat), &[0])))] };
    let back = Reshape { shape: ty.shape.to_vec() };
    Ok(Imported { op: Op::Reshape(back), operands: vec![ImportOperand::Node(Box::new(inner))] })
}

/// `f` on every line along `axis`, in place on a copy.
fn along<S: Scalar>(
    x: &Tensor<S>,
    axis: usize,
    f: impl Fn(&mut [S], std::iter::StepBy<std::ops::Range<usize>>) -> Result<(), Unsupported>,
) -> Result<Tensor<S>, EvalError> {
    let mut result = x.clone();
    let length = x.shape[axis];
    let inner: usize = x.shape[axis + 1..].iter().product();
    if result.data.is_empty() {
        return Ok(result);
    }
    for block in result.data.chunks_exact_mut(length * inner) {
        for at in 0..inner {
            f(block, (at..length * inner).step_by(inner))?;
        }
    }
    Ok(result)
}

/// What to subtract so that no exponential overflows: the largest element, or zero if values have
/// no order.
fn shift<S: Scalar>(line: &[S], mut at: impl Iterator<Item = usize>) -> S {
    let Some(first) = at.next() else { return S::zero() };
    at.try_fold(line[first].clone(), |best, i| pick(Ordering::Greater, &best, &line[i])).unwrap_or_else(|_| S::zero())
}

pub(crate) fn softmax_line<S: Scalar>(line: &mut [S], at: impl Iterator<Item = usize> + Clone) -> Result<(), Unsupported> {
    let shift = shift(line, at.clone());
    let mut sum = S::zero();
    for i in at.clone() {
        line[i] = line[i].sub(&shift).apply(Function::Exp)?;
        sum = sum.add(&line[i]);
    }
    for i in at {
        line[i] = line[i].div(&sum)?;
    }
    Ok(())
}

fn log_softmax_line<S: Scalar>(line: &mut [S], at: impl Iterator<Item = usize> + Clone) -> Result<(), Unsupported> {
    let shift = shift(line, at.clone());
    let mut sum = S::zero();
    for i in at.clone() {
        line[i] = line[i].sub(&shift);
        sum = sum.add(&line[i].apply(Function::Exp)?);
    }
    let log = sum.apply(Function::Log)?;
    for i in at {
        line[i] = line[i].sub(&log);
    }
    Ok(())
}
