//! Integers: arithmetic in the element types.
//!
//! Sums, differences and products are those of unbounded integers; [`Meaning::at`] brings every
//! element into its type. Everything else (quotients, powers, shifts, remainders) is computed from
//! operands already in their types, and is a function of them and of the types.

use num_bigint::BigInt;
use num_traits::{One, Zero};
use regraft_ir::{Class, DType, Op};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::value::{Factor, Function, Sum, Trouble, apply, fits, is_below, power, product, stored};

impl Meaning<'_> {
    /// The element of a result of the integer type `to`, from operands of the types `from`. It may
    /// leave the type.
    pub(super) fn whole_pointwise(&self, op: &Op, x: &[Sum], from: &[DType], to: DType) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        let max = |a: Sum, b: Sum| apply(Function::Max, vec![a, b], facts);
        let min = |a: &Sum, b: &Sum| Ok::<_, Trouble>(max(a.negated(), b.negated())?.negated());
        let bound = |value: f64| {
            let number = stored(value).filter(|number| number.is_integer());
            number.map(Sum::number).ok_or_else(|| Trouble(format!("the bound {value} of integers")))
        };
        let [a, b] = [x.first(), x.get(1)].map(|v| v.cloned().unwrap_or_default());
        Ok(match op {
            Op::Add(_) | Op::Sum(_) => x.iter().fold(Sum::default(), |sum, v| sum.add(v)),
            Op::Sub(_) => a.sub(&b),
            Op::Mul(_) => product(&a, &b, facts)?,
            Op::Neg(_) => a.negated(),
            Op::Identity(_) | Op::Dropout(_) => a,
            // A quotient by 1 never leaves its type.
            Op::Div(_) if b.known().is_some_and(|b| b.is_one()) => a,
            Op::Div(_) => match (a.as_poly(), b.as_poly()) {
                (Some(a), Some(b)) if facts.nonnegative(&a) && facts.at_least(&b, &Poly::number(1)) => {
                    Sum::whole(&facts.reduce(&a.floor(&b)))
                }
                _ => integer("quotient", x, to),
            },
            Op::Pow(_) => self.whole_power(&a, &b, x, from, to)?,
            Op::Max(_) => apply(Function::Max, x.to_vec(), facts)?,
            Op::Min(_) => apply(Function::Max, x.iter().map(Sum::negated).collect(), facts)?.negated(),
            Op::Abs(_) => max(a.clone(), a.negated())?,
            Op::Relu(_) => max(a, Sum::default())?,
            Op::Clip(op) => {
                let low = op.min.map_or_else(|| Ok(a.clone()), |low| max(a.clone(), bound(low.0)?))?;
                op.max.map_or_else(|| Ok(low.clone()), |high| min(&low, &bound(high.0)?))?
            }
            Op::Where(_) => {
                let otherwise = x.get(2).cloned().unwrap_or_default();
                product(&a, &b, facts)?.add(&product(&Sum::one().sub(&a), &otherwise, facts)?)
            }
            other => integer(&format!("{other:?} of {from:?}"), x, to),
        })
    }

    /// An integer power. The runtime multiplies out squares and cubes, and computes all other
    /// powers in doubles, which hold few of the large integers.
    fn whole_power(&self, base: &Sum, exponent: &Sum, x: &[Sum], from: &[DType], to: DType) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        let number = exponent.known().filter(|p| p.is_integer()).map(|p| p.to_integer());
        let is = |value: u32| number == Some(BigInt::from(value));
        if is(0) {
            return Ok(Sum::one());
        }
        if is(1) && is_below(base, &(BigInt::one() << 53), facts) {
            return Ok(base.clone());
        }
        // Where both ways stay within what doubles hold, both are right.
        let (square, cube) = (power(base, 2, facts)?, power(base, 3, facts)?);
        let held = |sum: &Sum| fits(sum, to, facts) && is_below(sum, &(BigInt::one() << 53), facts);
        match number {
            Some(_) if is(2) && held(&square) => Ok(square),
            Some(_) if is(3) && held(&cube) => Ok(cube),
            _ => Ok(integer(&format!("power of {from:?}"), x, to)),
        }
    }

    /// The mean of `count` integers of type `to` whose sum is `sum`, which may leave the type.
    pub(super) fn whole_mean(&self, sum: &Sum, count: &Poly, to: DType) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        let sum = apply(Function::Wrapped(to), vec![sum.clone()], facts)?;
        match count.known() {
            Some(1) => Ok(sum),
            _ => Ok(integer("mean", &[sum, Sum::whole(count)], to)),
        }
    }

    /// A number as another type: unchanged if that type holds it; a cast that may round is an
    /// uninterpreted function.
    pub(super) fn cast(&self, from: DType, to: DType, x: Sum) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        Ok(match (from.class(), to.class()) {
            _ if from == to || from.embeds(to) => x,
            // Wider integers are truncated, and negative ones wrap around: equal modulo the type's
            // power of two.
            (Class::Int, Class::Int) => x,
            (Class::Int | Class::Real, Class::Bool) => Sum::one().sub(&apply(Function::Zero, vec![x], facts)?),
            (Class::Int, Class::Real) if is_below(&x, &digits(to), facts) => x,
            (Class::Int, Class::Real) => nearest(to, x),
            (Class::Real, Class::Real) if is_below(&x, &digits(to), facts) => x,
            (Class::Real, Class::Real) => nearest(to, x),
            (Class::Real, Class::Int) if fits(&x, to, facts) => x,
            (Class::Real, Class::Int) => integer(&format!("truncated {from}"), &[x], to),
            _ => return Trouble::new(format!("a cast from {from} to {to}")),
        })
    }
}

/// The number of a float type that is nearest.
pub(super) fn nearest(to: DType, x: Sum) -> Sum {
    Sum::factor(Factor::Apply(Function::Named(format!("nearest {to}").into()), vec![x]))
}

/// A function of integers with values in an integer type.
pub(super) fn integer(name: &str, x: &[Sum], to: DType) -> Sum {
    Sum::factor(Factor::Apply(Function::Integer(name.into(), to), x.to_vec()))
}

/// A float type holds all integers up to this.
fn digits(dtype: DType) -> BigInt {
    let bits = match dtype {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => return BigInt::zero(),
    };
    BigInt::one() << bits
}
