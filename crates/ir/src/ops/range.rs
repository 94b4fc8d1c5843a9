//! Evenly spaced numbers.

use crate::dim::Dim;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{concrete_shape, copy, not_negative, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, wrap_int};
use crate::ty::{PartialType, Shape, TensorType};

operator! {
    /// `(start, limit, delta)`, scalars: `start, start + delta, ..` before `limit`.
    ///
    /// Types do not show how many numbers these are, so the length is an attribute; values that
    /// give a different length are an evaluation error.
    pub struct Range {
        /// The result's shape: one size.
        pub shape: Vec<Dim>,
    }
}

impl Operator for Range {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [start, limit, delta] = operands("Range", inputs)?;
        let numbers = matches!(start.dtype.class(), Class::Real | Class::Int);
        if !numbers || start.rank() != 0 || limit != start || delta != start {
            return Err(TypeError::invalid(format!("Range needs three scalars of one type, not {start}, {limit} and {delta}")));
        }
        let [length] = self.shape.as_slice() else { return Err(TypeError::invalid("Range has one size")) };
        let open = || PartialType { dtype: start.dtype, shape: vec![None] };
        not_negative(length, || "the length of Range".into()).map_err(|e| e.with_types([open()]))?;
        Ok(vec![TensorType { dtype: start.dtype, shape: Shape::from(self.shape.as_slice()) }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let dtype = context.input_types.first().map_or(DType::I64, |t| t.dtype);
        let result = match values("Range", inputs)? {
            [Value::Int(start), Value::Int(limit), Value::Int(delta)] => {
                let (start, delta) = (start.data[0], delta.data[0]);
                let n = int_length(start, limit.data[0], delta).ok_or_else(|| EvalError::value("Range with a delta of 0"))?;
                Value::int(Tensor::new(
                    vec![n],
                    (0..n as i64).map(|i| wrap_int(dtype, start.wrapping_add(i.wrapping_mul(delta)))).collect(),
                ))
            }
            [Value::Real(start), Value::Real(limit), Value::Real(delta)] => {
                let (start, delta) = (&start.data[0], &delta.data[0]);
                let n = real_length(start.to_f64()?, limit.data[0].to_f64()?, delta.to_f64()?);
                let n = n.ok_or_else(|| EvalError::value("Range without an end"))?;
                Value::real(Tensor::new(vec![n], (0..n).map(|i| start.add(&S::from_f64(i as f64).mul(delta))).collect()))
            }
            _ => return Err(EvalError::value("Range needs three numbers of one kind")),
        };
        let declared = concrete_shape(&self.shape, inputs, context)?;
        if result.shape() != declared {
            return Err(EvalError::value(format!("Range of {} numbers, declared as {declared:?}", result.shape()[0])));
        }
        Ok(vec![result])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Range"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let length = match (symbolic(node, 0), symbolic(node, 1), symbolic(node, 2)) {
            // Over integers from a known start by a known step, the length follows from the limit.
            (Some(start), Some(limit), Some(delta)) => {
                let delta = delta.known().filter(|d| *d != 0).ok_or_else(|| Opaque("Range by an unknown step".into()))?;
                let span = if delta > 0 { limit - start } else { start - limit };
                match span.known() {
                    Some(span) => Dim::from(span.max(0)).ceil_div(&Dim::from(delta.saturating_abs())),
                    None if span.at_least(0) => span.ceil_div(&Dim::from(delta.saturating_abs())),
                    None => return Err(Opaque(format!("Range over {span}, which may be negative"))),
                }
            }
            _ => {
                let real = |at: usize| -> Result<f64, Opaque> {
                    let value = node.constant(at)?.filter(|v| v.dtype().is_float()).and_then(|v| v.to_f64());
                    match value.as_deref() {
                        Some([v]) => Ok(*v),
                        _ => Err(Opaque("Range of numbers that are not known".into())),
                    }
                };
                let n = real_length(real(0)?, real(1)?, real(2)?).ok_or_else(|| Opaque("Range without an end".into()))?;
                Dim::from(n as i64)
            }
        };
        node.import(crate::Op::Range(Range { shape: vec![length] }))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("Range", version, 11)?;
        Ok(OnnxSpelling::plain("Range", 3))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

/// An integer input that is a constant or a computed size.
fn symbolic(node: &OnnxNode, at: usize) -> Option<Dim> {
    let input = node.inputs.get(at)?.as_ref()?;
    if input.ty.as_ref()?.dtype.class() != Class::Int {
        return None;
    }
    match (&input.value, &input.dims) {
        (Some(value), _) => match value.to_i64()?.as_slice() {
            [v] => Some(Dim::from(*v)),
            _ => None,
        },
        (None, Some(dims)) => match dims.as_slice() {
            [d] => Some(d.clone()),
            _ => None,
        },
        (None, None) => None,
    }
}

fn int_length(start: i64, limit: i64, delta: i64) -> Option<usize> {
    if delta == 0 {
        return None;
    }
    let (start, limit, delta) = (i128::from(start), i128::from(limit), i128::from(delta));
    let span = if delta > 0 { limit - start } else { start - limit };
    usize::try_from((span.max(0) + delta.abs() - 1) / delta.abs()).ok()
}

/// `ceil((limit - start) / delta)`, at least 0; `None` if that is not a number or exceeds memory.
fn real_length(start: f64, limit: f64, delta: f64) -> Option<usize> {
    let n = ((limit - start) / delta).ceil();
    if n.is_nan() || n > 1e15 { None } else { Some(n.max(0.0) as usize) }
}
