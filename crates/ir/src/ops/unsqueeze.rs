//! Inserting axes of size 1.

use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{ascending, axes_below, axes_of, free, ints, operands, reshaped, values};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// The operand with axes of size 1 inserted.
    pub struct Unsqueeze {
        /// Positions of the new axes in the result, ascending.
        pub axes: Vec<i64>,
    }
}

impl Operator for Unsqueeze {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Unsqueeze", inputs)?;
        let mut shape = x.shape.clone();
        for axis in axes_below("Unsqueeze", &self.axes, x.rank() + self.axes.len())? {
            shape.insert(axis, 1.into());
        }
        Ok(vec![TensorType { dtype: x.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Unsqueeze", inputs)?;
        let mut shape = x.shape().to_vec();
        for axis in &self.axes {
            let at = usize::try_from(*axis).ok().filter(|a| *a <= shape.len());
            shape.insert(at.ok_or_else(|| EvalError::value(format!("Unsqueeze at axis {axis}")))?, 1);
        }
        Ok(vec![reshaped("Unsqueeze", x, &shape)?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Unsqueeze"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let axes = axes_of(node)?.ok_or_else(|| Opaque("Unsqueeze without axes".into()))?;
        let axes = ascending(node, &axes, node.ty(0)?.rank() + axes.len())?;
        Ok(node.import_with(crate::Op::Unsqueeze(Unsqueeze { axes }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        if self.axes.is_empty() {
            // Runtimes differ on an empty list.
            return Ok(OnnxSpelling::plain("Identity", 1));
        }
        let spelling = OnnxSpelling::plain("Unsqueeze", 1);
        Ok(if version < 13 { spelling.with("axes", ints(&self.axes)) } else { spelling.with_ints(&self.axes) })
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}
