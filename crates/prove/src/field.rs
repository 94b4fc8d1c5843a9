//! The prime field of 2^61 - 1 elements, with uninterpreted functions and an arbitrary order.
//!
//! Sums and products are exact, so two sides that agree on random elements are equal as
//! polynomials, but for a chance of degree / 2^61 (Schwartz and Zippel). A function that is not a
//! polynomial is a keyed hash: equal arguments give equal results, and nothing else is known about
//! it except its values at 0 and 1 where they are integers. The order is a keyed hash too. It is
//! total, so a maximum is associative, commutative and idempotent, but it is not compatible with
//! sums and products.

use std::cell::Cell;
use std::cmp::Ordering;

use regraft_ir::scalar::{Function, Scalar, Unsupported};
use regraft_ir::{EvalContext, EvalError, Op, Value, scramble};

use crate::ratio::simplest;

/// The number of elements: a Mersenne prime.
pub const PRIME: u64 = (1 << 61) - 1;

thread_local! {
    static KEY: Cell<u64> = const { Cell::new(0) };
}

/// An element of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field(u64);

impl Field {
    /// The element a number stands for, modulo the prime.
    pub fn new(value: u64) -> Field {
        Field(value % PRIME)
    }

    /// The result of `work` under the functions and the order chosen by `key`, in this thread.
    pub fn with_key<T>(key: u64, work: impl FnOnce() -> T) -> T {
        let before = KEY.replace(key);
        let result = work();
        KEY.set(before);
        result
    }

    /// The element for a ratio; `None` where the denominator is a multiple of the prime.
    pub fn ratio(numerator: i64, denominator: u64) -> Option<Field> {
        let magnitude = Field::new(numerator.unsigned_abs());
        let signed = if numerator < 0 { magnitude.neg() } else { magnitude };
        Some(signed.mul(&Field::new(denominator).inverse()?))
    }

    fn inverse(self) -> Option<Field> {
        (self.0 != 0).then(|| self.to_power(PRIME - 2))
    }

    fn to_power(self, mut exponent: u64) -> Field {
        let (mut base, mut result) = (self, Field(1));
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.mul(&base);
            }
            base = base.mul(&base);
            exponent >>= 1;
        }
        result
    }

    /// An element that depends only on the key, the words and this element.
    fn hashed(self, first: u64, second: u64) -> Field {
        let mixed =
            scramble(scramble(scramble(KEY.get() ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(first)).wrapping_add(second)).wrapping_add(self.0);
        Field::new(scramble(mixed))
    }
}

/// The simplest ratio that rounds to this double, if it has a small denominator.
fn simple_ratio(value: f64) -> Option<(i64, u64)> {
    let (numerator, denominator) = simplest(value.abs(), |ratio| ratio == value.abs())?;
    Some((if value < 0.0 { -numerator } else { numerator }, denominator.unsigned_abs()))
}

impl Scalar for Field {
    #[inline(never)]
    fn eval(op: &Op, inputs: &[Value<Field>], context: &EvalContext<'_>) -> Result<Vec<Value<Field>>, EvalError> {
        op.meaning(inputs, context)
    }

    fn from_f64(value: f64) -> Field {
        if !value.is_finite() {
            return Field(0).hashed(u64::MAX, value.to_bits());
        }
        if let Some(element) = simple_ratio(value).and_then(|(n, d)| Field::ratio(n, d)) {
            return element;
        }
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        // 2 to the 61 is 1.
        let power = Field(2).to_power(exponent.rem_euclid(61) as u64);
        let magnitude = Field::new(mantissa).mul(&power);
        if value < 0.0 { magnitude.neg() } else { magnitude }
    }

    fn zero() -> Field {
        Field(0)
    }

    fn one() -> Field {
        Field(1)
    }

    fn to_f64(&self) -> Result<f64, Unsupported> {
        Err(Unsupported("double for an element of a field"))
    }

    fn add(&self, other: &Field) -> Field {
        let sum = self.0 + other.0;
        Field(if sum >= PRIME { sum - PRIME } else { sum })
    }

    fn sub(&self, other: &Field) -> Field {
        Field(if self.0 >= other.0 { self.0 - other.0 } else { self.0 + PRIME - other.0 })
    }

    fn mul(&self, other: &Field) -> Field {
        let product = u128::from(self.0) * u128::from(other.0);
        // 2^61 is 1, so the high part is added to the low part.
        Field((product as u64) & PRIME).add(&Field((product >> 61) as u64))
    }

    fn div(&self, other: &Field) -> Result<Field, Unsupported> {
        other.inverse().map(|inverse| self.mul(&inverse)).ok_or(Unsupported("inverse of zero"))
    }

