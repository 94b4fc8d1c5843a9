//! Exact numbers, and what decimal constants stand for.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::FromPrimitive;

use crate::ratio::simplest;

/// An exact ratio.
pub(crate) type Number = BigRational;

/// How far from a ratio a number of double precision may be that was computed to be it, in units of the last place.
const ULPS: f64 = 8.0;
/// Most digits of a decimal that is taken as it is written.
const MOST_DIGITS: usize = 6;

/// A whole number.
pub(crate) fn whole(value: i64) -> Number {
    Number::from_integer(BigInt::from(value))
}

/// The number that a constant stands for: the simplest ratio that rounds to it in single precision if it is a number of single precision, or else comes
/// within eight units of the last place in double precision; if that ratio is not simple, the decimal that it is written as, if that is short; else the number itself. `None` for what is
/// no number.
///
/// `0.1` means one tenth, not the number of single precision next to it.
pub(crate) fn number_of(value: f64) -> Option<Number> {
    if !value.is_finite() {
        return None;
    }
    let single = f64::from(value as f32) == value;
    let close = |ratio: f64| {
        if single { ratio as f32 == value.abs() as f32 } else { (ratio - value.abs()).abs() <= ULPS * f64::EPSILON * value.abs() }
    };
    let written = || if single { decimal(&format!("{}", value as f32)) } else { decimal(&format!("{value}")) };
    let signed = |ratio: Number| if value < 0.0 { -ratio } else { ratio };
    simplest(value.abs(), close).map(|(n, d)| signed(Number::new(n.into(), d.into()))).or_else(written).or_else(|| Number::from_f64(value))
}

/// A decimal of few digits.
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
    fn decimals_are_read_back() {
        let ratio = |n: i64, d: i64| Some(Number::new(n.into(), d.into()));
        for (value, expected) in [
            (0.0, ratio(0, 1)),
            (-3.0, ratio(-3, 1)),
            (0.1, ratio(1, 10)),
            (f64::from(0.1f32), ratio(1, 10)),
            (f64::from(1.0f32 / 6.0), ratio(1, 6)),
            (0.044_715, ratio(8943, 200_000)),
            (-1e-5, ratio(-1, 100_000)),
            (f64::INFINITY, None),
        ] {
            assert_eq!(number_of(value), expected, "{value}");
        }
        // What no small ratio stands for is taken bit by bit.
        let odd = 0.717_345_234_1;
        assert_eq!(number_of(odd), Number::from_f64(odd));
    }
}
