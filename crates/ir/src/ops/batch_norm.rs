//! Batch normalization at inference.

use crate::attr::{Attr, Float};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::moments::inverse_deviation;
use crate::ops::operands::{channel_vectors, float_or, floats, one_result, per_channel, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(7, Types::FLOATS), (14, Types::BF16)];

operator! {
    /// `x[N, C, ..], scale[C], bias[C], mean[C], var[C] → (x - mean) / sqrt(var + epsilon) * scale + bias`, with given statistics.
    pub struct BatchNormalization {
        /// Added to the variance.
        pub epsilon: Float,
    }
}

impl Operator for BatchNormalization {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("BatchNormalization", inputs, 5..=5)?;
        let x = &inputs[0];
        if x.rank() < 2 {
            return Err(TypeError::invalid(format!("BatchNormalization of {x}")));
        }
        per_channel("BatchNormalization", inputs, 1, &x.shape[1]).map_err(|e| e.with_types([x.clone()]))?;
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("BatchNormalization", inputs)?;
        let [x, scale, bias, mean, variance] = tensors.as_slice() else {
            return Err(EvalError::value("BatchNormalization takes five operands"));
        };
        let channels = *x.shape.get(1).ok_or_else(|| EvalError::value("BatchNormalization without channels"))?;
        channel_vectors("BatchNormalization", &tensors, 1, channels)?;
        let size: usize = x.shape[2..].iter().product();
        let mut factors = Vec::with_capacity(channels);
        for (scale, variance) in scale.data.iter().zip(&variance.data) {
            factors.push(scale.mul(&inverse_deviation(variance, self.epsilon.0)?));
        }
        let mut data = Vec::with_capacity(x.data.len());
        for at in 0..x.shape[0] * channels {
            let c = at % channels;
            let (mean, factor, bias) = (&mean.data[c], &factors[c], &bias.data[c]);
            data.extend(x.data[at * size..][..size].iter().map(|v| v.sub(mean).mul(factor).add(bias)));
        }
        Ok(vec![Value::real(Tensor::new(x.shape.clone(), data))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["BatchNormalization"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        // It updates the running statistics in training only.
        node.attrs.ignore(&["momentum", "is_test"]);
        // Before opset 7 the attribute `is_test` chooses, and its default is training.
        if node.version < 7 && node.int("is_test").unwrap_or(0) == 0 {
            return Err(Opaque(format!("BatchNormalization of opset {} that may train", node.version)));
        }
        if node.flag("training_mode", false)? {
            return Err(Opaque("BatchNormalization in training mode".into()));
        }
        if node.int("spatial").unwrap_or(1) == 0 {
            return Err(Opaque("BatchNormalization with statistics per position".into()));
        }
        if node.ty(0).is_ok_and(|x| x.rank() < 2) {
            return Err(Opaque("BatchNormalization of a vector".into()));
        }
        node.import(crate::Op::BatchNormalization(BatchNormalization { epsilon: float_or(node, "epsilon", 1e-5) }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("BatchNormalization", TYPES, version, outputs[0].dtype)?;
        Ok(OnnxSpelling::plain("BatchNormalization", 5).with("epsilon", Attr::Float(self.epsilon)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 2.0 * out as f64, extra_bytes: 0.0, kernel: Kernel::Elementwise }
    }
}
