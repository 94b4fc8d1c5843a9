//! Signs of sums: from their form, and from what a case assumes about them.

use num_traits::{One, Zero};

use crate::index::{Atom, Facts, Poly, Var};
use crate::value::number::Number;
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// An end of a range, and whether it is excluded.
type End = (Number, bool);

/// What is assumed about a direction: a sum without a constant term and with leading coefficient 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// The direction is above this, or at least this if the flag is not set.
    low: Option<End>,
    /// The direction is below this, or at most this if the flag is not set.
    high: Option<End>,
}

/// Assumed bounds of directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signs(Vec<(Sum, Bounds)>);

impl Signs {
    /// Assumes `sum > 0`, or `sum ≤ 0`.
    pub fn assume(&mut self, sum: &Sum, positive: bool) {
        let Some((factor, direction, constant)) = direction(sum) else { return };
        // factor * direction + constant > 0
        let limit = -constant / &factor;
        let at = self.0.iter().position(|(d, _)| *d == direction).unwrap_or_else(|| {
            self.0.push((direction, Bounds::default()));
            self.0.len() - 1
        });
        let bounds = &mut self.0[at].1;
        if positive == factor.is_positive() {
            if bounds.low.as_ref().is_none_or(|(low, _)| *low <= limit) {
                bounds.low = Some((limit, positive));
            }
        } else if bounds.high.as_ref().is_none_or(|(high, _)| *high >= limit) {
            bounds.high = Some((limit, positive));
        }
    }

    /// Forgets what is assumed about these variables.
    pub fn forget(&mut self, variables: &[(Var, Poly)]) {
        self.0.retain(|(direction, _)| !variables.iter().any(|(var, _)| direction.has(*var)));
    }

    /// The smallest and the largest value that the assumptions allow, each with whether it is
    /// excluded.
    fn range(&self, sum: &Sum) -> (Option<End>, Option<End>) {
        let Some((factor, direction, constant)) = direction(sum) else { return (None, None) };
        let Some((_, bounds)) = self.0.iter().find(|(d, _)| *d == direction) else { return (None, None) };
        let image = |bound: &Option<End>| bound.as_ref().map(|(at, open)| (at * &factor + &constant, *open));
        let (low, high) = (image(&bounds.low), image(&bounds.high));
        if factor.is_positive() { (low, high) } else { (high, low) }
    }
}

/// `factor * direction + constant`; `None` for a number.
fn direction(sum: &Sum) -> Option<(Number, Sum, Number)> {
    let constant = sum.terms().iter().find(|(term, _)| *term == Term::default()).map_or_else(Number::zero, |(_, c)| c.clone());
    let rest = sum.sub(&Sum::number(constant.clone()));
    let factor = rest.terms().first()?.1.clone();
    let unit = rest.scale(&factor.recip());
    Some((factor, unit, constant))
}

/// Whether the sum is at least 0.
pub(crate) fn is_nonnegative(sum: &Sum, facts: &Facts) -> bool {
    if sum.known().is_some_and(|value| !value.is_negative()) {
        return true;
    }
    facts.signs.range(sum).0.is_some_and(|(low, _)| !low.is_negative())
        || sum.terms().iter().all(|(term, c)| c.is_positive() && is_nonnegative_term(term, facts))
}

/// Whether the sum is positive.
pub(crate) fn is_positive(sum: &Sum, facts: &Facts) -> bool {
    if let Some(value) = sum.known() {
        return value.is_positive();
    }
    if facts.signs.range(sum).0.is_some_and(|(low, open)| low.is_positive() || (open && low.is_zero())) {
        return true;
    }
    let positive = |term: &Term| {
        // A sum over a nonempty range.
        let one = Poly::number(1);
        term.binders.iter().all(|(_, extent)| facts.at_least(extent, &one))
            && term.conds.is_empty()
            && term.factors.iter().all(|(factor, _)| is_positive_factor(factor, facts))
    };
    sum.terms().iter().all(|(term, c)| c.is_positive() && is_nonnegative_term(term, facts)) && sum.terms().iter().any(|(t, _)| positive(t))
}

fn is_nonnegative_term(term: &Term, facts: &Facts) -> bool {
    term.factors.iter().all(|(factor, power)| {
        power % 2 == 0
            || is_positive_factor(factor, facts)
            || match factor {
                Factor::Apply(Function::Max, arguments) => arguments.iter().any(|a| is_nonnegative(a, facts)),
                Factor::Apply(Function::Sqrt | Function::Positive | Function::Zero, _) => true,
                // log(1 + x) for x ≥ 0
                Factor::Apply(Function::Named(name), arguments) if name.as_ref() == "log" => {
                    arguments.iter().all(|a| is_nonnegative(&a.sub(&Sum::one()), facts))
                }
                Factor::Apply(Function::Named(name), arguments) if name.as_ref() == "power" => {
                    arguments.first().is_some_and(|a| is_nonnegative(a, facts))
                }
                Factor::Over(Fold::Max, _, _, body) => is_nonnegative(body, facts),
                _ => false,
            }
    })
}

