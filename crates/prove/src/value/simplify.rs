//! Brings sums closer to a normal form: drops redundant conditions, and trims, shifts, splits and
//! merges summed ranges.

use num_traits::One;

use crate::index::{Atom, Facts, Fuel, Poly, Var, fresh};
use crate::value::algebra::{Trouble, power, product};
use crate::value::function::apply;
use crate::value::scope::under;
use crate::value::sum::{Factor, Sum, Term};

/// Maximum number of rewrites of one term.
pub(super) const MOST_STEPS: usize = 96;

/// Simplifies sums under facts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Simplifier {
    /// Sums over at most this many values are written out.
    pub expand: i64,
    /// Output variables with at most this many values are split into cases where they choose an
    /// element of a table.
    pub choose: i64,
}

/// The result of a step on a term.
pub(super) enum Step {
    Same,
    Changed(Term),
    /// The term is this multiple of another.
    Scaled(Term, Poly),
    Split(Vec<Term>),
}

impl Simplifier {
    /// The sum in a simpler form.
    pub fn sum(self, sum: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
        let mut terms = Vec::with_capacity(sum.terms().len());
        for (term, c) in sum.terms() {
            let simple = self.term(term, facts)?;
            terms.extend(simple.into_terms().into_iter().map(|(t, n)| (t, n * c)));
        }
        Ok(Sum::new(terms))
    }

    fn term(self, term: &Term, facts: &Facts) -> Result<Sum, Trouble> {
        let mut result = Sum::default();
        let mut open = vec![(term.clone(), Sum::one())];
        let mut steps = 0;
        while let Some((term, factor)) = open.pop() {
            steps += 1;
            if !Fuel::spend(16) {
                return Trouble::new("the question takes too long");
            }
            if steps > MOST_STEPS * (1 + self.expand.unsigned_abs() as usize) {
                return Trouble::new("a sum takes too many steps");
            }
            match self.step(&term, facts, true)? {
                Step::Changed(term) => open.push((term, factor)),
                Step::Scaled(term, by) => open.push((term, product(&factor, &Sum::whole(&by), facts)?)),
                Step::Split(terms) => open.extend(terms.into_iter().map(|t| (t, factor.clone()))),
                Step::Same => {
                    let rebuilt = self.factors(&term, facts)?;
                    if rebuilt.terms() == [(term.clone(), One::one())] {
                        result = result.add(&product(&factor, &rebuilt, facts)?);
                    } else {
                        for (term, c) in rebuilt.into_terms() {
                            open.push((term, factor.scale(&c)));
                        }
                    }
                }
            }
        }
        Ok(result)
    }

    /// What holds for every value of a term's variables, over a simpler domain; `None` if the
    /// domain is empty.
    pub(super) fn every(self, mut term: Term, facts: &Facts) -> Result<Option<Term>, Trouble> {
        let one = Poly::number(1);
        for _ in 0..MOST_STEPS {
            match self.step(&term, facts, false)? {
                // In a domain that may be empty, even an unused variable matters: it decides
                // whether anything is claimed.
                Step::Changed(changed) if changed.binders.len() >= term.binders.len() => term = changed,
                Step::Changed(changed) if term.binders.iter().all(|(_, extent)| facts.at_least(extent, &one)) => term = changed,
                Step::Split(parts) if parts.is_empty() => return Ok(None),
                Step::Changed(_) | Step::Same | Step::Scaled(..) | Step::Split(_) => break,
            }
        }
        Ok(Some(term))
    }

