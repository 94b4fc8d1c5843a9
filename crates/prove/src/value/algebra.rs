//! Products, powers and functions of sums, each in a normal form.

use std::cell::Cell;
use std::fmt;

use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::index::{Facts, Fuel, Poly, Var};
use crate::value::number::Number;
use crate::value::roots::{fractions, gathered, power_of};
use crate::value::scope::merge_powers;
use crate::value::sign::{Trend, is_nonnegative, is_positive, is_positive_factor, trend};
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// Most terms of a sum.
const MOST_TERMS: usize = 60_000;
/// Most factors of a product of sums, those inside of functions included.
const HEAVIEST: usize = 400_000;
/// Most arguments of a maximum.
const MOST_ARGUMENTS: usize = 16;
/// Most powers inside of powers.
const DEEPEST: u32 = 48;
/// Largest power that is multiplied out.
const LARGEST_POWER: i32 = 6;

/// Why an element could not be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Trouble {
    pub fn new<T>(why: impl Into<String>) -> Result<T, Trouble> {
        Err(Trouble(why.into()))
    }
}

/// The product of two sums, multiplied out.
pub(crate) fn product(a: &Sum, b: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    if let Some(number) = a.known() {
        return Ok(b.scale(&number));
    }
    if let Some(number) = b.known() {
        return Ok(a.scale(&number));
    }
    if a.terms().len().saturating_mul(b.terms().len()) > MOST_TERMS {
        return Trouble::new("an element is a sum of too many products");
    }
    // Every term of one meets every term of the other.
    let weight = a.weight() * b.terms().len() + b.weight() * a.terms().len();
    if weight > HEAVIEST || !Fuel::spend(4 * weight as u64) {
        return Trouble::new("the question takes too long");
    }
    let mut terms = Vec::with_capacity(a.terms().len() * b.terms().len());
    for (left, cl) in a.terms() {
        for (right, cr) in b.terms() {
            let refreshed;
            let right = if left.binders.is_empty() || right.binders.is_empty() {
                right
            } else {
                refreshed = right.refreshed();
                &refreshed
            };
            let mut conds: Vec<Poly> = left.conds.iter().chain(&right.conds).cloned().collect();
            conds.sort();
            conds.dedup();
            let mut factors: Vec<(Factor, i32)> = left.factors.iter().chain(&right.factors).cloned().collect();
            merge_powers(&mut factors);
            let binders = left.binders.iter().chain(&right.binders).cloned().collect();
            let coefficient = cl * cr;
            terms.extend(reduced(Term { binders, conds, factors }, facts)?.into_terms().into_iter().map(|(t, c)| (t, c * &coefficient)));
        }
    }
    Ok(Sum::new(terms))
}

/// A product whose factors have met: exponentials merged, roots and indicators without higher powers, inverses of products taken apart.
pub(crate) fn reduced(mut term: Term, facts: &Facts) -> Result<Sum, Trouble> {
    let mut more: Vec<Sum> = Vec::new();
    let mut exponent = Sum::default();
    let exponentials = term.factors.iter().filter(|(f, p)| matches!(f, Factor::Apply(Function::Exp, _)) && *p != 0).count();
    let mut kept = Vec::with_capacity(term.factors.len());
    for (factor, power) in std::mem::take(&mut term.factors) {
        match (&factor, power) {
            (Factor::Apply(Function::Exp, e), _) if exponentials > 1 || power != 1 => {
                exponent = exponent.add(&e[0].scale(&crate::value::whole(i64::from(power))));
            }
            (Factor::Apply(Function::Positive | Function::Zero, _), 2..) => kept.push((factor, 1)),
            (Factor::Of(sum), 1..) => more.push(self::power(sum, power, facts)?),
            (Factor::Of(sum), _) if !is_normal_divisor(sum) => more.push(self::power(sum, power, facts)?),
            _ => kept.push((factor, power)),
        }
    }
    for (base, count) in gathered(&mut kept)? {
        more.push(self::power(&base, count, facts)?);
    }
    term.factors = kept;
    let mut result = Sum::new([(term, Number::one())]);
    if exponentials > 1 || !exponent.is_zero() {
        more.push(apply(Function::Exp, vec![exponent], facts)?);
    }
    for factor in more {
        result = product(&result, &factor, facts)?;
    }
    Ok(result)
}

