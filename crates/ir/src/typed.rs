//! Constants as their types represent them. The evaluator computes with numbers that are wider than
//! types; for constants, its results are only trusted where this makes no difference to what a
//! runtime computes, except for the rounding of sums and products.

use std::sync::Arc;

use half::{bf16, f16};

use crate::dtype::{Class, DType};
use crate::op::{EvalContext, OpKind};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};

/// Integers up to this are exact as doubles.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// An operator's result on constants, as its types represent it: casts to narrower types round.
/// `None` where runtimes may compute a different constant: where numbers leave the range of their
/// type, sums of integers overflow, or operands are not numbers or infinite, unless they are only
/// moved.
pub fn typed<S: Scalar>(kind: OpKind, operands: &[Value<S>], context: &EvalContext<'_>, results: Vec<Value<S>>) -> Option<Vec<Value<S>>> {
    if !kind.folds() {
        return None;
    }
    // Tests for NaN and infinity give the same result everywhere.
    let moved = kind.moves_elements() || matches!(kind, OpKind::IsNaN | OpKind::IsInf);
    if !moved && !operands.iter().all(is_finite) {
        return None;
    }
    let to = context.output_types.first().map(|ty| ty.dtype);
    let from = context.input_types.first().map(|ty| ty.dtype);
    let fits = match (kind, operands, from.zip(to)) {
        (OpKind::Cast, [operand], Some((from, to))) => casts(operand, from, to),
        (OpKind::Pow, [base, exponent], Some((_, to))) if to.class() == Class::Int => powers_fit(base, exponent, to),
        // Numbers that are nearly equal may be in another order once they are rounded.
        (OpKind::TopK, [operand], _) => !matches!(operand, Value::Real(_)),
        (kind, [operand, ..], Some((from, _))) if from.class() == Class::Int => sums_fit(kind, operand, from),
        _ => true,
    };
    let held = |(value, dtype): (Value<S>, DType)| match value {
        Value::Real(tensor) if !moved => held(Arc::unwrap_or_clone(tensor), dtype, kind).map(Value::real),
        value => Some(value),
    };
    let types = context.output_types.iter().map(|ty| ty.dtype);
    if fits { results.into_iter().zip(types).map(held).collect() } else { None }
}

/// Whether all elements are numbers.
fn is_finite<S: Scalar>(value: &Value<S>) -> bool {
    match value {
        Value::Real(tensor) => tensor.data.iter().all(|x| x.to_f64().map_or(true, f64::is_finite)),
        _ => true,
    }
}

/// The smallest and the largest number of an integer type, as doubles; the latter is the first that
/// does not fit.
fn range(dtype: DType) -> (f64, f64) {
    let bits = 8 * dtype.size() as i32;
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0.0, 2f64.powi(bits)),
        _ => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
    }
}

/// Whether a cast of these elements gives the same result everywhere.
fn casts<S: Scalar>(operand: &Value<S>, from: DType, to: DType) -> bool {
    match operand {
        Value::Real(tensor) if to.class() == Class::Int => {
            let (least, end) = range(to);
            tensor.data.iter().all(|x| x.to_f64().is_ok_and(|x| x.trunc() >= least && x.trunc() < end))
        }
        Value::Int(tensor) if to.class() == Class::Real => {
            let is_held = |x: &i64| (*x as f64).abs() <= WHOLE && (*x >= 0 || range(from).0 < 0.0);
            tensor.data.iter().all(is_held)
        }
        _ => true,
    }
}

/// The largest magnitude.
fn largest<S: Scalar>(value: &Value<S>) -> Option<f64> {
    let magnitudes: Option<Vec<f64>> = match value {
        Value::Real(tensor) => tensor.data.iter().map(|x| x.to_f64().ok().filter(|x| x.fract() == 0.0 && *x >= 0.0)).collect(),
        Value::Int(tensor) => Some(tensor.data.iter().map(|x| (*x as f64).abs()).collect()),
        Value::Bool(_) => None,
    };
    Some(magnitudes?.into_iter().fold(0.0, f64::max))
}

/// Whether integer powers stay where runtimes agree, some of which compute them as doubles.
fn powers_fit<S: Scalar>(base: &Value<S>, exponent: &Value<S>, dtype: DType) -> bool {
    let is_negative = matches!(exponent, Value::Int(tensor) if tensor.data.iter().any(|x| *x < 0));
    let power = largest(base).zip(largest(exponent)).map(|(base, exponent)| base.powf(exponent));
    !is_negative && power.is_some_and(|power| power < range(dtype).1.min(WHOLE))
}

