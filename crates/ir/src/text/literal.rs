//! Data of constants in the text format.

use crate::constant::Const;
use crate::dtype::{Class, DType};
use crate::random::SplitMix64;

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

/// The constant with these elements; `None` if their number or kind does not match.
pub(super) fn constant(dtype: DType, shape: &[i64], numbers: &[Number]) -> Option<Const> {
    if dtype.is_float() {
        return Const::from_f64(dtype, shape, &numbers.iter().map(|n| n.as_f64()).collect::<Vec<_>>());
    }
    let ints: Option<Vec<i64>> = numbers.iter().map(|n| if let Number::Int(v) = n { Some(*v) } else { None }).collect();
    Const::from_i64(dtype, shape, &ints?)
}

/// The data of a constant written without data: it depends only on the name and the type.
pub(super) fn seeded(dtype: DType, shape: &[i64], name: &str) -> Option<Const> {
    let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?)).filter(|n| *n <= 1 << 28)?;
    let mut random = SplitMix64(xxhash_rust::xxh3::xxh3_64(name.as_bytes()));
    match dtype.class() {
        Class::Real => {
            let real = |_| (random.word() >> 40) as f64 / f64::from(1 << 23) - 1.0;
            Const::from_f64(dtype, shape, &(0..elements).map(real).collect::<Vec<_>>())
        }
        Class::Int => Const::from_i64(dtype, shape, &(0..elements).map(|_| (random.word() >> 33) as i64 % 3).collect::<Vec<_>>()),
        Class::Bool => Const::from_i64(dtype, shape, &(0..elements).map(|_| (random.word() >> 63) as i64).collect::<Vec<_>>()),
        Class::Other => None,
    }
}

/// The elements as text that reads back to the same bits (for a NaN, to some NaN); `None` for
/// exotic types.
pub(super) fn elements(constant: &Const) -> Option<Vec<String>> {
    Some(match constant.dtype().class() {
        Class::Real => constant.to_f64()?.into_iter().map(|v| float(constant.dtype(), v)).collect(),
        Class::Int => constant.to_i64()?.into_iter().map(|v| v.to_string()).collect(),
        Class::Bool => constant.to_i64()?.into_iter().map(|v| (v != 0).to_string()).collect(),
        Class::Other => return None,
    })
}

/// The shortest text that denotes this value in this type.
fn float(dtype: DType, value: f64) -> String {
    let short = format!("{:?}", value as f32);
    let back = short.parse::<f64>().is_ok_and(|v| (v as f32).to_bits() == (value as f32).to_bits());
    if dtype == DType::F32 && back { short } else { format!("{value:?}") }
}
