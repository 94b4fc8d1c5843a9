//! Decides whether a sum is 0 wherever the facts hold: by normal form, and by cases where the
//! normal form depends on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Facts, Poly, Var, fresh};
use crate::value::algebra::{Trouble, power, product};
use crate::value::canonical::canonical;
use crate::value::mask::{chosen, open_mask};
use crate::value::scope::Replacement;
use crate::value::sign::open_sign;
use crate::value::simplify::{Simplifier, open_condition, output_cut};
use crate::value::sum::{Factor, Sum, Term};

/// Maximum nesting of cases.
const MOST_CASES: u32 = 24;
/// Values of a variable that may be gone through one by one before any condition is.
const FEW: i64 = 4;
/// Maximum number of terms whose ranges are compared pairwise.
const MOST_JOINED: usize = 48;

/// Shows that the sum is 0 for all values of the variables, or returns what is left of it.
///
/// `variables` are free; their ranges are also in `facts`.
pub(crate) fn vanishes(sum: &Sum, variables: &[(Var, Poly)], facts: &Facts, simplifier: Simplifier) -> Result<(), Trouble> {
    Cases { simplifier, left: 4_000 }.vanishes(sum, variables, facts, 0)
}

struct Cases {
    simplifier: Simplifier,
    /// Cases that may still be opened.
    left: u32,
}

impl Cases {
    fn vanishes(&mut self, sum: &Sum, variables: &[(Var, Poly)], facts: &Facts, depth: u32) -> Result<(), Trouble> {
        let sum = self.normal(sum, facts)?;
        if sum.is_zero() {
            return Ok(());
        }
        if depth > MOST_CASES || self.left == 0 {
            return Trouble::new(format!("too many cases, one of them with {sum}"));
        }
        self.left -= 1;
        for (at, (var, extent)) in variables.iter().enumerate() {
            if let Some(low) = output_cut(&sum, *var, extent)
                && let Some(high) = extent.exact(&low)
            {
                let (h, l) = (fresh(), fresh());
                let mut others = variables.to_vec();
                others.remove(at);
                others.extend([(h, high.clone()), (l, low.clone())]);
                let digits = Poly::var(h).mul(&low).add(&Poly::var(l));
                let facts = facts.with(&[(h, high), (l, low)], []).replaced(*var, &digits);
                return self.vanishes(&sum.replace(&Replacement::new(vec![(*var, digits)])), &others, &facts, depth + 1);
            }
        }
        let open = open_condition(&sum);
        // Which of few values a digit has tells more than what a condition says of it.
        if let Some(cond) = &open
            && let Some(at) = variables.iter().position(|(var, extent)| extent.known().is_some_and(|e| e <= FEW) && cond.has(*var))
        {
            return self.each_value(&sum, variables, at, facts, depth);
        }
        if let Some(cond) = open {
            return self.either(&sum, variables, &cond, facts, depth);
        }
        if let Some(at) =
            variables.iter().position(|(var, extent)| extent.known().is_some_and(|e| e <= self.simplifier.expand) && sum.has(*var))
        {
            return self.each_value(&sum, variables, at, facts, depth);
        }
        if facts.contradict() {
            return Ok(());
        }
        if let Some(element) = open_mask(&sum, facts) {
            for one in [true, false] {
                self.vanishes(&chosen(&sum, &element, one, facts)?, variables, facts, depth + 1)?;
            }
            return Ok(());
        }
        if let Some(sign) = open_sign(&sum) {
            for positive in [true, false] {
                let mut facts = facts.clone();
                facts.signs.assume(&sign, positive);
                self.vanishes(&sum, variables, &facts, depth + 1)?;
            }
            return Ok(());
        }
        if let Some(joined) = joined(&sum).or_else(|| joined_inside(&sum)) {
            return self.vanishes(&joined, variables, facts, depth + 1);
        }
        if let Some(multiplied) = without_divisor(&sum, facts)? {
            return self.vanishes(&multiplied, variables, facts, depth + 1);
        }
        if let Some(cut) = open_end(&sum, facts) {
            return self.either(&sum, variables, &cut, facts, depth);
        }
        Trouble::new(format!("the difference is {sum}"))
    }

