//! Repeating a tensor along its axes.

use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{copy, moved, operands, read_strided, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::TensorType;

operator! {
    /// The operand `repeats[i]` times, one after another, along every axis `i`.
    pub struct Tile {
        /// Number of repeats, ≥ 0, per axis.
        pub repeats: Vec<i64>,
    }
}

impl Operator for Tile {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Tile", inputs)?;
        if self.repeats.len() != x.rank() || self.repeats.iter().any(|r| *r < 0) {
            return Err(TypeError::invalid(format!("Tile of {x} needs a count of at least 0 for every axis, not {:?}", self.repeats)));
        }
        let shape = x.shape.iter().zip(&self.repeats).map(|(d, r)| d.clone() * (*r).into()).collect();
        Ok(vec![TensorType { dtype: x.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Tile", inputs)?;
        if self.repeats.len() != x.shape().len() {
            return Err(EvalError::value(format!("Tile of {:?} by {:?}", x.shape(), self.repeats)));
        }
        // Every axis becomes two: the copies, with stride 0, and the operand's own.
        let (mut view, mut steps, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for ((size, stride), repeat) in x.shape().iter().zip(strides(x.shape())).zip(&self.repeats) {
            view.extend([*repeat as usize, *size]);
            steps.extend([0, stride as isize]);
            shape.push(*repeat as usize * size);
        }
        Ok(vec![moved!(x, |t| Tensor::new(shape.clone(), read_strided(&t.data, &view, &steps, 0)))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Tile"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.version < 6 {
            return Err(Opaque(format!("Tile of opset {} takes a count and an axis", node.version)));
        }
        let repeats = node.constant_ints(1)?.ok_or_else(|| Opaque("Tile without counts".into()))?;
        Ok(node.import_with(crate::Op::Tile(Tile { repeats }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("Tile", version, 6)?;
        Ok(OnnxSpelling::plain("Tile", 1).with_ints(&self.repeats))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}