    /// One step of simplifying the domain of a term. `additive` distinguishes sums from maxima,
    /// where multiplicities do not count.
    pub(super) fn step(self, term: &Term, facts: &Facts, additive: bool) -> Result<Step, Trouble> {
        let Some(clean) = conditions(term, facts) else { return Ok(Step::Split(Vec::new())) };
        if clean != *term {
            return Ok(Step::Changed(clean));
        }
        let bound = |p: &Poly| term.binders.iter().any(|(var, _)| p.has(*var));
        for (at, (var, extent)) in term.binders.iter().enumerate() {
            let others = || without(&term.binders, at);
            if extent.known().is_some_and(|e| e <= 0) {
                return Ok(Step::Split(Vec::new()));
            }
            if extent.known() == Some(1) {
                return Ok(Step::Changed(term.rebind(others(), vec![(*var, Poly::default())])));
            }
            let mut used = false;
            term.inner_polys(&mut |p| used |= p.has(*var));
            if !used && facts.nonnegative(extent) {
                let rest = Term { binders: others(), ..term.clone() };
                return Ok(if additive { Step::Scaled(rest, extent.clone()) } else { Step::Changed(rest) });
            }
            // Until tables are multiplied out, their ranges stay numeric.
            let number = self.expand < self.choose && reads_table(term, *var, facts);
            for cond in &term.conds {
                let Some((factor, rest)) = cond.linear(*var) else { continue };
                if let Some(changed) = equality(term, at, cond, &factor, &rest) {
                    return Ok(Step::Changed(changed));
                }
                if bound(&rest) || (number && rest.known().is_none()) {
                    continue;
                }
                if factor.known() == Some(1) {
                    let (first, left) = (rest.scale(-1), extent.add(&rest));
                    if facts.nonnegative(&first) && facts.nonnegative(&left) {
                        let new = fresh();
                        let mut binders = others();
                        binders.push((new, left));
                        let shifted = term.rebind(binders, vec![(*var, Poly::var(new).add(&first))]);
                        return Ok(Step::Changed(shifted));
                    }
                }
                if factor.known() == Some(-1) {
                    let end = rest.plus(1);
                    if facts.at_least(extent, &end) && facts.nonnegative(&end) && end != *extent {
                        let mut trimmed = term.clone();
                        trimmed.binders[at].1 = end;
                        trimmed.conds.retain(|c| c != cond);
                        return Ok(Step::Changed(trimmed));
                    }
                }
            }
            if let Some(low) = split_at(term, *var, extent) {
                let (high_var, low_var) = (fresh(), fresh());
                let Some(high) = extent.exact(&low) else { continue };
                let mut binders = others();
                binders.extend([(high_var, high), (low_var, low.clone())]);
                let digits = Poly::var(high_var).mul(&low).add(&Poly::var(low_var));
                return Ok(Step::Changed(term.rebind(binders, vec![(*var, digits)])));
            }
            if extent.known().is_some_and(|e| e <= self.expand) && additive {
                let values = (0..extent.known().unwrap_or(0)).map(|value| term.rebind(others(), vec![(*var, Poly::number(value))]));
                return Ok(Step::Split(values.collect()));
            }
        }
        if let Some(merged) = merged(term) {
            return Ok(Step::Changed(merged));
        }
        if additive && let Some(cond) = inner_condition(term) {
            let negated = cond.scale(-1).plus(-1);
            return Ok(Step::Split(vec![term.where_also(cond), term.where_also(negated)]));
        }
        let reduced = self.reduced(term, facts);
        Ok(if reduced == *term { Step::Same } else { Step::Changed(reduced) })
    }

    /// The index expressions of the term's own reads, reduced.
    fn reduced(self, term: &Term, facts: &Facts) -> Term {
        let inner = facts.inside(&term.binders, &term.conds);
        let factors = term.factors.iter().map(|(factor, p)| match factor {
            Factor::Read(source, index) => (Factor::Read(source.clone(), index.iter().map(|i| inner.reduce(i)).collect()), *p),
            other => (other.clone(), *p),
        });
        let mut factors = factors.collect();
        crate::value::scope::merge_powers(&mut factors);
        Term { factors, ..term.clone() }
    }

