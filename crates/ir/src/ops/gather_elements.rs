//! Picking single elements along an axis.

use crate::attr::Attr;
use crate::dtype::Class;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{axis_below, copy, moved, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// `(data, indices)`: for each index, the element of `data` at its own place, but for the axis,
    /// where the index says which.
    ///
    /// Negative indices count from the end; an index outside the axis is an evaluation error. Along
    /// other axes `indices` may be shorter than `data`.
    pub struct GatherElements {
        /// The axis, ≥ 0.
        pub axis: i64,
    }
}

impl Operator for GatherElements {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [data, indices] = operands("GatherElements", inputs)?;
        let axis = axis_below("GatherElements", self.axis, data.rank())?;
        if indices.dtype.class() != Class::Int || indices.rank() != data.rank() {
            return Err(TypeError::invalid(format!("GatherElements of {data} needs integer indices of its rank, not {indices}")));
        }
        let result = TensorType { dtype: data.dtype, shape: indices.shape.clone() };
        for (at, (size, all)) in indices.shape.iter().zip(&data.shape).enumerate() {
            if at != axis && !(all.clone() - size.clone()).at_least(0) {
                let message = format!("GatherElements of {data} has {size} indices along axis {at}");
                let known = size.known().is_some() && all.known().is_some();
                return Err(if known { TypeError::Invalid(message) } else { TypeError::undecided(message).with_types([result]) });
            }
        }
        Ok(vec![result])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [data, Value::Int(indices)] = values("GatherElements", inputs)? else {
            return Err(EvalError::value("GatherElements needs integer indices"));
        };
        let shape = data.shape().to_vec();
        let fits =
            |axis: usize| shape.len() == indices.shape.len() && (0..shape.len()).all(|at| at == axis || indices.shape[at] <= shape[at]);
        let axis = usize::try_from(self.axis).ok().filter(|axis| *axis < shape.len() && fits(*axis));
        let axis = axis.ok_or_else(|| EvalError::value(format!("GatherElements of {shape:?} at {:?}", indices.shape)))?;
        let (own, steps) = (indices.strides(), crate::tensor::strides(&shape));
        let place = |(at, index): (usize, &i64)| {
            let size = shape[axis] as i64;
            let picked = if *index < 0 { index + size } else { *index };
            if !(0..size).contains(&picked) {
                return Err(EvalError::value(format!("GatherElements of index {index} along an axis of size {size}")));
            }
            let along = |d: usize| if d == axis { picked as usize } else { at / own[d] % indices.shape[d] };
            Ok((0..shape.len()).map(|d| along(d) * steps[d]).sum())
        };
        let places: Vec<usize> = indices.data.iter().enumerate().map(place).collect::<Result<_, _>>()?;
        Ok(vec![moved!(data, |t| picked(t, &places, &indices.shape))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["GatherElements"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let axis = node.axis(node.int("axis").unwrap_or(0), node.ty(0)?.rank())?;
        node.import(crate::Op::GatherElements(GatherElements { axis }))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("GatherElements", version, 11)?;
        Ok(OnnxSpelling::plain("GatherElements", 2).with("axis", Attr::Int(self.axis)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

fn picked<T: Clone>(data: &Tensor<T>, places: &[usize], shape: &[usize]) -> Tensor<T> {
    Tensor::new(shape.to_vec(), places.iter().map(|at| data.data[*at].clone()).collect())
}