/// Whether a factor is positive wherever it is defined.
pub(crate) fn is_positive_factor(factor: &Factor, facts: &Facts) -> bool {
    match factor {
        Factor::Read(source, _) => facts.is_positive(source),
        Factor::Whole(atom) => matches!(atom, Atom::Size(_)),
        Factor::Apply(Function::Exp, _) => true,
        Factor::Apply(Function::Named(name), _) if name.as_ref() == "pi" => true,
        Factor::Apply(Function::Sqrt, arguments) => arguments.iter().all(|a| is_positive(a, facts)),
        Factor::Apply(Function::Named(name), arguments) if name.as_ref() == "power" => {
            arguments.first().is_some_and(|a| is_positive(a, facts))
        }
        Factor::Of(sum) => is_positive(sum, facts),
        _ => false,
    }
}

/// A sum whose sign decides a maximum or an indicator in the given one; it is free of variables
/// bound inside.
pub(crate) fn open_sign(sum: &Sum) -> Option<Sum> {
    in_sum(sum, &mut Vec::new())
}

fn in_sum(sum: &Sum, bound: &mut Vec<Var>) -> Option<Sum> {
    sum.terms().iter().find_map(|(term, _)| {
        let depth = bound.len();
        bound.extend(term.binders.iter().map(|(var, _)| *var));
        let found = term.factors.iter().find_map(|(factor, _)| in_factor(factor, bound));
        bound.truncate(depth);
        found
    })
}

fn in_factor(factor: &Factor, bound: &mut Vec<Var>) -> Option<Sum> {
    match factor {
        Factor::Read(..) | Factor::Whole(_) => None,
        Factor::Of(sum) => in_sum(sum, bound),
        Factor::Over(_, binders, _, body) => {
            let depth = bound.len();
            bound.extend(binders.iter().map(|(var, _)| *var));
            let found = in_sum(body, bound);
            bound.truncate(depth);
            found
        }
        Factor::Apply(function, arguments) => arguments.iter().find_map(|a| in_sum(a, bound)).or_else(|| {
            let difference = match (function, arguments.as_slice()) {
                (Function::Max, [a, b, ..]) => b.sub(a),
                (Function::Positive, [a]) => a.clone(),
                _ => return None,
            };
            (!bound.iter().any(|var| difference.has(*var))).then_some(difference)
        }),
    }
}

/// How a sum depends on one of its factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trend {
    /// Not at all.
    Flat,
    /// It never falls when the factor rises.
    Rising,
    /// It never rises when the factor rises.
    Falling,
}

impl Trend {
    fn turned(self) -> Trend {
        match self {
            Trend::Flat => Trend::Flat,
            Trend::Rising => Trend::Falling,
            Trend::Falling => Trend::Rising,
        }
    }

    fn with(self, other: Trend) -> Option<Trend> {
        match (self, other) {
            (Trend::Flat, t) | (t, Trend::Flat) => Some(t),
            (a, b) => (a == b).then_some(a),
        }
    }
}

/// How the sum depends on `leaf`; `None` if that is unclear.
pub(crate) fn trend(sum: &Sum, leaf: &Factor, facts: &Facts) -> Option<Trend> {
    sum.terms().iter().try_fold(Trend::Flat, |all, (term, c)| {
        let mut own = Trend::Flat;
        for (at, (factor, power)) in term.factors.iter().enumerate() {
            let mut one = factor_trend(factor, leaf, facts)?;
            if one == Trend::Flat {
                continue;
            }
            // A power of a nonnegative base, with nonnegative other factors.
            if *power != 1 && !is_positive_factor(factor, facts) {
                return None;
            }
            if *power < 0 {
                one = one.turned();
            }
            let others = Term {
                factors: term.factors.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, f)| f.clone()).collect(),
                ..Term::default()
            };
            if !others.factors.is_empty() && !is_nonnegative(&Sum::new([(others, Number::one())]), facts) {
                return None;
            }
            own = own.with(one)?;
        }
        if own != Trend::Flat && !(term.binders.is_empty() && term.conds.is_empty()) {
            return None;
        }
        all.with(if c.is_positive() { own } else { own.turned() })
    })
}

fn factor_trend(factor: &Factor, leaf: &Factor, facts: &Facts) -> Option<Trend> {
    if factor == leaf {
        return Some(Trend::Rising);
    }
    match factor {
        Factor::Read(..) | Factor::Whole(_) => Some(Trend::Flat),
        Factor::Of(sum) => trend(sum, leaf, facts),
        Factor::Apply(Function::Max | Function::Exp | Function::Sqrt, arguments) => {
            arguments.iter().try_fold(Trend::Flat, |all, a| all.with(trend(a, leaf, facts)?))
        }
        Factor::Apply(function, arguments) => {
            let inner = arguments.iter().try_fold(Trend::Flat, |all, a| all.with(trend(a, leaf, facts)?))?;
            let rising = matches!(function, Function::Named(name) if ["log", "erf", "Atan", "Asinh", "Sinh"].contains(&name.as_ref()));
            (inner == Trend::Flat || rising).then_some(inner)
        }
        Factor::Over(_, _, _, body) => (trend(body, leaf, facts)? == Trend::Flat).then_some(Trend::Flat),
    }
}
