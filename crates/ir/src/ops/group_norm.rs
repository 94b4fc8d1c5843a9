//! Group normalization, with one scale and one bias per channel.

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::moments::mean_and_scale;
use crate::ops::operands::{LARGEST_SIZE, channel_vectors, divided, float_or, floats, per_channel, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(18, Types::FLOATS.and(Types::BF16))];

operator! {
    /// `x[N, C, spatial..], scale[C], bias[C] → (x - mean) / sqrt(variance + epsilon) * scale +
    /// bias`, moments over each group of `C / num_groups` neighbouring channels of one image.
    pub struct GroupNormalization {
        /// Number of groups; divides the channels.
        pub num_groups: i64,
        /// Added to the variance.
        pub epsilon: Float,
    }
}

impl Operator for GroupNormalization {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("GroupNormalization", inputs, 3..=3)?;
        let x = &inputs[0];
        if x.rank() < 2 || !(1..=LARGEST_SIZE).contains(&self.num_groups) {
            return Err(TypeError::invalid(format!("GroupNormalization of {x} in {} groups", self.num_groups)));
        }
        divided("GroupNormalization", &x.shape[1], self.num_groups)
            .and_then(|_| per_channel("GroupNormalization", inputs, 1, &x.shape[1]))
            .map_err(|e| e.with_types([x.clone()]))?;
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("GroupNormalization", inputs)?;
        let groups = usize::try_from(self.num_groups).unwrap_or(0);
        normalize_groups("GroupNormalization", &tensors, groups, self.epsilon.0).map(|t| vec![Value::real(t)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    /// Until opset 20 scale and bias have one value per group: constants are expanded to the
    /// channels, others stay opaque.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let num_groups = node.int("num_groups").ok_or_else(|| Opaque("GroupNormalization without num_groups".into()))?;
        if node.int("stash_type").unwrap_or(1) != 1 {
            return Err(Opaque("GroupNormalization with another precision inside".into()));
        }
        let op = crate::Op::GroupNormalization(GroupNormalization { num_groups, epsilon: float_or(node, "epsilon", 1e-5) });
        if node.version >= 21 {
            return node.import(op);
        }
        let channels = node.ty(0)?.shape.get(1).and_then(crate::Dim::known);
        let channels = channels.ok_or_else(|| Opaque("GroupNormalization per group of unknown channels".into()))?;
        if num_groups == channels {
            return node.import(op);
        }
        let mut operands = vec![ImportOperand::Input(0)];
        for at in 1..=2 {
            let value = node.constant(at)?.ok_or_else(|| Opaque("GroupNormalization lacks an input".into()))?;
            let spread = spread(value, num_groups, channels);
            operands.push(ImportOperand::Const(spread.ok_or_else(|| Opaque("GroupNormalization with odd scales per group".into()))?));
        }
        Ok(Imported { op, operands })
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let per_channel = inputs.first().is_some_and(|x| x.shape.get(1).is_some_and(|c| c.is(self.num_groups)));
        accepts::spelled("GroupNormalization", TYPES, version, outputs[0].dtype)?;
        if !per_channel {
            crate::ops::elementwise::since("GroupNormalization with scales per channel", version, 21)?;
        }
        let spelling = OnnxSpelling::plain("GroupNormalization", 3);
        Ok(spelling.with("num_groups", Attr::Int(self.num_groups)).with("epsilon", Attr::Float(self.epsilon)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 8.0 * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}

/// Scales per group are expanded to at most this many channels.
const MOST_CHANNELS: i64 = 1 << 20;

/// Expands a vector with one value per group to one value per channel.
fn spread(value: &Const, groups: i64, channels: i64) -> Option<Const> {
    if value.shape() != [groups] || groups < 1 || channels % groups != 0 || channels > MOST_CHANNELS {
        return None;
    }
    let each = usize::try_from(channels / groups).ok()?;
    let mut bytes = Vec::with_capacity(value.bytes().len().checked_mul(each)?);
    for element in value.bytes().chunks_exact(value.dtype().size().max(1)) {
        (0..each).for_each(|_| bytes.extend_from_slice(element));
    }
    Const::new(value.dtype(), &[channels], bytes.into())
}

/// `x, scale, bias` with moments over each of `groups` runs of neighbouring channels.
pub(crate) fn normalize_groups<S: Scalar>(name: &str, tensors: &[&Tensor<S>], groups: usize, epsilon: f64) -> Result<Tensor<S>, EvalError> {
    let [x, scale, bias] = tensors else { return Err(EvalError::value(format!("{name} takes three operands"))) };
    let channels = x.shape.get(1).copied().unwrap_or(0);
    if x.data.is_empty() {
        return Ok((*x).clone());
    }
    if groups == 0 || channels % groups != 0 {
        return Err(EvalError::value(format!("{name} of {channels} channels in {groups} groups")));
    }
    channel_vectors(name, tensors, 1, channels)?;
    let size: usize = x.shape[2..].iter().product();
    let each = channels / groups;
    let mut data = Vec::with_capacity(x.data.len());
    for (at, group) in x.data.chunks_exact(each * size).enumerate() {
        let (mean, factor) = mean_and_scale(group, epsilon)?;
        for (within, plane) in group.chunks_exact(size).enumerate() {
            let c = at % groups * each + within;
            let (scale, bias) = (factor.mul(&scale.data[c]), &bias.data[c]);
            data.extend(plane.iter().map(|v| v.sub(&mean).mul(&scale).add(bias)));
        }
    }
    Ok(Tensor::new(x.shape.clone(), data))
}
