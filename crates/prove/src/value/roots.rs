//! Roots and other fractional powers, of which a product has at most one of each kind per base.

use num_traits::{One, ToPrimitive, Zero};

use crate::index::Facts;
use crate::value::algebra::{Trouble, power, product};
use crate::value::function::apply;
use crate::value::maxima::largest;
use crate::value::number::Number;
use crate::value::sign::is_nonnegative;
use crate::value::sum::{Factor, Function, Sum, Term};

/// The name of the function of a base and an exponent.
const POWER: &str = "power";

/// The nonnegative base of a factor that is a power with a known exponent between 0 and 1, and the
/// exponent.
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

/// The base and exponent of a sum that is a single power of one root or one fractional power.
pub(crate) fn power_of(sum: &Sum) -> Option<(Sum, Number)> {
    let [(term, c)] = sum.terms() else { return None };
    let [(factor, power)] = term.factors.as_slice() else { return None };
    if !c.is_one() || !term.binders.is_empty() || !term.conds.is_empty() {
        return None;
    }
    let (base, exponent) = fraction(factor)?;
    Some((base.clone(), exponent * crate::value::whole(i64::from(*power))))
}

/// Writes `y ^ exponent`, for an exponent between 0 and 1, as a root and a remaining power.
pub(crate) fn fractions(y: &Sum, exponent: &Number) -> Vec<Factor> {
    let mut factors = Vec::new();
    let mut rest = exponent.clone();
    if rest >= half() {
        factors.push(Factor::Apply(Function::Sqrt, vec![y.clone()]));
        rest = rest - half();
    }
    if !rest.is_zero() {
        factors.push(Factor::Apply(Function::Named(POWER.into()), vec![y.clone(), Sum::number(rest)]));
    }
    factors
}

/// Adds up the exponents of roots and powers of the same base: `y^(a/b) y^(c/d)` is an integer
/// power of `y`, which is returned, times at most one root and one power below a half, which stay
/// among the factors. Bases are not negative where a root of them is taken.
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

/// The root of a product with even powers, or nonnegative factors.
pub(crate) fn even_part(x: &Sum, facts: &Facts) -> Result<Option<Sum>, Trouble> {
    let [(term, c)] = x.terms() else { return Ok(None) };
    if !term.binders.is_empty() || !term.conds.is_empty() || !c.is_positive() {
        return Ok(None);
    }
    let single = |f: &Factor| Sum::factor(f.clone());
    let takes = |(f, p): &(Factor, i32)| {
        p % 2 == 0
            || matches!(f, Factor::Apply(Function::Sqrt, _))
            || (is_nonnegative(&single(f), facts) && (term.factors.len() > 1 || *p != 1))
    };
    let (out, inside): (Vec<_>, Vec<_>) = term.factors.iter().cloned().partition(takes);
    if out.is_empty() {
        return Ok(None);
    }
    // A root inside implies that its radicand is not negative.
    let under_root = |f: &Factor| term.factors.iter().any(|(r, _)| matches!(r, Factor::Apply(Function::Sqrt, y) if y[0] == single(f)));
    let (more, inside): (Vec<_>, Vec<_>) = inside.into_iter().partition(|(f, _)| under_root(f));
    let mut result = apply_root(&Sum::new([(Term { factors: inside, ..Term::default() }, c.clone())]), facts)?;
    for (factor, p) in out.iter().chain(&more) {
        let value = single(factor);
        let root = if p % 2 == 0 {
            let magnitude = largest(vec![value.clone(), value.negated()], facts)?;
            power(&magnitude, p / 2, facts)?
        } else if let Factor::Apply(Function::Sqrt, y) = factor {
            rational_power(&y[0], &Number::new((*p).into(), 4.into()), facts)?
        } else {
            rational_power(&value, &Number::new((*p).into(), 2.into()), facts)?
        };
        result = product(&result, &root, facts)?;
    }
    Ok(Some(result))
}

fn apply_root(x: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    match x.known().as_ref().and_then(root) {
        Some(root) => Ok(Sum::number(root)),
        None => apply(Function::Sqrt, vec![x.clone()], facts),
    }
}

/// A power of a nonnegative base, split into the exponent's integer part, its half, and the rest.
pub(crate) fn rational_power(x: &Sum, exponent: &Number, facts: &Facts) -> Result<Sum, Trouble> {
    if let Some((base, inner)) = power_of(x) {
        return rational_power(&base, &(inner * exponent), facts);
    }
    let whole = exponent.floor();
    let Some(count) = whole.to_integer().to_i32() else { return Trouble::new(format!("a power of {exponent}")) };
    let mut result = power(x, count, facts)?;
    for factor in fractions(x, &(exponent - &whole)) {
        let value = match factor {
            Factor::Apply(Function::Sqrt, y) => apply(Function::Sqrt, y, facts)?,
            other => Sum::factor(other),
        };
        result = product(&result, &value, facts)?;
    }
    Ok(result)
}

/// The root of a ratio, if it is rational.
pub(crate) fn root(number: &Number) -> Option<Number> {
    if number.is_negative() {
        return None;
    }
    let (top, bottom) = (number.numer().sqrt(), number.denom().sqrt());
    let root = Number::new(top, bottom);
    (&(&root * &root) == number).then_some(root)
}
