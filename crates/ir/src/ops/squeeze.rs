//! Dropping axes of size 1.

use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{ascending, axes_below, axes_of, equal_sizes, free, ints, operands, reshaped, values};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// The operand without the given axes, each of size 1.
    pub struct Squeeze {
        /// Axes of the operand, ascending.
        pub axes: Vec<i64>,
    }
}

impl Operator for Squeeze {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Squeeze", inputs)?;
        let axes = axes_below("Squeeze", &self.axes, x.rank())?;
        let kept = x.shape.iter().enumerate().filter(|(at, _)| !axes.contains(at)).map(|(_, d)| d.clone());
        let types = vec![TensorType { dtype: x.dtype, shape: kept.collect() }];
        for axis in &axes {
            equal_sizes(&x.shape[*axis], &1.into(), || format!("Squeeze of {x} needs the size 1 at axis {axis}"))
                .map_err(|e| e.with_types(types.clone()))?;
        }
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Squeeze", inputs)?;
        let kept = x.shape().iter().enumerate().filter(|(at, _)| !self.axes.contains(&(*at as i64))).map(|(_, d)| *d);
        Ok(vec![reshaped("Squeeze", x, &kept.collect::<Vec<_>>())?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Squeeze"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let axes = match axes_of(node)?.filter(|axes| !axes.is_empty()) {
            Some(axes) => ascending(node, &axes, x.rank())?,
            None if x.shape.iter().all(|d| d.known().is_some()) => (0..x.rank() as i64).filter(|a| x.shape[*a as usize].is(1)).collect(),
            None => return Err(Opaque("Squeeze of whatever sizes are 1 at run time".into())),
        };
        Ok(node.import_with(crate::Op::Squeeze(Squeeze { axes }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        if self.axes.is_empty() {
            // An empty list means all axes of size 1.
            return Ok(OnnxSpelling::plain("Identity", 1));
        }
        let spelling = OnnxSpelling::plain("Squeeze", 1);
        Ok(if version < 13 { spelling.with("axes", ints(&self.axes)) } else { spelling.with_ints(&self.axes) })
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}
