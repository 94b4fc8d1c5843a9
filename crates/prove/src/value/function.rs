//! Functions of sums, simplified by what is known about them.

use num_traits::{One, Zero};
use regraft_ir::DType;

use crate::index::Facts;
use crate::value::algebra::{Trouble, common_factors, product};
use crate::value::domain::{fits, wrapped};
use crate::value::maxima::largest;
use crate::value::number::Number;
use crate::value::roots::{even_part, power_of, rational_power, root};
use crate::value::sign::{is_nonnegative, is_positive, is_positive_factor};
use crate::value::sum::{Factor, Function, Sum, Term};

/// A function of sums, simplified by what is known about it.
pub(crate) fn apply(function: Function, mut arguments: Vec<Sum>, facts: &Facts) -> Result<Sum, Trouble> {
    match (&function, arguments.as_slice()) {
        (Function::Max, _) => return largest(arguments, facts),
        (Function::Wrapped(dtype), [x]) => return wrapped(x, *dtype, facts),
        (Function::Exp, [x]) if x.is_zero() => return Ok(Sum::one()),
        (Function::Exp, [x]) => {
            // exp(k log(y) + r) = y^k exp(r)
            let log = x.terms().iter().find_map(|(term, c)| match term.factors.as_slice() {
                [(Factor::Apply(Function::Named(name), y), 1)]
                    if name.as_ref() == "log" && term.binders.is_empty() && term.conds.is_empty() =>
                {
                    Some((term.clone(), c.clone(), y[0].clone()))
                }
                _ => None,
            });
            if let Some((term, k, y)) = log {
                let rest = apply(Function::Exp, vec![x.sub(&Sum::new([(term, k.clone())]))], facts)?;
                return product(&rational_power(&y, &k, facts)?, &rest, facts);
            }
        }
        (Function::Named(name), [x]) if name.as_ref() == "log" => {
            if x.known().is_some_and(|v| v.is_one()) {
                return Ok(Sum::default());
            }
            // log(y^-p s) = log(s) - p log(y)
            if let [(term, _)] = x.terms()
                && term.binders.is_empty()
                && let Some((factor, p)) = term.factors.iter().find(|(f, p)| *p < 0 && is_positive_factor(f, facts))
            {
                let inverse = Sum::new([(Term { factors: vec![(factor.clone(), -p)], ..Term::default() }, Number::one())]);
                let rest = apply(function.clone(), vec![product(x, &inverse, facts)?], facts)?;
                let inside = if let Factor::Of(inside) = factor { inside.clone() } else { Sum::factor(factor.clone()) };
                return Ok(rest.add(&apply(function.clone(), vec![inside], facts)?.scale(&crate::value::whole(i64::from(*p)))));
            }
            // log(exp(a) s) = a + log(s)
            let common = common_factors(x);
            if let Some((factor, p)) = common.iter().find(|(f, _)| matches!(f, Factor::Apply(Function::Exp, _)))
                && let Factor::Apply(_, exponent) = factor
            {
                let inverse = Sum::new([(Term { factors: vec![(factor.clone(), -p)], ..Term::default() }, Number::one())]);
                let rest = apply(function.clone(), vec![product(x, &inverse, facts)?], facts)?;
                return Ok(exponent[0].scale(&crate::value::whole(i64::from(*p))).add(&rest));
            }
            // log(s + exp(-a) t) = log(exp(a) s + t) - a
            if let Some(exponent) = falling_exponent(x) {
                let rising = apply(Function::Exp, vec![exponent.negated()], facts)?;
                let rest = apply(function.clone(), vec![product(x, &rising, facts)?], facts)?;
                return Ok(exponent.add(&rest));
            }
        }
        (Function::Sqrt, [x]) => {
            if let Some(root) = x.known().as_ref().and_then(root) {
                return Ok(Sum::number(root));
            }
            if let Some((base, exponent)) = power_of(x) {
                return rational_power(&base, &(exponent / crate::value::whole(2)), facts);
            }
            if let Some(outside) = even_part(x, facts)? {
                return Ok(outside);
            }
            // sqrt(y sqrt(y)) = y^(3/4)
            for (factor, p) in common_factors(x) {
                if let Factor::Apply(Function::Sqrt, y) = &factor
                    && p == 1
                    && product(&y[0], &Sum::factor(factor.clone()), facts)? == *x
                {
                    return rational_power(&y[0], &Number::new(3.into(), 4.into()), facts);
                }
            }
            // The square part of the first coefficient.
            if let Some(root) = x.terms().first().map(|(_, c)| c.abs()).filter(|c| !c.is_one()).as_ref().and_then(root) {
                let inside = x.scale(&(&root * &root).recip());
                return Ok(Sum::factor(Factor::Apply(function, vec![inside])).scale(&root));
            }
        }
        (Function::Positive | Function::Zero, [x]) => {
            if let Some(number) = x.known() {
                let holds = if function == Function::Positive { number.is_positive() } else { number.is_zero() };
                return Ok(if holds { Sum::one() } else { Sum::default() });
            }
            if fits(x, DType::Bool, facts) {
                return Ok(if function == Function::Positive { x.clone() } else { Sum::one().sub(x) });
            }
            if let Some(indicator) = whole_indicator(&function, x, facts) {
                return Ok(indicator);
            }
            let (above, below) = (is_positive(x, facts), is_positive(&x.negated(), facts));
            let not_above = below || is_nonnegative(&x.negated(), facts);
            match function {
                Function::Positive if above => return Ok(Sum::one()),
                Function::Positive if not_above => return Ok(Sum::default()),
                Function::Zero if above || below => return Ok(Sum::default()),
                _ => {}
            }
            let first = x.terms().first().map_or_else(Number::one, |(_, c)| c.clone());
            let by = if function == Function::Positive { first.abs() } else { first };
            arguments = vec![x.scale(&by.recip())];
        }
        _ => {}
    }
    Ok(Sum::factor(Factor::Apply(function, arguments)))
}

/// The exponent of the only exponential in a sum of two terms, if it begins with a negative
/// coefficient.
fn falling_exponent(sum: &Sum) -> Option<Sum> {
    let [a, b] = sum.terms() else { return None };
    let exponents = |(term, _): &(Term, Number)| {
        let exponentials = term.factors.iter().filter_map(|(factor, power)| match factor {
            Factor::Apply(Function::Exp, exponent) => Some((exponent[0].clone(), *power)),
            _ => None,
        });
        exponentials.collect::<Vec<_>>()
    };
    let (alone, exponent) = match (exponents(a).as_slice(), exponents(b).as_slice()) {
        ([(exponent, 1)], []) => (a, exponent.clone()),
        ([], [(exponent, 1)]) => (b, exponent.clone()),
        _ => return None,
    };
    let falls = exponent.terms().first().is_some_and(|(_, coefficient)| coefficient.is_negative());
    (falls && alone.0.binders.is_empty()).then_some(exponent)
}

/// Where an integer is positive, or is 0, as conditions of an index expression.
fn whole_indicator(function: &Function, x: &Sum, facts: &Facts) -> Option<Sum> {
    let in_wholes = (0..x.terms().len()).fold(x.clone(), |x, at| x.scale(&Number::from_integer(x.terms()[at].1.denom().clone())));
    let number = in_wholes.as_poly().filter(|number| facts.is_whole(number))?;
    Some(match function {
        Function::Positive => Sum::one().only_where(&number.plus(-1)),
        _ => Sum::one().only_where(&number).only_where(&number.scale(-1)),
    })
}
