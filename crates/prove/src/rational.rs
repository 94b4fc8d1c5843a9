//! Exact ratios of machine integers.

use regraft_ir::DType;

use crate::value::{meant, stored};

/// A ratio in lowest terms, its denominator positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Rational {
    numerator: i64,
    denominator: i64,
}

/// Largest numerator and denominator of a constant that is read as a ratio.
const LONGEST: u64 = 1 << 32;

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        // Division of machine words is many times as fast.
        if let (Ok(mut x), Ok(mut y)) = (u64::try_from(a), u64::try_from(b)) {
            while y != 0 {
                (x, y) = (y, x % y);
            }
            return x.into();
        }
        (a, b) = (b, a % b);
    }
    a
}

impl Rational {
    pub(crate) const ZERO: Rational = Rational { numerator: 0, denominator: 1 };
    pub(crate) const ONE: Rational = Rational { numerator: 1, denominator: 1 };
    pub(crate) const MINUS_ONE: Rational = Rational { numerator: -1, denominator: 1 };

    /// The ratio in lowest terms; `None` if it does not fit, or if the denominator is 0.
    pub(crate) fn reduced(numerator: i128, denominator: i128) -> Option<Rational> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs()).max(1) as i128 * denominator.signum();
        Some(Rational { numerator: i64::try_from(numerator / divisor).ok()?, denominator: i64::try_from(denominator / divisor).ok()? })
    }

    /// The number a double stands for: the ratio it was rounded from, in single precision if the
    /// double is a single-precision number; `None` if there is none, or it does not fit.
    pub(crate) fn of(value: f64) -> Option<Rational> {
        let dtype = if f64::from(value as f32) == value { DType::F32 } else { DType::F64 };
        let exact = meant(value, dtype).or_else(|| stored(value))?;
        exact.short()
    }

    /// Whether products of a few of these fit.
    pub(crate) fn is_short(self) -> bool {
        self.numerator.unsigned_abs() <= LONGEST && self.denominator.unsigned_abs() <= LONGEST
    }

    pub(crate) fn is_zero(self) -> bool {
        self.numerator == 0
    }

    pub(crate) fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// An integer.
    pub(crate) fn whole(value: i64) -> Rational {
        Rational { numerator: value, denominator: 1 }
    }

    pub(crate) fn numerator(self) -> i64 {
        self.numerator
    }

    pub(crate) fn denominator(self) -> i64 {
        self.denominator
    }

    /// The integer, if it is one.
    pub(crate) fn integer(self) -> Option<i64> {
        (self.denominator == 1).then_some(self.numerator)
    }

    pub(crate) fn plus(self, other: Rational) -> Option<Rational> {
        if self.denominator == 1 && other.denominator == 1 {
            return Some(Rational { numerator: self.numerator.checked_add(other.numerator)?, denominator: 1 });
        }
        let [a, b, c, d] = [self.numerator, self.denominator, other.numerator, other.denominator].map(i128::from);
        Rational::reduced((a * d).checked_add(c * b)?, b * d)
    }

    pub(crate) fn times(self, other: Rational) -> Option<Rational> {
        if self.denominator == 1 && other.denominator == 1 {
            return Some(Rational { numerator: self.numerator.checked_mul(other.numerator)?, denominator: 1 });
        }
        let [a, b, c, d] = [self.numerator, self.denominator, other.numerator, other.denominator].map(i128::from);
        Rational::reduced(a * c, b * d)
    }

    /// `1 / self`; `None` for zero.
    pub(crate) fn inverse(self) -> Option<Rational> {
        Rational::reduced(i128::from(self.denominator), i128::from(self.numerator))
    }

    pub(crate) fn negative(self) -> Option<Rational> {
        self.times(Rational::MINUS_ONE)
    }

    /// Which of two is larger.
    pub(crate) fn order(self, other: Rational) -> std::cmp::Ordering {
        let [a, b, c, d] = [self.numerator, self.denominator, other.numerator, other.denominator].map(i128::from);
        (a * d).cmp(&(c * b))
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_in_lowest_terms_and_never_wrap() {
        let half = Rational::of(0.5).unwrap();
        let third = Rational::of(-1.0 / 3.0).unwrap();
        assert_eq!(half.plus(third).unwrap(), Rational { numerator: 1, denominator: 6 });
        assert_eq!(half.times(third).unwrap().inverse().unwrap(), Rational { numerator: -6, denominator: 1 });
        assert_eq!(third.plus(third.negative().unwrap()), Some(Rational::ZERO));
        assert_eq!(half.order(third), std::cmp::Ordering::Greater);
        let large = Rational { numerator: i64::MAX, denominator: 1 };
        assert_eq!((large.plus(Rational::ONE), large.times(large), Rational::ZERO.inverse()), (None, None, None));
        assert_eq!(Rational::of(f64::NAN), None);
    }
}