    /// Small integer exponents are products; other powers are an uninterpreted function of two
    /// arguments, except that the exponent one half is the root.
    fn pow(&self, other: &Field) -> Result<Field, Unsupported> {
        const WHOLE: u64 = 64;
        if other.0 <= WHOLE {
            return Ok(self.to_power(other.0));
        }
        if PRIME - other.0 <= WHOLE {
            return Field(1).div(&self.to_power(PRIME - other.0));
        }
        if other.add(other) == Field(1) {
            return self.apply(Function::Sqrt);
        }
        if other.add(other) == Field(1).neg() {
            return Field(1).div(&self.apply(Function::Sqrt)?);
        }
        Ok(self.hashed(u64::MAX - 1, other.0))
    }

    fn apply(&self, f: Function) -> Result<Field, Unsupported> {
        Ok(match (self.0, f) {
            (0, Function::Exp | Function::Cos | Function::Cosh) | (1, Function::Sqrt) => Field(1),
            (0, Function::Log | Function::Acos | Function::Acosh) => self.hashed(1, f as u64),
            (0, _) | (1, Function::Log | Function::Acosh) => Field(0),
            _ => self.hashed(1, f as u64),
        })
    }

    fn compare(&self, other: &Field) -> Result<Option<Ordering>, Unsupported> {
        if self == other {
            return Ok(Some(Ordering::Equal));
        }
        let rank = |x: &Field| (x.hashed(2, 0).0, x.0);
        Ok(Some(rank(self).cmp(&rank(other))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(seed: u64) -> Field {
        Field::new(scramble(seed))
    }

    #[test]
    fn the_laws_of_a_field_hold() {
        for seed in 0..500 {
            let [a, b, c] = [element(3 * seed), element(3 * seed + 1), element(3 * seed + 2)];
            assert_eq!(a.add(&b), b.add(&a));
            assert_eq!(a.mul(&b.add(&c)), a.mul(&b).add(&a.mul(&c)));
            assert_eq!(a.mul(&b).mul(&c), a.mul(&b.mul(&c)));
            assert_eq!(a.sub(&b).add(&b), a);
            assert_eq!(a.add(&a.neg()), Field(0));
            assert_eq!(a.div(&b).unwrap().mul(&b), a);
        }
        assert!(Field(1).div(&Field(0)).is_err());
        let largest = Field(PRIME - 1);
        assert_eq!(largest.mul(&largest), Field(1));
    }

    #[test]
    fn doubles_are_the_numbers_they_were_written_as() {
        for (value, numerator, denominator) in [
            (0.0, 0, 1),
            (1.0, 1, 1),
            (-2.5, -5, 2),
            (0.1, 1, 10),
            (1.0 / 3.0, 1, 3),
            (-1.0 / 6.0, -1, 6),
            (0.2, 1, 5),
            (1e6, 1_000_000, 1),
            (1.0 / 1024.0, 1, 1024),
        ] {
            assert_eq!(Field::from_f64(value), Field::ratio(numerator, denominator).unwrap(), "{value}");
        }
        // Other values are taken bit by bit.
        let odd = 1.0 + f64::EPSILON;
        assert_eq!(Field::from_f64(odd).sub(&Field(1)), Field::from_f64(f64::EPSILON));
        assert_eq!(Field::from_f64(f64::EPSILON).mul(&Field::new(1 << 52)), Field(1));
        let (a, b) = (0.717_345_234_1, 3.234_623_462_346);
        assert_ne!(Field::from_f64(a).mul(&Field::from_f64(b)), Field::from_f64(a * b));
    }

    #[test]
    fn powers_are_products_or_roots() {
        let x = element(9);
        assert_eq!(x.pow(&Field(3)).unwrap(), x.mul(&x).mul(&x));
        assert_eq!(x.pow(&Field::from_f64(-2.0)).unwrap().mul(&x).mul(&x), Field(1));
        assert_eq!(x.pow(&Field::from_f64(0.5)).unwrap(), x.apply(Function::Sqrt).unwrap());
        assert_ne!(x.pow(&Field::from_f64(0.3)).unwrap(), x.pow(&Field::from_f64(0.4)).unwrap());
    }

    #[test]
    fn functions_and_the_order_depend_on_the_key_alone() {
        let (x, y) = (element(4), element(5));
        let under = |key: u64| Field::with_key(key, || (x.apply(Function::Exp).unwrap(), x.compare(&y).unwrap()));
        assert_eq!(under(1), under(1));
        assert_ne!(under(1).0, under(2).0);
        assert!((0..64).any(|key| under(key).1 != under(64).1));
        assert_ne!(x.apply(Function::Exp), x.apply(Function::Log));
        assert_eq!(Field(0).apply(Function::Exp), Ok(Field(1)));
        assert_eq!(Field(1).apply(Function::Sqrt), Ok(Field(1)));
        let max = |a: Field, b: Field| if a.compare(&b).unwrap() == Some(Ordering::Less) { b } else { a };
        let z = element(6);
        assert_eq!(max(max(x, y), z), max(x, max(z, y)));
    }
}
