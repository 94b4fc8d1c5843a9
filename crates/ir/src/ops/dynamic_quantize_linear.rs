//! Reals as integers, by a scale that their range decides.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::elementwise::{only, pass, since};
use crate::ops::quantization::{numbers, quantized, saturated, single};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Steps between the least and the greatest 8-bit integer.
const STEPS: f64 = 255.0;

operator! {
    /// `x → y, scale, zero`: `x` quantized to 8-bit integers by the scale and the zero point for
    /// which these reach from the least to the greatest element, and 0.
    ///
    /// All steps are in single precision. Where all elements are 0, the scale is 1, as ONNX Runtime
    /// has it; the standard divides 0 by 0 there.
    pub struct DynamicQuantizeLinear {}
}

impl Operator for DynamicQuantizeLinear {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let x = only("DynamicQuantizeLinear", inputs)?;
        if x.dtype != DType::F32 {
            return Err(TypeError::invalid(format!("DynamicQuantizeLinear of {x}")));
        }
        Ok(vec![x.with_dtype(DType::U8), TensorType::new(DType::F32, [0i64; 0]), TensorType::new(DType::U8, [0i64; 0])])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let x = numbers("DynamicQuantizeLinear", inputs, 0)?;
        if !x.data.iter().all(|v| v.is_finite()) {
            return Err(EvalError::value("DynamicQuantizeLinear of elements that are not finite"));
        }
        let low = single(x.data.iter().copied().fold(0.0, f64::min));
        let high = single(x.data.iter().copied().fold(0.0, f64::max));
        let scale = if low == high { 1.0 } else { single(single(high - low) / STEPS) };
        let zero = saturated(single(0.0 - single(low / scale)).round_ties_even(), 0, DType::U8);
        let y = x.map(|v| Ok::<_, EvalError>(quantized(v, &scale, zero, DType::U8)?))?;
        let one = |value| Tensor::filled(Vec::new(), value);
        Ok(vec![
            Value::int(y),
            Value::real(one(scale).map(|v| Ok::<_, EvalError>(S::from_f64(*v)))?),
            Value::int(Tensor::filled(Vec::new(), zero)),
        ])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["DynamicQuantizeLinear"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.outputs.len() != 3 {
            return Err(Opaque("DynamicQuantizeLinear without all its results".into()));
        }
        node.import(crate::Op::DynamicQuantizeLinear(DynamicQuantizeLinear {}))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("DynamicQuantizeLinear", version, 11)?;
        Ok(OnnxSpelling::plain("DynamicQuantizeLinear", 1))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Elementwise, 5.0)
    }
}