/// Whether a divisor is no product, has 1 as its first coefficient and no factor in common.
fn is_normal_divisor(sum: &Sum) -> bool {
    let product = matches!(sum.terms(), [] | [_]) && sum.terms().iter().all(|(term, _)| term.binders.is_empty() && term.conds.is_empty());
    !product && sum.terms().first().is_some_and(|(_, c)| c.is_one()) && common_factors(sum).is_empty()
}

thread_local! {
    /// Powers inside of powers that are being taken.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A whole power. A divisor is taken to be other than 0.
pub(crate) fn power(sum: &Sum, exponent: i32, facts: &Facts) -> Result<Sum, Trouble> {
    let depth = DEPTH.get();
    if depth > DEEPEST {
        return Trouble::new("divisors inside of divisors");
    }
    DEPTH.set(depth + 1);
    let result = taken_to(sum, exponent, facts);
    DEPTH.set(depth);
    result
}

fn taken_to(sum: &Sum, exponent: i32, facts: &Facts) -> Result<Sum, Trouble> {
    if exponent == 0 {
        return Ok(Sum::one());
    }
    if exponent > 0 {
        if exponent > LARGEST_POWER && sum.terms().len() > 1 {
            return Trouble::new(format!("power {exponent} of a sum"));
        }
        let mut result = sum.clone();
        for _ in 1..exponent {
            result = product(&result, sum, facts)?;
        }
        return Ok(result);
    }
    match sum.terms() {
        [] => Trouble::new("a division by zero"),
        [(term, c)] if term.binders.is_empty() && term.conds.is_empty() => {
            let factors = term.factors.iter().map(|(f, p)| (f.clone(), p * exponent)).collect();
            let number = num_traits::pow(c.recip(), exponent.unsigned_abs() as usize);
            Ok(reduced(Term { factors, ..Term::default() }, facts)?.scale(&number))
        }
        [(_, first), ..] => {
            let common = common_factors(sum);
            let first = first.clone();
            let rest = if common.is_empty() {
                sum.scale(&first.recip())
            } else {
                let inverse = Term { factors: common.iter().map(|(f, p)| (f.clone(), -p)).collect(), ..Term::default() };
                product(&sum.scale(&first.recip()), &Sum::new([(inverse, Number::one())]), facts)?
            };
            let number = num_traits::pow(first.recip(), exponent.unsigned_abs() as usize);
            let mut factors: Vec<(Factor, i32)> = common.into_iter().map(|(f, p)| (f, p * exponent)).collect();
            // Taking out what is common may leave one product.
            if rest.terms().len() == 1 && rest.terms()[0].0.binders.is_empty() && rest.terms()[0].0.conds.is_empty() {
                let outside = Sum::new([(Term { factors, ..Term::default() }, number)]);
                return product(&outside, &power(&rest, exponent, facts)?, facts);
            }
            let (rest, number) = match rest.terms().first() {
                Some((_, c)) if !c.is_one() => {
                    (rest.scale(&c.recip()), number * num_traits::pow(c.recip(), exponent.unsigned_abs() as usize))
                }
                _ => (rest.clone(), number),
            };
            factors.push((Factor::Of(rest), exponent));
            merge_powers(&mut factors);
            Ok(Sum::new([(Term { factors, ..Term::default() }, number)]))
        }
    }
}

/// Factors that all terms have and that do not depend on summed variables, with the smallest powers.
fn common_factors(sum: &Sum) -> Vec<(Factor, i32)> {
    let Some(((first, _), others)) = sum.terms().split_first() else { return Vec::new() };
    let bound = |term: &Term, factor: &Factor| term.binders.iter().any(|(var, _)| factor.has(*var));
    let candidates = first.factors.iter().filter(|(f, p)| *p > 0 && !bound(first, f));
    let shared = candidates.filter_map(|(factor, p)| {
        others
            .iter()
            .try_fold(*p, |least, (term, _)| {
                let (_, other) = term.factors.iter().find(|(f, p)| f == factor && *p > 0)?;
                (!bound(term, factor)).then_some(least.min(*other))
            })
            .map(|least| (factor.clone(), least))
    });
    shared.collect()
}

/// A function of sums, by what is known of it.
pub(crate) fn apply(function: Function, mut arguments: Vec<Sum>, facts: &Facts) -> Result<Sum, Trouble> {
    match (&function, arguments.as_slice()) {
        (Function::Max, _) => return largest(arguments, facts),
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
            // The part of the first coefficient that is a square.
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

/// Where a whole number is above 0, or is 0, as conditions of an index expression.
fn whole_indicator(function: &Function, x: &Sum, facts: &Facts) -> Option<Sum> {
    let in_wholes = (0..x.terms().len()).fold(x.clone(), |x, at| x.scale(&Number::from_integer(x.terms()[at].1.denom().clone())));
    let number = in_wholes.as_poly().filter(|number| facts.is_whole(number))?;
    Some(match function {
        Function::Positive => Sum::one().only_where(&number.plus(-1)),
        _ => Sum::one().only_where(&number).only_where(&number.scale(-1)),
    })
}

/// The root of a product that has even powers, or factors that are not negative.
fn even_part(x: &Sum, facts: &Facts) -> Result<Option<Sum>, Trouble> {
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
    // A root inside says that what it is the root of is not negative.
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

/// A power of what is not negative, by the exponent's whole part, its half, and what is left.
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

/// The root of a ratio, if it is one of whole numbers.
fn root(number: &Number) -> Option<Number> {
    if number.is_negative() {
        return None;
    }
    let (top, bottom) = (number.numer().sqrt(), number.denom().sqrt());
    let root = Number::new(top, bottom);
    (&(&root * &root) == number).then_some(root)
}

/// The largest of sums: maxima of maxima flattened, what all have in common taken out.
pub(crate) fn largest(arguments: Vec<Sum>, facts: &Facts) -> Result<Sum, Trouble> {
    let mut flat: Vec<Sum> = Vec::new();
    let mut open = arguments;
    while let Some(sum) = open.pop() {
        let inner = sum.terms().iter().position(|(term, c)| {
            c.is_positive()
                && term.binders.is_empty()
                && term.conds.is_empty()
                && matches!(term.factors.as_slice(), [(Factor::Apply(Function::Max, _), 1)])
        });
        let Some(at) = inner else {
            flat.push(sum);
            continue;
        };
        let (term, c) = &sum.terms()[at];
        let Some((Factor::Apply(_, inside), _)) = term.factors.first() else { continue };
        if flat.len() + open.len() + inside.len() > MOST_ARGUMENTS {
            return Trouble::new("a maximum of too many");
        }
        let rest = sum.sub(&Sum::new([(term.clone(), c.clone())]));
        open.extend(inside.iter().map(|a| a.scale(c).add(&rest)));
    }
    flat.sort();
    flat.dedup();
    // An argument that is never above another one is not needed.
    let mut kept: Vec<Sum> = Vec::new();
    for (at, sum) in flat.iter().enumerate() {
        // Of two that are equal where a case says so, the later one goes.
        let below = flat.iter().enumerate().any(|(other, o)| {
            let more = o.sub(sum);
            other != at && is_nonnegative(&more, facts) && (other < at || !is_nonnegative(&more.negated(), facts))
        });
        if !below {
            kept.push(sum.clone());
        }
    }
    if kept.len() == 1 {
        return Ok(kept.remove(0));
    }
    let common: Vec<(Term, Number)> = kept[0].terms().iter().filter(|t| kept.iter().all(|sum| sum.terms().contains(t))).cloned().collect();
    let common = Sum::new(common);
    let mut rest: Vec<Sum> = kept.iter().map(|sum| sum.sub(&common)).collect();
    let (scale, factors) = positive_content(&rest, facts);
    let outside = Sum::new([(Term { factors: factors.clone(), ..Term::default() }, scale.clone())]);
    let inverse = Sum::new([(Term { factors: factors.iter().map(|(f, p)| (f.clone(), -p)).collect(), ..Term::default() }, scale.recip())]);
    for sum in &mut rest {
        *sum = product(sum, &inverse, facts)?;
    }
    rest.sort();
    let inside = match rest.as_slice() {
        // max(a, b) = b + max(a - b, 0) = b + (a - b) + max(b - a, 0): the difference whose first coefficient is positive.
        [a, b] => {
            let (low, difference) =
                if a.sub(b).terms().first().is_some_and(|(_, c)| c.is_positive()) { (b, a.sub(b)) } else { (a, b.sub(a)) };
            let (by, factors) = positive_content(std::slice::from_ref(&difference), facts);
            let inverse = Term { factors: factors.iter().map(|(f, p)| (f.clone(), -p)).collect(), ..Term::default() };
            let unit = product(&difference, &Sum::new([(inverse, by.recip())]), facts)?;
            let outside = Sum::new([(Term { factors, ..Term::default() }, by)]);
            if is_nonnegative(&unit, facts) {
                low.add(&difference)
            } else if is_nonnegative(&unit.negated(), facts) {
                low.clone()
            } else {
                let mut pair = vec![Sum::default(), unit];
                pair.sort();
                low.add(&product(&outside, &Sum::factor(Factor::Apply(Function::Max, pair)), facts)?)
            }
        }
        _ => Sum::factor(Factor::Apply(Function::Max, rest)),
    };
    Ok(common.add(&product(&outside, &inside, facts)?))
}

/// A positive number and positive factors that all the sums have.
fn positive_content(sums: &[Sum], facts: &Facts) -> (Number, Vec<(Factor, i32)>) {
    let all = Sum::new(sums.iter().flat_map(|sum| sum.terms()).map(|(term, _)| (term.clone(), Number::one())));
    let scale = sums.iter().flat_map(|sum| sum.terms()).map(|(_, c)| c.abs()).min().unwrap_or_else(Number::one);
    let mut factors = common_factors(&all);
    factors.retain(|(factor, _)| is_positive_factor(factor, facts));
    (scale, factors)
}

/// A reduction over a domain that is not empty.
pub(crate) fn over(fold: Fold, binders: Vec<(Var, Poly)>, conds: Vec<Poly>, body: Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let free = |sum: &Sum| !binders.iter().any(|(var, _)| sum.has(*var));
    if binders.is_empty() && conds.is_empty() {
        return Ok(body);
    }
    if fold == Fold::Product {
        return Ok(Sum::factor(Factor::Over(fold, binders, conds, body)));
    }
    if free(&body) {
        return Ok(body);
    }
    if let [(term, c)] = body.terms() {
        let inside = term.binders.is_empty() && term.conds.is_empty() && c.is_positive();
        match term.factors.as_slice() {
            // The largest of the largest.
            [(Factor::Over(Fold::Max, more, wheres, inner), 1)] if inside => {
                let all = binders.iter().chain(more).cloned().collect();
                let mut wheres: Vec<Poly> = conds.iter().chain(wheres).cloned().collect();
                wheres.sort();
                wheres.dedup();
                return Ok(over(fold, all, wheres, inner.clone(), facts)?.scale(c));
            }
            [(Factor::Apply(Function::Max, arguments), 1)] if inside => {
                let mut outer = Vec::new();
                for argument in arguments {
                    outer.push(over(fold, binders.clone(), conds.clone(), argument.clone(), facts)?);
                }
                return Ok(largest(outer, facts)?.scale(c));
            }
            _ => {}
        }
    }
    // A function that rises with the one element that varies is largest where that is.
    if let Some(leaf) = only_leaf(&body, &binders) {
        match trend(&body, &leaf, facts) {
            Some(Trend::Rising) if body != Sum::factor(leaf.clone()) => {
                let inside = Sum::factor(Factor::Over(Fold::Max, binders, conds, Sum::factor(leaf.clone())));
                return substituted(&body, &leaf, &inside, facts);
            }
            Some(Trend::Falling) if body != Sum::factor(leaf.clone()).negated() => {
                let inside = Sum::factor(Factor::Over(Fold::Max, binders, conds, Sum::factor(leaf.clone()).negated())).negated();
                return substituted(&body, &leaf, &inside, facts);
            }
            _ => {}
        }
    }
    // b + max(a, 0) is the largest of b and b + a.
    if let Some((at, arguments)) = body.terms().iter().enumerate().find_map(|(at, (term, c))| match term.factors.as_slice() {
        [(Factor::Apply(Function::Max, arguments), 1)] if c.is_positive() && term.binders.is_empty() && term.conds.is_empty() => {
            Some((at, arguments))
        }
        _ => None,
    }) {
        let (term, c) = &body.terms()[at];
        let rest = body.sub(&Sum::new([(term.clone(), c.clone())]));
        let mut outer = Vec::new();
        for argument in arguments {
            outer.push(over(fold, binders.clone(), conds.clone(), argument.scale(c).add(&rest), facts)?);
        }
        return largest(outer, facts);
    }
    // What does not vary is added to the largest.
    let (apart, rest): (Vec<_>, Vec<_>) = body
        .terms()
        .iter()
        .cloned()
        .partition(|(term, _)| !binders.iter().any(|(var, _)| Sum::new([(term.clone(), Number::one())]).has(*var)));
    let (apart, rest) = (Sum::new(apart), Sum::new(rest));
    let (scale, mut factors) = positive_content(std::slice::from_ref(&rest), facts);
    factors.retain(|(factor, _)| !binders.iter().any(|(var, _)| factor.has(*var)));
    let inverse = Term { factors: factors.iter().map(|(f, p)| (f.clone(), -p)).collect(), ..Term::default() };
    let inside = product(&rest, &Sum::new([(inverse, scale.recip())]), facts)?;
    let outside = Sum::new([(Term { factors, ..Term::default() }, scale)]);
    Ok(apart.add(&product(&outside, &Sum::factor(Factor::Over(fold, binders, conds, inside)), facts)?))
}

/// The factor through which alone the body varies with the binders.
fn only_leaf(body: &Sum, binders: &[(Var, Poly)]) -> Option<Factor> {
    let mut leaves = Vec::new();
    leaves_of(body, binders, &mut leaves);
    leaves.sort();
    leaves.dedup();
    match leaves.as_slice() {
        [leaf @ Factor::Read(..)] => Some(leaf.clone()),
        _ => None,
    }
}

fn leaves_of(sum: &Sum, binders: &[(Var, Poly)], leaves: &mut Vec<Factor>) {
    for (term, _) in sum.terms() {
        let varies = |p: &Poly| binders.iter().any(|(var, _)| p.has(*var));
        if term.conds.iter().any(varies) || term.binders.iter().any(|(_, extent)| varies(extent)) {
            leaves.push(Factor::Of(Sum::default()));
        }
        for (factor, _) in &term.factors {
            if !binders.iter().any(|(var, _)| factor.has(*var)) {
                continue;
            }
            match factor {
                Factor::Apply(_, arguments) => arguments.iter().for_each(|a| leaves_of(a, binders, leaves)),
                Factor::Of(inner) => leaves_of(inner, binders, leaves),
                other => leaves.push(other.clone()),
            }
        }
    }
}

/// The sum with another sum in a factor's place.
fn substituted(sum: &Sum, leaf: &Factor, value: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let mut result = Sum::default();
    for (term, c) in sum.terms() {
        let mut part = Sum::new([(Term { factors: Vec::new(), ..term.clone() }, c.clone())]);
        for (factor, p) in &term.factors {
            let inner = match factor {
                found if found == leaf => value.clone(),
                Factor::Apply(function, arguments) => {
                    let arguments = arguments.iter().map(|a| substituted(a, leaf, value, facts)).collect::<Result<_, _>>()?;
                    apply(function.clone(), arguments, facts)?
                }
                Factor::Of(inner) => substituted(inner, leaf, value, facts)?,
                other => Sum::factor(other.clone()),
            };
            part = product(&part, &power(&inner, *p, facts)?, facts)?;
        }
        result = result.add(&part);
    }
    Ok(result)
}