/// Whether integers that are added up or multiplied along axes fit their type in any order. Other
/// operators wrap around everywhere.
fn sums_fit<S: Scalar>(kind: OpKind, operand: &Value<S>, dtype: DType) -> bool {
    use OpKind::{ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMean, ReduceProd, ReduceSum, ReduceSumSquare};
    let Value::Int(tensor) = operand else { return true };
    let magnitudes = tensor.data.iter().map(|x| (*x as f64).abs());
    let most = match kind {
        ReduceSum | ReduceMean | ReduceL1 | ReduceLogSum => magnitudes.sum::<f64>(),
        ReduceL2 | ReduceSumSquare => magnitudes.map(|x| x * x).sum(),
        ReduceProd => magnitudes.map(|x| x.max(1.0)).product(),
        ReduceLogSumExp => f64::INFINITY,
        _ => 0.0,
    };
    most < range(dtype).1.min(WHOLE)
}

/// Elements as a floating-point type represents them. Where nothing is rounded on purpose, values
/// between two numbers stay. Values that are too large are infinite after a single operation, and
/// unknown after several.
fn held<S: Scalar>(mut tensor: Tensor<S>, dtype: DType, kind: OpKind) -> Option<Tensor<S>> {
    let is_single = matches!(kind, OpKind::Cast | OpKind::Add | OpKind::Sub | OpKind::Mul | OpKind::Div);
    let (smallest, largest) = limits(dtype)?;
    let bound = [S::from_f64(largest), S::from_f64(-largest)];
    for element in &mut tensor.data {
        let Ok(number) = element.to_f64() else {
            let below = element.compare(&bound[0]).ok()?.is_some_and(|order| order.is_le());
            let above = element.compare(&bound[1]).ok()?.is_some_and(|order| order.is_ge());
            if !below || !above {
                return None;
            }
            continue;
        };
        let nearest = nearest(number, dtype);
        let overflows = nearest.is_infinite() && number.is_finite() && is_single;
        if !(nearest.is_finite() || overflows) || number != 0.0 && number.abs() < smallest {
            return None;
        }
        if overflows || kind == OpKind::Cast && nearest != number {
            *element = S::from_f64(nearest);
        }
    }
    Some(tensor)
}

/// The smallest normal number and the largest number of a floating-point type.
fn limits(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((f64::MIN_POSITIVE, f64::MAX)),
        DType::F32 => Some((f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))),
        DType::F16 => Some((f16::MIN_POSITIVE.to_f64(), f16::MAX.to_f64())),
        DType::BF16 => Some((bf16::MIN_POSITIVE.to_f64(), bf16::MAX.to_f64())),
        _ => None,
    }
}

/// The nearest number of a floating-point type.
fn nearest(number: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(number as f32),
        DType::F16 => f16::from_f64(number).to_f64(),
        DType::BF16 => bf16::from_f64(number).to_f64(),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use crate::eval::constant_value;
    use crate::text::parse;

    /// The constant that the last value of a text is, if every runtime agrees on it.
    fn constant(text: &str) -> Option<Vec<f64>> {
        let graph = parse(&format!("graph () {{ {text} output y }}")).expect("a graph");
        constant_value(&graph, graph.outputs()[0].value).ok()?.to_f64()
    }

    #[test]
    fn casts_round_and_what_leaves_its_type_is_no_constant() {
        for (text, expected) in [
            ("const a: i64[] = 16777217 b = Cast(a, to=f32) y = Cast(b, to=i64)", Some(16_777_216.0)),
            ("const a: f32[] = 2049.0 b = Cast(a, to=f16) c = Cast(b, to=f32) y = Cast(c, to=i64)", Some(2048.0)),
            ("const a: f32[] = -1.0 y = Cast(a, to=u8)", None),
            ("const a: f32[] = 300.0 y = Cast(a, to=u8)", None),
            ("const a: f32[] = 254.5 y = Cast(a, to=u8)", Some(254.0)),
            ("const a: f32[] = 3e38 y = Mul(a, a)", Some(f64::INFINITY)),
            ("const a: f32[] = 3e38 b = Mul(a, a) y = Mul(b, a)", None),
            ("const a: f32[] = 1e-30 y = Mul(a, a)", None),
            ("const a: f32[] = 3.0 y = Mul(a, a)", Some(9.0)),
            ("const a: i64[] = 3 const b: i64[] = 39 y = Pow(a, b)", None),
            ("const a: i64[] = 3 const b: i64[] = 4 y = Pow(a, b)", Some(81.0)),
            ("const a: i32[2] = [2147483647, 2147483647] y = ReduceMean(a, axes=[0], keepdims=false)", None),
            ("const a: i64[2] = [3, 4] y = ReduceProd(a, axes=[0], keepdims=false)", Some(12.0)),
        ] {
            assert_eq!(constant(text), expected.map(|number| vec![number]), "{text}");
        }
    }
}
