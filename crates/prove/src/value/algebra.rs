//! Products and whole powers of sums, each in a normal form.

use std::cell::Cell;
use std::fmt;

use num_traits::One;

use crate::index::{Facts, Fuel, Poly};
use crate::value::function::apply;
use crate::value::number::Number;
use crate::value::roots::gathered;
use crate::value::scope::merge_powers;
use crate::value::sum::{Factor, Function, Sum, Term};

/// Maximum number of terms in a sum.
const MOST_TERMS: usize = 60_000;
/// Maximum number of factors in a product of sums, nested ones included.
const HEAVIEST: usize = 400_000;
/// Maximum nesting of powers.
const DEEPEST: u32 = 48;
/// Largest power that is multiplied out.
const LARGEST_POWER: i32 = 6;

/// Why an element could not be written out.
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
    // Every term of one is multiplied by every term of the other.
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

/// A product with its factors combined: exponentials merged, no higher powers of roots and
/// indicators, inverses of products split.
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

/// Whether a divisor is not a product, has leading coefficient 1 and no common factor.
fn is_normal_divisor(sum: &Sum) -> bool {
    let product = matches!(sum.terms(), [] | [_]) && sum.terms().iter().all(|(term, _)| term.binders.is_empty() && term.conds.is_empty());
    !product && sum.terms().first().is_some_and(|(_, c)| c.is_one()) && common_factors(sum).is_empty()
}

thread_local! {
    /// How many nested powers are being taken.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// An integer power. A divisor is assumed to be nonzero.
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
            // Taking out common factors may leave a single product.
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

/// Factors common to all terms that do not depend on summed variables, with the smallest powers.
pub(crate) fn common_factors(sum: &Sum) -> Vec<(Factor, i32)> {
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
