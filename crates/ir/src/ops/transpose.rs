//! Permuting axes.

use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{copy, ints, moved, operands, read_strided, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::TensorType;

operator! {
    /// Axis `i` of the result is axis `perm[i]` of the operand.
    pub struct Transpose {
        /// A permutation of the axes.
        pub perm: Vec<i64>,
    }
}

impl Operator for Transpose {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Transpose", inputs)?;
        let mut seen = vec![false; x.rank()];
        for axis in &self.perm {
            match usize::try_from(*axis).ok().and_then(|a| seen.get_mut(a)) {
                Some(slot) if !*slot => *slot = true,
                _ => return Err(TypeError::invalid(format!("Transpose of {x}: {:?} is no permutation of its axes", self.perm))),
            }
        }
        if seen.contains(&false) {
            return Err(TypeError::invalid(format!("Transpose of {x}: {:?} leaves out an axis", self.perm)));
        }
        Ok(vec![TensorType { dtype: x.dtype, shape: self.perm.iter().map(|a| x.shape[*a as usize].clone()).collect() }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Transpose", inputs)?;
        let own = strides(x.shape());
        if own.len() != self.perm.len() {
            return Err(EvalError::value(format!("Transpose of {:?} by {:?}", x.shape(), self.perm)));
        }
        let shape: Vec<usize> = self.perm.iter().map(|a| x.shape()[*a as usize]).collect();
        let steps: Vec<isize> = self.perm.iter().map(|a| own[*a as usize] as isize).collect();
        Ok(vec![moved!(x, |t| Tensor::new(shape.clone(), read_strided(&t.data, &shape, &steps, 0)))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Transpose"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let rank = node.ty(0)?.rank();
        let perm = match node.ints("perm") {
            Some(perm) => perm.iter().map(|a| node.axis(*a, rank)).collect::<Result<_, _>>()?,
            None => (0..rank as i64).rev().collect(),
        };
        Ok(node.import_with(crate::Op::Transpose(Transpose { perm }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Transpose", 1).with("perm", ints(&self.perm)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}
