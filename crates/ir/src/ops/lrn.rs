//! Local response normalization across channels.

use crate::attr::{Attr, Float};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::{LARGEST_SIZE, float_or, floats, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];

operator! {
    /// `x[N, C, ..] → x / (bias + alpha / size * squares) ^ beta`, where `squares` sums `x²` over
    /// the channels from `c - floor((size - 1) / 2)` to `c + ceil((size - 1) / 2)`, those outside
    /// left out.
    pub struct LRN {
        /// Number of channels in the window.
        pub size: i64,
        /// Weight of the mean square.
        pub alpha: Float,
        /// Exponent.
        pub beta: Float,
        /// Added to the weighted mean square.
        pub bias: Float,
    }
}

impl Operator for LRN {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("LRN", inputs, 1..=1)?;
        if inputs[0].rank() < 2 || !(1..=LARGEST_SIZE).contains(&self.size) {
            return Err(TypeError::invalid(format!("LRN over {} channels of {}", self.size, inputs[0])));
        }
        Ok(vec![inputs[0].clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("LRN", inputs)?;
        let [x] = tensors.as_slice() else { return Err(EvalError::value("LRN takes one operand")) };
        let Some(&channels) = x.shape.get(1) else { return Err(EvalError::value("LRN without channels")) };
        let Some(window) = usize::try_from(self.size).ok().filter(|s| *s > 0) else {
            return Err(EvalError::value(format!("LRN over {} channels", self.size)));
        };
        if x.data.is_empty() {
            return Ok(vec![inputs[0].clone()]);
        }
        let size: usize = x.shape[2..].iter().product();
        let (before, after) = ((window - 1) / 2, window / 2);
        let weight = S::from_f64(self.alpha.0).div(&S::from_f64(self.size as f64))?;
        let (beta, bias) = (S::from_f64(self.beta.0), S::from_f64(self.bias.0));
        let mut data = Vec::with_capacity(x.data.len());
        let mut sums = vec![S::zero(); size];
        for image in x.data.chunks_exact(channels * size) {
            for c in 0..channels {
                sums.fill(S::zero());
                for row in image[c.saturating_sub(before) * size..(c + after + 1).min(channels) * size].chunks_exact(size) {
                    sums.iter_mut().zip(row).for_each(|(sum, v)| *sum = sum.add(&v.mul(v)));
                }
                for (v, sum) in image[c * size..][..size].iter().zip(&sums) {
                    data.push(v.div(&bias.add(&weight.mul(sum)).pow(&beta)?)?);
                }
            }
        }
        Ok(vec![Value::real(Tensor::new(x.shape.clone(), data))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["LRN"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let size = node.int("size").ok_or_else(|| Opaque("LRN without size".into()))?;
        let (alpha, beta, bias) = (float_or(node, "alpha", 1e-4), float_or(node, "beta", 0.75), float_or(node, "bias", 1.0));
        node.import(crate::Op::LRN(LRN { size, alpha, beta, bias }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("LRN", TYPES, version, outputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("LRN", 1).with("size", Attr::Int(self.size)).with("alpha", Attr::Float(self.alpha));
        Ok(spelling.with("beta", Attr::Float(self.beta)).with("bias", Attr::Float(self.bias)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: (2.0 * self.size as f64 + 3.0) * out as f64, extra_bytes: 0.0, kernel: Kernel::Transcendental }
    }
}
