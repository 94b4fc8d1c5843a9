//! Normalization by the root of the mean of squares.

use crate::attr::{Attr, Float};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::layer_norm::{scaled, types};
use crate::ops::moments::{inverse_deviation, mean_square};
use crate::ops::operands::{float_or, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(23, Types::FLOATS.and(Types::BF16))];

operator! {
    /// `x, scale → x / sqrt(mean(x²) + epsilon) * scale`, the mean over the axes from `axis` on.
    ///
    /// `scale` broadcasts to the shape of `x`; usually it has the shape of its axes from `axis` on.
    pub struct RMSNormalization {
        /// First of the normalized axes, ≥ 0.
        pub axis: i64,
        /// Added to the mean of squares.
        pub epsilon: Float,
    }
}

impl Operator for RMSNormalization {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        types("RMSNormalization", self.axis, inputs, 2..=2)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("RMSNormalization", inputs)?;
        let [x, scale] = tensors.as_slice() else { return Err(EvalError::value("RMSNormalization takes two operands")) };
        let Some(normalized) = usize::try_from(self.axis).ok().and_then(|axis| x.shape.get(axis..)) else {
            return Err(EvalError::value(format!("RMSNormalization of {:?} from axis {}", x.shape, self.axis)));
        };
        let size: usize = normalized.iter().product();
        let mut data = Vec::with_capacity(x.data.len());
        if size > 0 {
            for row in x.data.chunks_exact(size) {
                let factor = inverse_deviation(&mean_square(row)?, self.epsilon.0)?;
                data.extend(row.iter().map(|v| v.mul(&factor)));
            }
        }
        let mut result = Tensor::new(x.shape.clone(), data);
        scaled("RMSNormalization", &mut result, scale, |v, a| v.mul(a))?;
        Ok(vec![Value::real(result)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["RMSNormalization"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.int("stash_type").unwrap_or(1) != 1 {
            return Err(Opaque("RMSNormalization with another precision inside".into()));
        }
        let axis = node.axis(node.int("axis").unwrap_or(-1), node.ty(0)?.rank())?;
        node.import(crate::Op::RMSNormalization(RMSNormalization { axis, epsilon: float_or(node, "epsilon", 1e-5) }))
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("RMSNormalization", TYPES, version, outputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("RMSNormalization", inputs.len());
        Ok(spelling.with("axis", Attr::Int(self.axis)).with("epsilon", Attr::Float(self.epsilon)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 4.0 * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}
