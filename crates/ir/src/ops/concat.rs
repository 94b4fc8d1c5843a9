//! Joining tensors along an axis.

use crate::attr::Attr;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{axis_below, copy, equal_sizes};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// One or more operands of one rank, one after another along `axis`; all other sizes are equal.
    pub struct Concat {
        /// Axis, ≥ 0.
        pub axis: i64,
    }
}

impl Operator for Concat {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [first, rest @ ..] = inputs else { return Err(TypeError::invalid("Concat takes at least one operand")) };
        let axis = axis_below("Concat", self.axis, first.rank())?;
        let mut result = first.clone();
        for ty in rest {
            if ty.dtype != first.dtype || ty.rank() != first.rank() {
                return Err(TypeError::invalid(format!("Concat cannot join {first} and {ty}")));
            }
            for (at, size) in result.shape.iter_mut().enumerate() {
                if at == axis {
                    *size = size.clone() + ty.shape[at].clone();
                } else if size.known().is_none() && ty.shape[at].known().is_some() {
                    *size = ty.shape[at].clone();
                }
            }
        }
        let mut different: Option<TypeError> = None;
        for ty in rest {
            for at in (0..first.rank()).filter(|at| *at != axis) {
                let what = || format!("Concat along axis {axis} needs equal sizes at axis {at}");
                if let Err(error) = equal_sizes(&first.shape[at], &ty.shape[at], what) {
                    different = Some(different.map_or(error.clone(), |first| first.and(error)));
                }
            }
        }
        match different {
            Some(error) => Err(error.with_types([result])),
            None => Ok(vec![result]),
        }
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let joined = match inputs.first() {
            Some(Value::Real(_)) => {
                join(self.axis, inputs, |v| if let Value::Real(t) = v { Some(t.as_ref()) } else { None }).map(Value::real)
            }
            Some(Value::Int(_)) => join(self.axis, inputs, |v| if let Value::Int(t) = v { Some(t.as_ref()) } else { None }).map(Value::int),
            Some(Value::Bool(_)) => {
                join(self.axis, inputs, |v| if let Value::Bool(t) = v { Some(t.as_ref()) } else { None }).map(Value::bool)
            }
            None => None,
        };
        let shapes = || inputs.iter().map(|v| format!("{:?}", v.shape())).collect::<Vec<_>>().join(" and ");
        Ok(vec![joined.ok_or_else(|| EvalError::value(format!("Concat along axis {} cannot join {}", self.axis, shapes())))?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Concat"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let rank = node.ty(0)?.rank();
        let axis = match node.int("axis") {
            Some(axis) => node.axis(axis, rank)?,
            None if node.version < 4 => node.axis(1, rank)?,
            None => return Err(Opaque("Concat without its axis".into())),
        };
        node.import(crate::Op::Concat(Concat { axis }))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Concat", inputs.len()).with("axis", Attr::Int(self.axis)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

/// The operands, of a single kind, joined along `axis`; `None` if kinds or sizes do not match.
fn join<'a, S: Scalar, T: Clone + 'a>(
    axis: i64,
    inputs: &'a [Value<S>],
    kind: impl Fn(&'a Value<S>) -> Option<&'a Tensor<T>>,
) -> Option<Tensor<T>> {
    let parts: Vec<&Tensor<T>> = inputs.iter().map(kind).collect::<Option<_>>()?;
    let axis = usize::try_from(axis).ok()?;
    let mut shape = parts.first()?.shape.clone();
    let mut sum = 0;
    for part in &parts {
        let fits = part.shape.len() == shape.len() && part.shape.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !fits {
            return None;
        }
        sum += part.shape.get(axis)?;
    }
    *shape.get_mut(axis)? = sum;
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    let mut data = Vec::with_capacity(outer * sum * inner);
    for at in 0..outer {
        for part in &parts {
            let block = part.shape[axis] * inner;
            data.extend_from_slice(&part.data[at * block..(at + 1) * block]);
        }
    }
    Some(Tensor::new(shape, data))
}
