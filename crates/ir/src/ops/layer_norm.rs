//! Layer normalization.

use std::ops::RangeInclusive;

use crate::attr::{Attr, Float};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::moments::mean_and_scale;
use crate::ops::operands::{float_or, floats, one_result, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, broadcast_concrete};
use crate::ty::{TensorType, broadcast_shapes};

/// Element types by opset.
const TYPES: &[Since] = &[(17, Types::FLOATS.and(Types::BF16))];

operator! {
    /// `x, scale (, bias) → (x - mean) / sqrt(variance + epsilon) * scale + bias`, moments over the
    /// axes from `axis` on.
    ///
    /// `scale` and `bias` broadcast to the shape of `x`; usually they have the shape of its axes
    /// from `axis` on.
    pub struct LayerNormalization {
        /// First of the normalized axes, ≥ 0.
        pub axis: i64,
        /// Added to the variance.
        pub epsilon: Float,
    }
}

impl Operator for LayerNormalization {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        types("LayerNormalization", self.axis, inputs, 2..=3)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("LayerNormalization", inputs)?;
        let [x, affine @ ..] = tensors.as_slice() else { return Err(EvalError::value("LayerNormalization takes two or three operands")) };
        let Some(normalized) = usize::try_from(self.axis).ok().and_then(|axis| x.shape.get(axis..)) else {
            return Err(EvalError::value(format!("LayerNormalization of {:?} from axis {}", x.shape, self.axis)));
        };
        let size: usize = normalized.iter().product();
        let mut data = Vec::with_capacity(x.data.len());
        if size > 0 {
            for row in x.data.chunks_exact(size) {
                let (mean, scale) = mean_and_scale(row, self.epsilon.0)?;
                data.extend(row.iter().map(|v| v.sub(&mean).mul(&scale)));
            }
        }
        let mut result = Tensor::new(x.shape.clone(), data);
        for (at, t) in affine.iter().enumerate() {
            let scales = at == 0;
            scaled("LayerNormalization", &mut result, t, |v, a| if scales { v.mul(a) } else { v.add(a) })?;
        }
        Ok(vec![Value::real(result)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["LayerNormalization"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        if node.int("stash_type").unwrap_or(1) != 1 {
            return Err(Opaque("LayerNormalization with another precision inside".into()));
        }
        let axis = node.axis(node.int("axis").unwrap_or(-1), node.ty(0)?.rank())?;
        node.import(crate::Op::LayerNormalization(LayerNormalization { axis, epsilon: float_or(node, "epsilon", 1e-5) }))
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("LayerNormalization", TYPES, version, outputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("LayerNormalization", inputs.len());
        Ok(spelling.with("axis", Attr::Int(self.axis)).with("epsilon", Attr::Float(self.epsilon)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 8.0 * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}

/// The result's type of a normalization from an axis on, whose further operands broadcast to the
/// first.
pub(crate) fn types(name: &str, from: i64, inputs: &[TensorType], count: RangeInclusive<usize>) -> Result<Vec<TensorType>, TypeError> {
    floats(name, inputs, count)?;
    let x = &inputs[0];
    if !(0..x.rank() as i64).contains(&from) {
        return Err(TypeError::invalid(format!("{name} of {x} from axis {from}")));
    }
    for t in &inputs[1..] {
        if t.rank() > x.rank() || t.shape.iter().zip(&x.shape[x.rank() - t.rank()..]).any(|(a, b)| !a.is(1) && a != b) {
            let message = format!("{name} of {x} scaled by {t}");
            let possible = broadcast_shapes([x.shape.as_slice(), t.shape.as_slice()]).is_some_and(|s| s.len() == x.rank());
            let known = x.known_shape().is_some() && t.known_shape().is_some();
            return Err(if possible && !known {
                TypeError::undecided(message).with_types([x.clone()])
            } else {
                TypeError::Invalid(message)
            });
        }
    }
    Ok(vec![x.clone()])
}

/// `f` on every element of `x` and the element of `t` that broadcasts to it.
pub(crate) fn scaled<S: Scalar>(name: &str, x: &mut Tensor<S>, t: &Tensor<S>, f: impl Fn(&S, &S) -> S) -> Result<(), EvalError> {
    if x.data.is_empty() {
        return Ok(());
    }
    if x.shape.ends_with(&t.shape) {
        for row in x.data.chunks_exact_mut(t.data.len()) {
            row.iter_mut().zip(&t.data).for_each(|(v, a)| *v = f(v, a));
        }
        return Ok(());
    }
    if broadcast_concrete([x.shape.as_slice(), t.shape.as_slice()]).as_ref() != Some(&x.shape) {
        return Err(EvalError::value(format!("{name} of {:?} scaled by {:?}", x.shape, t.shape)));
    }
    let index = t.broadcast_index(&x.shape);
    x.data.iter_mut().zip(index).for_each(|(v, at)| *v = f(v, &t.data[at]));
    Ok(())
}
