//! Checks shared by many operators: number and element type of operands, agreement of sizes, unused
//! results.

use std::ops::RangeInclusive;

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{OnnxNode, Opaque};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Largest window, stride, pad, dilation, factor or block size: keeps sums of products of two
/// within 64 bits.
pub(crate) const LARGEST_SIZE: i64 = 1 << 30;

/// The single floating-point type of `count` operands.
pub(crate) fn floats(name: &str, inputs: &[TensorType], count: RangeInclusive<usize>) -> Result<DType, TypeError> {
    let Some(first) = inputs.first().filter(|_| count.contains(&inputs.len())) else {
        return Err(TypeError::invalid(format!("{name} takes {} to {} operands, not {}", count.start(), count.end(), inputs.len())));
    };
    if !first.dtype.is_float() {
        return Err(TypeError::invalid(format!("{name} is defined for floats, not {}", first.dtype)));
    }
    match inputs.iter().find(|t| t.dtype != first.dtype) {
        Some(other) => Err(TypeError::invalid(format!("{name} mixes {} and {}", first.dtype, other.dtype))),
        None => Ok(first.dtype),
    }
}

/// Fails unless two sizes are equal for all symbol values.
pub(crate) fn equal_sizes(name: &str, what: &str, a: &Dim, b: &Dim) -> Result<(), TypeError> {
    if a == b {
        return Ok(());
    }
    let message = format!("{name} needs {what}, not {a} and {b}");
    Err(if a.known().is_some() && b.known().is_some() { TypeError::Invalid(message) } else { TypeError::undecided(message) })
}

/// The same for sizes that every runtime compares: the model does not run where they differ.
pub(crate) fn enforced_sizes(name: &str, what: &str, a: &Dim, b: &Dim) -> Result<(), TypeError> {
    equal_sizes(name, what, a, b).map_err(|e| e.needing(a, b))
}

/// Fails unless every operand from `from` on is a vector of `channels` elements.
pub(crate) fn per_channel(name: &str, inputs: &[TensorType], from: usize, channels: &Dim) -> Result<(), TypeError> {
    for t in inputs.iter().skip(from) {
        let [size] = t.shape.as_slice() else {
            return Err(TypeError::invalid(format!("{name} needs vectors of one value per channel, not {t}")));
        };
        equal_sizes(name, "one value per channel", channels, size)?;
    }
    Ok(())
}

/// `size / divisor`, which must leave no remainder.
pub(crate) fn divided(name: &str, size: &Dim, divisor: i64) -> Result<Dim, TypeError> {
    match size.exact_div(&Dim::from(divisor)) {
        Some(exact) => Ok(exact),
        None if size.known().is_some() => Err(TypeError::invalid(format!("{name} cannot divide {size} by {divisor}"))),
        None => Err(TypeError::undecided(format!("{name} divides {size} by {divisor}"))),
    }
}

/// The same for a division that every runtime checks: the model does not run where it leaves a
/// remainder.
pub(crate) fn enforced_divided(name: &str, size: &Dim, divisor: i64) -> Result<Dim, TypeError> {
    let whole = Dim::from(divisor) * size.floor_div(&Dim::from(divisor));
    divided(name, size, divisor).map_err(|e| e.needing(size, &whole))
}

/// All operands as real tensors.
pub(crate) fn reals<'a, S: Scalar>(name: &str, inputs: &'a [Value<S>]) -> Result<Vec<&'a Tensor<S>>, EvalError> {
    inputs
        .iter()
        .map(|v| match v {
            Value::Real(t) => Ok(t.as_ref()),
            _ => Err(EvalError::value(format!("{name} is defined for reals"))),
        })
        .collect()
}

/// Fails unless every vector from `from` on has `channels` elements.
pub(crate) fn channel_vectors<S>(name: &str, tensors: &[&Tensor<S>], from: usize, channels: usize) -> Result<(), EvalError> {
    match tensors.iter().skip(from).find(|t| t.data.len() != channels) {
        Some(t) => Err(EvalError::value(format!("{name} of {channels} channels with a vector of shape {:?}", t.shape))),
        None => Ok(()),
    }
}

/// Fails if any result but the first is used.
pub(crate) fn one_result(node: &OnnxNode) -> Result<(), Opaque> {
    if node.outputs.iter().skip(1).any(|used| *used) {
        return Err(Opaque(format!("{} with more than one result", node.op_type)));
    }
    Ok(())
}

/// The float attribute `name`, or its default in the precision that ONNX stores.
pub(crate) fn float_or(node: &OnnxNode, name: &str, default: f32) -> crate::attr::Float {
    crate::attr::Float(node.float(name).unwrap_or_else(|| f64::from(default)))
}
