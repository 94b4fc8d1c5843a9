//! Exact numbers.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{FromPrimitive, One, Signed, ToPrimitive, Zero};

use crate::rational::Rational;

/// An exact ratio of any length, held in two machine words wherever it fits: most numbers in
/// proofs do.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Number(Held);

/// A number that fits is always held as a short one, so that equality and hashes agree.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Held {
    Short(Rational),
    Long(Box<BigRational>),
}

/// An integer.
pub(crate) fn whole(value: i64) -> Number {
    Number(Held::Short(Rational::whole(value)))
}

impl Number {
    /// The ratio; the denominator is not 0.
    pub fn new(numerator: BigInt, denominator: BigInt) -> Number {
        Number::of(BigRational::new(numerator, denominator))
    }

    pub fn from_integer(value: BigInt) -> Number {
        value.to_i64().map_or_else(|| Number(Held::Long(Box::new(BigRational::from_integer(value)))), whole)
    }

    /// The number that a double is; `None` for infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Number> {
        BigRational::from_f64(value).map(Number::of)
    }

    fn of(value: BigRational) -> Number {
        let short = value.numer().to_i64().zip(value.denom().to_i64());
        let short = short.and_then(|(n, d)| Rational::reduced(n.into(), d.into()));
        Number(short.map_or_else(|| Held::Long(Box::new(value)), Held::Short))
    }

    fn long(&self) -> BigRational {
        match &self.0 {
            Held::Short(short) => BigRational::new_raw(short.numerator().into(), short.denominator().into()),
            Held::Long(long) => (**long).clone(),
        }
    }

    /// The number as a ratio of machine integers, if it is one.
    pub fn short(&self) -> Option<Rational> {
        if let Held::Short(short) = self.0 { Some(short) } else { None }
    }

    /// The result on short numbers if that is short, or else on long ones.
    fn apply(
        &self,
        other: &Number,
        short: fn(Rational, Rational) -> Option<Rational>,
        long: fn(BigRational, BigRational) -> BigRational,
    ) -> Number {
        let fitting = self.short().zip(other.short()).and_then(|(a, b)| short(a, b));
        fitting.map_or_else(|| Number::of(long(self.long(), other.long())), |short| Number(Held::Short(short)))
    }

    pub fn numer(&self) -> BigInt {
        self.short().map_or_else(|| self.long().numer().clone(), |short| short.numerator().into())
    }

    pub fn denom(&self) -> BigInt {
        self.short().map_or_else(|| self.long().denom().clone(), |short| short.denominator().into())
    }

    /// The reciprocal of a number other than 0.
    pub fn recip(&self) -> Number {
        Number::one() / self
    }

    pub fn abs(&self) -> Number {
        if self.is_negative() { -self } else { self.clone() }
    }

    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Held::Short(short) => short.is_negative(),
            Held::Long(long) => long.is_negative(),
        }
    }

    pub fn is_positive(&self) -> bool {
        !self.is_negative() && !self.is_zero()
    }

    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Held::Short(short) => short.denominator() == 1,
            Held::Long(long) => long.is_integer(),
        }
    }

    /// The largest integer that is not larger.
    pub fn floor(&self) -> Number {
        if self.is_integer() { self.clone() } else { Number::of(self.long().floor()) }
    }

    /// The smallest integer that is not smaller.
    pub fn ceil(&self) -> Number {
        if self.is_integer() { self.clone() } else { Number::of(self.long().ceil()) }
    }

    /// The integer, rounded towards zero.
    pub fn to_integer(&self) -> BigInt {
        self.numer() / self.denom()
    }

    pub fn to_f64(&self) -> f64 {
        self.long().to_f64().unwrap_or(f64::INFINITY)
    }
}

/// The operators, for owned and borrowed operands.
macro_rules! operators {
    ($($operator:ident $method:ident $short:expr;)*) => {$(
        impl $operator<&Number> for &Number {
            type Output = Number;
            fn $method(self, other: &Number) -> Number {
                self.apply(other, $short, $operator::$method)
            }
        }
        impl $operator<&Number> for Number {
            type Output = Number;
            fn $method(self, other: &Number) -> Number {
                $operator::$method(&self, other)
            }
        }
        impl $operator<Number> for Number {
            type Output = Number;
            fn $method(self, other: Number) -> Number {
                $operator::$method(&self, &other)
            }
        }
        impl $operator<Number> for &Number {
            type Output = Number;
            fn $method(self, other: Number) -> Number {
                $operator::$method(self, &other)
            }
        }
    )*};
}

operators! {
    Add add Rational::plus;
    Sub sub |a, b| a.plus(b.negative()?);
    Mul mul Rational::times;
    Div div |a, b| a.times(b.inverse()?);
}

impl Neg for &Number {
    type Output = Number;
    fn neg(self) -> Number {
        self * &whole(-1)
    }
}

impl Neg for Number {
    type Output = Number;
    fn neg(self) -> Number {
        -&self
    }
}

impl AddAssign<Number> for Number {
    fn add_assign(&mut self, other: Number) {
        *self = &*self + &other;
    }
}

impl Zero for Number {
    fn zero() -> Number {
        whole(0)
    }

    fn is_zero(&self) -> bool {
        self.short().is_some_and(Rational::is_zero)
    }
}

impl One for Number {
    fn one() -> Number {
        whole(1)
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        match (self.short(), other.short()) {
            (Some(a), Some(b)) => a.order(b),
            _ => self.long().cmp(&other.long()),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.long().fmt(f)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_numbers_are_one_field() {
        let edges = [0, 1, -1, 2, -3, 7, i64::MAX, i64::MIN, i64::MAX - 1, 1 << 40];
        let ratio = |n: i64, d: i64| BigRational::new(n.into(), d.into());
        let all: Vec<BigRational> = edges.iter().flat_map(|n| edges.iter().filter(|d| **d != 0).map(move |d| ratio(*n, *d))).collect();
        for a in &all {
            let short = Number::of(a.clone());
            assert_eq!((short.is_integer(), short.is_negative(), short.is_zero()), (a.is_integer(), a.is_negative(), a.is_zero()));
            assert_eq!((short.floor(), short.ceil(), &short.long()), (Number::of(a.floor()), Number::of(a.ceil()), a));
            for b in &all {
                let other = Number::of(b.clone());
                assert_eq!(&short + &other, Number::of(a + b));
                assert_eq!(&short - &other, Number::of(a - b));
                assert_eq!(&short * &other, Number::of(a * b));
                assert_eq!(short.cmp(&other), a.cmp(b));
                if !b.is_zero() {
                    assert_eq!(&short / &other, Number::of(a / b));
                }
            }
        }
    }
}
