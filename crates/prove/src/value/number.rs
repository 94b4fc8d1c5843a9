//! Exact numbers, and what decimal constants stand for.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::FromPrimitive;

/// An exact ratio.
pub(crate) type Number = BigRational;

/// Largest denominator that a decimal is read back from.
const LARGEST_DENOMINATOR: i64 = 1 << 16;

/// A whole number.
pub(crate) fn whole(value: i64) -> Number {
    Number::from_integer(BigInt::from(value))
}

/// The number that a constant stands for: the simplest ratio that rounds to it in single precision if it is a number of single precision, or else in
/// double precision; the number itself if that ratio is not simple. `None` for what is no number.
///
/// `0.1` means one tenth, not the number of single precision next to it.
pub(crate) fn number_of(value: f64) -> Option<Number> {
    if !value.is_finite() {
        return None;
    }
    let single = f64::from(value as f32) == value;
    let close = |ratio: f64| if single { ratio as f32 == value as f32 } else { ratio == value };
    simple(value.abs(), &close).map(|ratio| if value < 0.0 { -ratio } else { ratio }).or_else(|| Number::from_f64(value))
}

/// The first convergent of the continued fraction that is close enough.
fn simple(magnitude: f64, close: &dyn Fn(f64) -> bool) -> Option<Number> {
    let (mut before, mut now) = ((0i64, 1i64), (1i64, 0i64));
    let mut rest = magnitude;
    for _ in 0..24 {
        let digit = rest.floor();
        if digit >= (1i64 << 50) as f64 {
            return None;
        }
        let next = |b: i64, n: i64| (digit as i64).checked_mul(n)?.checked_add(b);
        let convergent = (next(before.0, now.0)?, next(before.1, now.1)?);
        if convergent.1 > LARGEST_DENOMINATOR || convergent.0 > 1 << 52 {
            return None;
        }
        (before, now) = (now, convergent);
        if close(now.0 as f64 / now.1 as f64) {
            return Some(Number::new(BigInt::from(now.0), BigInt::from(now.1)));
        }
        rest = 1.0 / (rest - digit);
        if !rest.is_finite() {
            return None;
        }
    }
    None
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
            (f64::INFINITY, None),
        ] {
            assert_eq!(number_of(value), expected, "{value}");
        }
        // What no small ratio stands for is taken bit by bit.
        let odd = 0.717_345_234_1;
        assert_eq!(number_of(odd), Number::from_f64(odd));
        assert_eq!(number_of(1e-5), Number::from_f64(1e-5));
    }
}
