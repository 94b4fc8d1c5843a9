//! Instance normalization.

use crate::attr::{Attr, Float};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::group_norm::normalize_groups;
use crate::ops::operands::{float_or, floats, per_channel, reals};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..], scale[C], bias[C] → (x - mean) / sqrt(variance + epsilon) * scale +
    /// bias`, moments over each plane.
    pub struct InstanceNormalization {
        /// Added to the variance.
        pub epsilon: Float,
    }
}

impl Operator for InstanceNormalization {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("InstanceNormalization", inputs, 3..=3)?;
        let x = &inputs[0];
        if x.rank() < 3 {
            return Err(TypeError::invalid(format!("InstanceNormalization of {x}")));
        }
        per_channel("InstanceNormalization", inputs, 1, &x.shape[1]).map_err(|e| e.with_types([x.clone()]))?;
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("InstanceNormalization", inputs)?;
        let channels = tensors.first().and_then(|x| x.shape.get(1)).copied().unwrap_or(0);
        normalize_groups("InstanceNormalization", &tensors, channels, self.epsilon.0).map(|t| vec![Value::real(t)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["InstanceNormalization"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(crate::Op::InstanceNormalization(InstanceNormalization { epsilon: float_or(node, "epsilon", 1e-5) }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("InstanceNormalization", TYPES, version, outputs[0].dtype)?;
        Ok(OnnxSpelling::plain("InstanceNormalization", 3).with("epsilon", Attr::Float(self.epsilon)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 8.0 * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}