    /// The term with everything inside its factors simplified.
    fn factors(self, term: &Term, facts: &Facts) -> Result<Sum, Trouble> {
        let inner = facts.inside(&term.binders, &term.conds);
        let mut plain = Vec::new();
        let mut result = Sum::one();
        for (factor, p) in &term.factors {
            let value = match factor {
                Factor::Read(source, index) => match inner.element(source, index) {
                    Some(value) => Sum::number(value.clone()),
                    None => {
                        plain.push((factor.clone(), *p));
                        continue;
                    }
                },
                Factor::Whole(atom) => Sum::whole(&inner.reduce(&Poly::atom(atom.clone()))),
                Factor::Apply(function, arguments) => {
                    let arguments = arguments.iter().map(|a| self.sum(a, &inner)).collect::<Result<Vec<_>, _>>()?;
                    apply(function.clone(), arguments, &inner)?
                }
                Factor::Over(fold, binders, conds, body) => self.fold(*fold, binders, conds, body, &inner)?,
                Factor::Of(sum) => self.sum(sum, &inner)?,
            };
            result = product(&result, &power(&value, *p, &inner)?, &inner)?;
        }
        let reads = Sum::new([(Term { factors: plain, ..Term::default() }, One::one())]);
        let result = product(&result, &reads, &inner)?;
        Ok(under(term, result))
    }
}

impl Term {
    pub(super) fn where_also(&self, cond: Poly) -> Term {
        let mut term = self.clone();
        if let Err(at) = term.conds.binary_search(&cond) {
            term.conds.insert(at, cond);
        }
        term
    }
}

/// Whether the variable selects an element of a known table.
fn reads_table(term: &Term, var: Var, facts: &Facts) -> bool {
    term.factors.iter().any(|(factor, _)| match factor {
        Factor::Read(source, index) => facts.has_table(source) && index.iter().any(|p| p.has(var)),
        _ => false,
    })
}

fn without(binders: &[(Var, Poly)], at: usize) -> Vec<(Var, Poly)> {
    let mut left = binders.to_vec();
    left.remove(at);
    left
}

/// The term without conditions that always hold; `None` if one never does.
fn conditions(term: &Term, facts: &Facts) -> Option<Term> {
    if term.conds.is_empty() {
        return Some(term.clone());
    }
    let ranges = facts.inside(&term.binders, &[]);
    let mut conds: Vec<Poly> = Vec::new();
    for cond in &term.conds {
        let cond = ranges.reduce(cond);
        let cond = if ranges.is_whole(&cond) { cond.tightened() } else { cond };
        match cond.known() {
            Some(value) if value < 0 => return None,
            Some(_) => {}
            None => conds.push(cond),
        }
    }
    conds.sort();
    conds.dedup();
    let mut at = 0;
    while at < conds.len() {
        let cond = conds.remove(at);
        let others = ranges.inside(&[], &conds);
        if others.nonnegative(&cond.scale(-1).plus(-1)) {
            return None;
        }
        if !others.nonnegative(&cond) {
            conds.insert(at, cond);
            at += 1;
        }
    }
    Some(Term { conds, ..term.clone() })
}

/// A summed variable to which conditions leave one value: `r - b v ≥ 0` and `b v + b - 1 - r ≥ 0`
/// mean `v = floor(r / b)`.
fn equality(term: &Term, at: usize, cond: &Poly, factor: &Poly, rest: &Poly) -> Option<Term> {
    let step = factor.scale(-1);
    let known_step = step.known();
    // Of the two conditions, the one where the variable has a negative factor.
    if known_step.map_or_else(|| step.terms().iter().any(|(_, c)| *c < 0), |s| s < 1) {
        return None;
    }
    let other = step.plus(-1).sub(cond);
    if !term.conds.contains(&other) {
        return None;
    }
    let (var, extent) = &term.binders[at];
    let value = rest.floor(&step);
    let mut term = term.clone();
    term.conds.retain(|c| c != cond && *c != other);
    // Both conditions only state the range of the division's remainder; the variable's range
    // remains to be stated.
    for range in [value.clone(), extent.plus(-1).sub(&value)] {
        if range.known().is_none_or(|v| v < 0) && !term.conds.contains(&range) {
            term.conds.push(range);
        }
    }
    term.conds.sort();
    Some(term.rebind(without(&term.binders, at), vec![(*var, value)]))
}

