//! The number of elements of a tensor as a tensor.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{free, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// The number of elements, as a scalar `i64`.
    pub struct Size {}
}

impl Operator for Size {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [_] = operands("Size", inputs)?;
        Ok(vec![TensorType::new(DType::I64, [0i64; 0])])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Size", inputs)?;
        Ok(vec![Value::int(Tensor::new(Vec::new(), vec![x.shape().iter().product::<usize>() as i64]))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Size"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.ty(0)?;
        Ok(node.import_with(crate::Op::Size(Size {}), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Size", 1))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}
