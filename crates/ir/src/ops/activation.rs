//! Activations, element by element.

use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// `max(x, 0)`.
    pub struct Relu {}
}

impl Operator for Relu {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        crate::ops::elementwise::infer_broadcast("Relu", inputs, 1, None)
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Real(x)] = inputs else { return Err(EvalError::value("Relu is defined for reals")) };
        let zero = S::zero();
        Ok(vec![Value::real(
            x.map(|v| Ok::<S, EvalError>(if v.compare(&zero)? == Some(std::cmp::Ordering::Less) { zero.clone() } else { v.clone() }))?,
        )])
    }
    fn onnx_types() -> &'static [&'static str] {
        &["Relu"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(crate::Op::Relu(Relu {}))
    }
    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Relu", 1))
    }
}
