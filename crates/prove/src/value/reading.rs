//! What numeric constants stand for.

use std::cell::Cell;
use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::Zero;
use regraft_ir::{Class, Const, DType};

use crate::ratio::simplest;
use crate::value::number::{Number, whole};

/// Maximum number of digits in a decimal that is read as written.
const MOST_DIGITS: usize = 6;

/// The stored number, whatever it was meant to be; `None` for infinities and NaN.
pub(crate) fn stored(value: f64) -> Option<Number> {
    Number::from_f64(value)
}

/// The exact elements of a numeric or boolean constant; `None` if one is infinite or NaN.
pub(crate) fn elements(constant: &Const) -> Option<Vec<Number>> {
    match constant.dtype().class() {
        Class::Real => constant.to_f64()?.into_iter().map(stored).collect(),
        Class::Int | Class::Bool => {
            let unsigned = constant.dtype() == DType::U64;
            let number = |v: i64| if unsigned { BigInt::from(v as u64) } else { BigInt::from(v) };
            Some(constant.to_i64()?.into_iter().map(|v| Number::from_integer(number(v))).collect())
        }
        Class::Other => None,
    }
}

/// How constants of floating-point types are read.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reading {
    /// As the stored numbers.
    #[default]
    Stored,
    /// As the simple ratios they were rounded from, where there are any. No two constants of one
    /// type are read as the same number.
    Meant(Rc<Rounded>),
}

/// How far constants are from the numbers they were read as.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounded {
    /// The largest difference, relative to the stored number.
    pub relative: Cell<f64>,
}

impl Rounded {
    fn note(&self, stored: &Number, meant: &Number) {
        let relative = if stored.is_zero() { 0.0 } else { ((meant - stored) / stored).abs().to_f64() };
        self.note_relative(relative);
    }

    fn note_relative(&self, relative: f64) {
        self.relative.set(self.relative.get().max(relative));
    }
}

impl Reading {
    /// The number as which a finite value of type `dtype` is read.
    pub fn number(&self, value: f64, dtype: DType) -> Option<Number> {
        let number = stored(value)?;
        let Reading::Meant(rounded) = self else { return Some(number) };
        let Some(meant) = meant(value, dtype).filter(|meant| *meant != number) else { return Some(number) };
        rounded.note(&number, &meant);
        Some(meant)
    }

    /// The multiple of a root as which a value of type `dtype` is read, if it is one.
    pub fn multiple_of_root(&self, value: f64, dtype: DType) -> Option<(Root, Number)> {
        let Reading::Meant(rounded) = self else { return None };
        let (root, ratio, exact) = multiple_of_root(value, dtype)?;
        // The product itself is known to double precision only.
        rounded.note_relative(((exact - value) / value).abs() + f64::EPSILON);
        Some((root, ratio))
    }
}

/// Roots that occur in GELU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The square root of 2.
    Two,
    /// The square root of 2 / pi.
    TwoOverPi,
}

/// A root, a ratio, and their product in double precision, which rounds to `value`.
fn multiple_of_root(value: f64, dtype: DType) -> Option<(Root, Number, f64)> {
    // The last two are factors of the cube in the tanh form.
    let ratios = [(1, 1), (2, 1), (1, 2), (44_715, 1_000_000), (2 * 44_715, 1_000_000)];
    let roots = [(Root::Two, std::f64::consts::SQRT_2), (Root::TwoOverPi, (2.0 / std::f64::consts::PI).sqrt())];
    let all = roots.into_iter().flat_map(|root| ratios.into_iter().map(move |ratio| (root, ratio)));
    all.into_iter().find_map(|((root, number), (n, d))| {
        let exact = (number * n as f64 / d as f64).copysign(value);
        let ratio = whole(if value < 0.0 { -n } else { n }) / whole(d);
        (round(exact, dtype) == Some(value)).then_some((root, ratio, exact))
    })
}

/// Whether a number of this type may be the result of rounding.
pub(crate) fn may_be_rounded(value: f64, dtype: DType) -> bool {
    meant(value, dtype).is_some_and(|number| stored(value) != Some(number)) || multiple_of_root(value, dtype).is_some()
}

/// `value` rounded to the type.
fn round(value: f64, dtype: DType) -> Option<f64> {
    match dtype {
        DType::F64 => Some(value),
        DType::F32 => Some(f64::from(value as f32)),
        _ => Const::scalar(dtype, value)?.to_f64()?.first().copied(),
    }
}

/// The decimal as which a number of this type is written, if that is short; otherwise the simplest
/// ratio that rounds to it, if there is a simple one.
///
/// `0.1` means one tenth, not the single-precision number next to it.
pub(crate) fn meant(value: f64, dtype: DType) -> Option<Number> {
    if !value.is_finite() {
        return None;
    }
    let close = |ratio: f64| round(ratio, dtype) == Some(value.abs());
    let written = || match dtype {
        DType::F64 => decimal(&format!("{value}")),
        _ => decimal(&format!("{}", value as f32)),
    };
    let signed = |ratio: Number| if value < 0.0 { -ratio } else { ratio };
    written().or_else(|| simplest(value.abs(), close).map(|(n, d)| signed(Number::new(n.into(), d.into()))))
}

/// A decimal with few digits.
fn decimal(text: &str) -> Option<Number> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    if digits.trim_start_matches('0').len() > MOST_DIGITS || fraction.len() > 3 * MOST_DIGITS {
        return None;
    }
    let ratio = Number::new(digits.parse().ok()?, BigInt::from(10).pow(fraction.len() as u32));
    Some(if whole.starts_with('-') { -ratio } else { ratio })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_back_where_they_are_meant() {
        let ratio = |n: i64, d: i64| Some(Number::new(n.into(), d.into()));
        for (value, dtype, expected) in [
            (0.0, DType::F32, ratio(0, 1)),
            (-3.0, DType::F32, ratio(-3, 1)),
            (-1e-5, DType::F64, ratio(-1, 100_000)),
            (0.1, DType::F64, ratio(1, 10)),
            (f64::from(0.1f32), DType::F32, ratio(1, 10)),
            (f64::from(1.0f32 / 6.0), DType::F32, ratio(1, 6)),
            (f64::from(0.044_715f32), DType::F32, ratio(8943, 200_000)),
            (f64::INFINITY, DType::F32, None),
        ] {
            assert_eq!(meant(value, dtype), expected, "{value}");
        }
        // A double that a float would round to one tenth is another number.
        assert_ne!(meant(f64::from(0.1f32), DType::F64), ratio(1, 10));
    }

    #[test]
    fn neighbours_are_never_read_as_one_number() {
        for value in [0.1f32, 1.0 / 3.0, 0.797_884_6, 1e-5, 6.0] {
            let next = f32::from_bits(value.to_bits() + 1);
            let [a, b] = [value, next].map(|v| Reading::Meant(Rc::default()).number(f64::from(v), DType::F32));
            assert!(a.is_some() && a != b, "{value}");
        }
    }

    #[test]
    fn stored_numbers_are_exact() {
        assert_ne!(Reading::Stored.number(0.1, DType::F64), Reading::Stored.number(f64::from(0.1f32), DType::F64));
        let large = Const::from_i64(DType::I64, &[2], &[(1 << 53) + 1, -1]).expect("a constant");
        assert_eq!(elements(&large), Some(vec![whole((1 << 53) + 1), whole(-1)]));
        let unsigned = Const::from_i64(DType::U64, &[1], &[-1]).expect("a constant");
        assert_eq!(elements(&unsigned), Some(vec![Number::from_integer(BigInt::from(u64::MAX))]));
    }
}
