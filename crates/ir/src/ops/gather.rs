//! Picking slices by index.

use crate::attr::Attr;
use crate::dtype::Class;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{axis_below, copy, moved, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// `(data, indices)`: the slices of `data` along `axis` at the integer `indices`, whose shape
    /// takes the axis' place.
    ///
    /// Negative indices count from the end; an index outside the axis is an evaluation error.
    pub struct Gather {
        /// Axis of `data`, ≥ 0.
        pub axis: i64,
    }
}

impl Operator for Gather {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [data, indices] = operands("Gather", inputs)?;
        let axis = axis_below("Gather", self.axis, data.rank())?;
        if indices.dtype.class() != Class::Int {
            return Err(TypeError::invalid(format!("Gather needs integer indices, not {indices}")));
        }
        let shape = data.shape[..axis].iter().chain(&indices.shape).chain(&data.shape[axis + 1..]).cloned().collect();
        Ok(vec![TensorType { dtype: data.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [data, Value::Int(indices)] = values("Gather", inputs)? else {
            return Err(EvalError::value("Gather needs integer indices"));
        };
        let axis = usize::try_from(self.axis).unwrap_or(usize::MAX);
        let Some(size) = data.shape().get(axis).copied() else {
            return Err(EvalError::value(format!("Gather along axis {} of {:?}", self.axis, data.shape())));
        };
        let wrap = |index: &i64| {
            let from_front = if *index < 0 { index + size as i64 } else { *index };
            usize::try_from(from_front)
                .ok()
                .filter(|i| *i < size)
                .ok_or_else(|| EvalError::value(format!("Gather of index {index} along an axis of size {size}")))
        };
        let picks: Vec<usize> = indices.data.iter().map(wrap).collect::<Result<_, _>>()?;
        Ok(vec![moved!(data, |t| pick(t, axis, &picks, &indices.shape))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Gather"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let axis = node.axis(node.int("axis").unwrap_or(0), node.ty(0)?.rank())?;
        node.import(crate::Op::Gather(Gather { axis }))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Gather", 2).with("axis", Attr::Int(self.axis)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

fn pick<T: Clone>(data: &Tensor<T>, axis: usize, picks: &[usize], picks_shape: &[usize]) -> Tensor<T> {
    let outer: usize = data.shape[..axis].iter().product();
    let inner: usize = data.shape[axis + 1..].iter().product();
    let slab = data.shape[axis] * inner;
    let mut out = Vec::with_capacity(outer * picks.len() * inner);
    for at in 0..outer {
        for pick in picks {
            out.extend_from_slice(&data.data[at * slab + pick * inner..][..inner]);
        }
    }
    let shape = data.shape[..axis].iter().chain(picks_shape).chain(&data.shape[axis + 1..]).copied().collect();
    Tensor::new(shape, out)
}
