//! Roots and other powers that are no whole numbers, of which a product has at most one of each kind for each base.

use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::value::algebra::Trouble;
use crate::value::number::Number;
use crate::value::sum::{Factor, Function, Sum};

/// The name of the function of a base and an exponent.
const POWER: &str = "power";

/// What a factor is a power of, with a known exponent between 0 and 1: something that is not negative.
fn fraction(factor: &Factor) -> Option<(&Sum, Number)> {
    let (base, exponent) = match factor {
        Factor::Apply(Function::Sqrt, y) => (y.first()?, half()),
        Factor::Apply(Function::Named(name), y) if name.as_ref() == POWER => (y.first()?, y.get(1)?.known()?),
        _ => return None,
    };
    (exponent.is_positive() && exponent < Number::one()).then_some((base, exponent))
}

fn half() -> Number {
    Number::new(1.into(), 2.into())
}

/// What a sum is the power of, if it is one power of one root or one fractional power.
pub(crate) fn power_of(sum: &Sum) -> Option<(Sum, Number)> {
    let [(term, c)] = sum.terms() else { return None };
    let [(factor, power)] = term.factors.as_slice() else { return None };
    if !c.is_one() || !term.binders.is_empty() || !term.conds.is_empty() {
        return None;
    }
    let (base, exponent) = fraction(factor)?;
    Some((base.clone(), exponent * crate::value::whole(i64::from(*power))))
}

/// Puts `y ^ exponent`, for an exponent between 0 and 1, as a root and what is left.
pub(crate) fn fractions(y: &Sum, exponent: &Number) -> Vec<Factor> {
    let mut factors = Vec::new();
    let mut rest = exponent.clone();
    if rest >= half() {
        factors.push(Factor::Apply(Function::Sqrt, vec![y.clone()]));
        rest -= half();
    }
    if !rest.is_zero() {
        factors.push(Factor::Apply(Function::Named(POWER.into()), vec![y.clone(), Sum::number(rest)]));
    }
    factors
}

/// Adds up the exponents of roots and powers of the same base: `y^(a/b) y^(c/d)` is a whole power of `y`, which is given back, times at most one
/// root and one power below a half, which stay among the factors. Bases are not negative where a root of them is taken.
pub(crate) fn gathered(factors: &mut Vec<(Factor, i32)>) -> Result<Vec<(Sum, i32)>, Trouble> {
    let mut bases: Vec<(Sum, Number)> = Vec::new();
    for (factor, power) in factors.iter() {
        let Some((base, exponent)) = fraction(factor) else { continue };
        let total = exponent * crate::value::whole(i64::from(*power));
        match bases.iter_mut().find(|(known, _)| known == base) {
            Some((_, sum)) => *sum = &*sum + total,
            None => bases.push((base.clone(), total)),
        }
    }
    if bases.is_empty() {
        return Ok(Vec::new());
    }
    factors.retain(|(factor, _)| fraction(factor).is_none());
    let mut powers = Vec::new();
    for (base, total) in bases {
        let whole = total.floor();
        let Some(count) = whole.to_integer().to_i32() else { return Trouble::new(format!("a power of {total}")) };
        factors.extend(fractions(&base, &(total - &whole)).into_iter().map(|factor| (factor, 1)));
        if count != 0 {
            powers.push((base, count));
        }
    }
    crate::value::scope::merge_powers(factors);
    Ok(powers)
}
