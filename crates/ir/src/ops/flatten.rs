//! To two dimensions.

use crate::attr::Attr;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{floats_before, free, operands, product, reshaped, values};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// `[product of the sizes before axis, product of the others]`.
    pub struct Flatten {
        /// First axis of the second product: 0 to the rank.
        pub axis: i64,
    }
}

impl Operator for Flatten {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Flatten", inputs)?;
        let Some(axis) = usize::try_from(self.axis).ok().filter(|a| *a <= x.rank()) else {
            return Err(TypeError::invalid(format!("Flatten of {x} at axis {}", self.axis)));
        };
        Ok(vec![TensorType::new(x.dtype, [product(&x.shape[..axis]), product(&x.shape[axis..])])])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Flatten", inputs)?;
        let Some((rows, columns)) = usize::try_from(self.axis).ok().and_then(|a| x.shape().split_at_checked(a)) else {
            return Err(EvalError::value(format!("Flatten of {:?} at axis {}", x.shape(), self.axis)));
        };
        Ok(vec![reshaped("Flatten", x, &[rows.iter().product(), columns.iter().product()])?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Flatten"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let rank = node.ty(0)?.rank();
        let axis = match node.int("axis").unwrap_or(1) {
            axis if axis == rank as i64 => axis,
            axis => node.axis(axis, rank)?,
        };
        Ok(node.import_with(crate::Op::Flatten(Flatten { axis }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        if let [x] = inputs {
            floats_before("Flatten", x.dtype, version, 9)?;
        }
        Ok(OnnxSpelling::plain("Flatten", 1).with("axis", Attr::Int(self.axis)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}