    /// The cases where a number is not negative, and where it is; a variable for which one leaves
    /// only 0 is replaced.
    fn either(&mut self, sum: &Sum, variables: &[(Var, Poly)], number: &Poly, facts: &Facts, depth: u32) -> Result<(), Trouble> {
        for cond in [number.clone(), number.scale(-1).plus(-1)] {
            if let Some(at) = variables.iter().position(|(var, _)| cond == Poly::var(*var).scale(-1)) {
                let (var, zero) = (variables[at].0, Poly::default());
                let mut others = variables.to_vec();
                others.remove(at);
                self.vanishes(&sum.with(var, &zero), &others, &facts.replaced(var, &zero), depth + 1)?;
                continue;
            }
            let facts = facts.with(&[], [cond]);
            if !facts.contradict() {
                self.vanishes(sum, variables, &facts, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A case for each value of a variable whose range is a number.
    fn each_value(&mut self, sum: &Sum, variables: &[(Var, Poly)], at: usize, facts: &Facts, depth: u32) -> Result<(), Trouble> {
        let (var, extent) = &variables[at];
        let mut others = variables.to_vec();
        others.remove(at);
        for value in 0..extent.known().unwrap_or(0) {
            let value = Poly::number(value);
            let facts = facts.replaced(*var, &value);
            if !facts.contradict() {
                self.vanishes(&sum.with(*var, &value), &others, &facts, depth + 1)?;
            }
        }
        Ok(())
    }

    fn normal(&self, sum: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
        let mut sum = canonical(sum);
        for _ in 0..8 {
            let next = canonical(&self.simplifier.sum(&sum, facts)?);
            if next == sum {
                break;
            }
            sum = next;
        }
        Ok(sum)
    }
}

/// How far a condition cuts into the range of a summed variable, at its begin or its end, if it is
/// not known whether it does.
fn open_end(sum: &Sum, facts: &Facts) -> Option<Poly> {
    sum.terms().iter().find_map(|(term, _)| {
        term.binders.iter().find_map(|(var, extent)| {
            term.conds.iter().find_map(|cond| {
                let (factor, rest) = cond.linear(*var)?;
                let cut = match factor.known()? {
                    1 => rest.scale(-1),
                    -1 => extent.plus(-1).sub(&rest),
                    _ => return None,
                };
                let is_bound = term.binders.iter().any(|(other, _)| cut.has(*other));
                let is_open = !facts.nonnegative(&cut) && !facts.nonnegative(&cut.scale(-1));
                (!is_bound && is_open).then_some(cut)
            })
        })
    })
}

/// The extents of some variables, ascending.
fn domain(binders: &[(Var, Poly)]) -> Vec<&Poly> {
    let mut extents: Vec<&Poly> = binders.iter().map(|(_, extent)| extent).collect();
    extents.sort();
    extents
}

/// Joins two sums of the same body over adjacent ranges.
pub(crate) fn joined(sum: &Sum) -> Option<Sum> {
    if sum.terms().len() > MOST_JOINED {
        return None;
    }
    let known: BTreeMap<&Term, usize> = sum.terms().iter().enumerate().map(|(at, (term, _))| (term, at)).collect();
    let extents: BTreeSet<&Poly> = sum.terms().iter().flat_map(|(term, _)| &term.binders).map(|(_, extent)| extent).collect();
    let domains: Vec<Vec<&Poly>> = sum.terms().iter().map(|(term, _)| domain(&term.binders)).collect();
    for (at, (term, c)) in sum.terms().iter().enumerate() {
        for (bound, (var, extent)) in term.binders.iter().enumerate() {
            for other in &extents {
                let mut binders = term.binders.clone();
                let new = fresh();
                binders[bound] = (new, (*other).clone());
                // Most ranges fit no other sum, which is soon seen.
                if !domains.iter().zip(sum.terms()).enumerate().any(|(i, (of, (_, k)))| i != at && k == c && *of == domain(&binders)) {
                    continue;
                }
                let next = term.rebind(binders, vec![(*var, Poly::var(new).add(extent))]);
                let next = canonical(&Sum::new([(next, c.clone())]));
                let [(next, _)] = next.terms() else { continue };
                let Some(found) = known.get(next).filter(|found| **found != at && sum.terms()[**found].1 == *c) else { continue };
                let mut whole = term.clone();
                whole.binders[bound].1 = extent.add(other);
                let rest = sum.terms().iter().enumerate().filter(|(i, _)| *i != at && i != found).map(|(_, t)| t.clone());
                return Some(Sum::new(rest.chain([(whole, c.clone())])));
            }
        }
    }
    None
}

/// Joins sums over adjacent ranges in arguments of functions and in divisors.
fn joined_inside(sum: &Sum) -> Option<Sum> {
    let mut changed = false;
    let mut argument = |argument: &Sum| {
        let mut whole = canonical(argument);
        while let Some(next) = joined(&whole).or_else(|| joined_inside(&whole)) {
            changed = true;
            whole = canonical(&next);
        }
        whole
    };
    let mut terms = Vec::with_capacity(sum.terms().len());
    for (term, c) in sum.terms() {
        // Canonical names inside would clash with those outside.
        let mut term = term.refreshed();
        for (factor, _) in &mut term.factors {
            match factor {
                Factor::Apply(_, arguments) => arguments.iter_mut().for_each(|a| *a = argument(a)),
                Factor::Of(inside) => *inside = argument(inside),
                Factor::Read(..) | Factor::Whole(_) | Factor::Over(..) => {}
            }
        }
        terms.push((term, c.clone()));
    }
    changed.then(|| Sum::new(terms))
}

/// The sum times a divisor of one of its terms.
pub(crate) fn without_divisor(sum: &Sum, facts: &Facts) -> Result<Option<Sum>, Trouble> {
    let divisor = sum.terms().iter().flat_map(|(term, _)| term.factors.iter().map(move |f| (term, f))).find_map(|(term, (factor, p))| {
        let Factor::Of(inside) = factor else { return None };
        (*p < 0 && !term.binders.iter().any(|(var, _)| inside.has(*var))).then_some(inside)
    });
    let Some(divisor) = divisor else { return Ok(None) };
    let is_divisor = |factor: &Factor| matches!(factor, Factor::Of(inside) if inside == divisor);
    let power_of = |term: &Term| term.factors.iter().find(|(factor, _)| is_divisor(factor)).map_or(0, |(_, p)| -p);
    let most = sum.terms().iter().map(|(term, _)| power_of(term)).max().unwrap_or(0);
    let mut result = Sum::default();
    for (term, c) in sum.terms() {
        let missing = most - power_of(term);
        let factors = term.factors.iter().filter(|(factor, _)| !is_divisor(factor)).cloned().collect();
        let rest = Sum::new([(Term { factors, ..term.clone() }, c.clone())]);
        result = result.add(&product(&rest, &power(divisor, missing, facts)?, facts)?);
    }
    Ok(Some(result))
}