/// The size of the low digit where a division cuts the variable in two: `floor((c v + r) / (c m))`
/// cuts at `m`.
fn split_at(term: &Term, var: Var, extent: &Poly) -> Option<Poly> {
    let mut found = None;
    term.inner_polys(&mut |p| {
        p.any(&mut |atom| {
            if let Atom::Floor(a, b) = atom
                && let Some((factor, _)) = a.linear(var)
                && !factor.is_zero()
                && let Some(low) = b.exact(&factor)
                && low.known() != Some(1)
                && low != *extent
                && extent.exact(&low).is_some()
            {
                found.get_or_insert(low);
            }
            false
        });
    });
    found
}

/// The cut of an output variable, as for a summed one.
pub(crate) fn output_cut(sum: &Sum, var: Var, extent: &Poly) -> Option<Poly> {
    sum.terms().iter().find_map(|(term, _)| split_at(term, var, extent))
}

/// Merges two summed variables that only occur as `i e + j` with `j < e`.
fn merged(term: &Term) -> Option<Term> {
    if term.binders.len() < 2 {
        return None;
    }
    for (hi, (high, high_extent)) in term.binders.iter().enumerate() {
        for (lo, (low, low_extent)) in term.binders.iter().enumerate() {
            if hi == lo {
                continue;
            }
            let (mut together, mut seen) = (true, false);
            term.inner_polys(&mut |p| {
                if !together || !(p.has(*high) || p.has(*low)) {
                    return;
                }
                seen = true;
                let (Some((a, _)), Some((b, _))) = (p.linear(*high), p.linear(*low)) else {
                    together = false;
                    return;
                };
                together = a == b.mul(low_extent) && !b.has(*high) && !a.has(*low);
            });
            if together && seen {
                let flat = fresh();
                let mut binders: Vec<(Var, Poly)> = term.binders.iter().filter(|(v, _)| v != high && v != low).cloned().collect();
                binders.push((flat, high_extent.mul(low_extent)));
                return Some(term.rebind(binders, vec![(*high, Poly::default()), (*low, Poly::var(flat))]));
            }
        }
    }
    None
}

/// A condition inside a factor that involves the term's own summed variables, and none bound
/// further inside.
pub(super) fn inner_condition(term: &Term) -> Option<Poly> {
    let own: Vec<Var> = term.binders.iter().map(|(var, _)| *var).collect();
    term.factors.iter().find_map(|(factor, _)| inside(factor, &mut Vec::new(), &|p| own.iter().any(|v| p.has(*v))))
}

/// A condition inside a sum's factors that involves no variable bound there.
pub(crate) fn open_condition(sum: &Sum) -> Option<Poly> {
    within(sum, &mut Vec::new(), &|_| true)
}

fn within(sum: &Sum, bound: &mut Vec<Var>, wanted: &dyn Fn(&Poly) -> bool) -> Option<Poly> {
    sum.terms().iter().find_map(|(term, _)| {
        let depth = bound.len();
        bound.extend(term.binders.iter().map(|(var, _)| *var));
        let found = term.conds.iter().find(|c| wanted(c) && !bound.iter().any(|v| c.has(*v))).cloned();
        let found = found.or_else(|| term.factors.iter().find_map(|(factor, _)| inside(factor, bound, wanted)));
        bound.truncate(depth);
        found
    })
}

fn inside(factor: &Factor, bound: &mut Vec<Var>, wanted: &dyn Fn(&Poly) -> bool) -> Option<Poly> {
    match factor {
        Factor::Read(..) | Factor::Whole(_) => None,
        Factor::Apply(_, arguments) => arguments.iter().find_map(|a| within(a, bound, wanted)),
        Factor::Of(sum) => within(sum, bound, wanted),
        Factor::Over(_, binders, conds, body) => {
            let depth = bound.len();
            bound.extend(binders.iter().map(|(var, _)| *var));
            let found = conds.iter().find(|c| wanted(c) && !bound.iter().any(|v| c.has(*v))).cloned();
            let found = found.or_else(|| within(body, bound, wanted));
            bound.truncate(depth);
            found
        }
    }
}
