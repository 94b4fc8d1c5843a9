//! Windows of windows: two variables of a maximum that slide over one range.

use crate::index::{Facts, Poly, Var, fresh};
use crate::value::sum::Term;

/// The domain of a maximum with two of its variables replaced by one, where elements depend on `a h + l` alone.
///
/// Multiplicities do not matter to a maximum, so the new variable runs over all values that `a h +
/// l` takes: those for which some `h` satisfies all conditions. Finding such an `h` is the exact
/// elimination of a variable from integer inequalities (W. Pugh, The Omega test, 1991, section
/// 2.3.3): for two bounds, one with factor 1, the combination suffices; for others, it must be
/// shown that an integer fits between them.
pub(crate) fn glided(term: &Term, facts: &Facts) -> Option<Term> {
    let binders = || term.binders.iter();
    let pairs = binders().flat_map(|high| binders().map(move |low| (high, low))).filter(|(high, low)| high.0 != low.0);
    pairs.into_iter().find_map(|(high, low)| {
        let step = step(term, high.0, low.0)?;
        let flat = fresh();
        let extent = high.1.plus(-1).scale(step).add(&low.1);
        let inside = facts.with(&[(flat, extent.clone())], []);
        if !inside.at_least(&high.1, &Poly::number(1)) || !inside.at_least(&low.1, &Poly::number(1)) {
            return None;
        }
        let offset = Poly::var(flat).sub(&Poly::var(high.0).scale(step));
        let mut conds: Vec<Poly> = term.conds.iter().map(|cond| cond.with(low.0, &offset)).collect();
        conds.extend([offset.clone(), low.1.plus(-1).sub(&offset)]);
        conds.extend([Poly::var(high.0), high.1.plus(-1).sub(&Poly::var(high.0))]);
        let mut others: Vec<(Var, Poly)> = binders().filter(|(var, _)| *var != high.0 && *var != low.0).cloned().collect();
        let conds = eliminated(&conds, high.0, &inside.with(&others, []))?;
        others.push((flat, extent));
        let bare = Term { conds: Vec::new(), ..term.clone() };
        Some(Term { conds, ..bare.rebind(others, vec![(high.0, Poly::default()), (low.0, Poly::var(flat))]) })
    })
}

/// The number `a` for which all index expressions except the conditions depend on `a high + low`
/// alone.
fn step(term: &Term, high: Var, low: Var) -> Option<i64> {
    let (mut step, mut together) = (None, true);
    let mut visit = |p: &Poly| {
        if !together || !(p.has(high) || p.has(low)) {
            return;
        }
        let ratio = p.linear(high).zip(p.linear(low)).and_then(|((by_high, _), (by_low, _))| {
            let ((_, l), (_, h)) = by_low.terms().first().zip(by_high.terms().first())?;
            Some(h / l).filter(|_| !by_high.has(low)).filter(|ratio| *ratio >= 1 && by_low.scale(*ratio) == by_high)
        });
        together = ratio.is_some() && step.is_none_or(|known| Some(known) == ratio);
        step = ratio;
    };
    term.binders.iter().for_each(|(_, extent)| visit(extent));
    term.factors.iter().for_each(|(factor, _)| factor.polys(&mut visit));
    step.filter(|_| together)
}

/// Conditions that hold exactly where some integer value of the variable satisfies all of `conds`;
/// `None` if that is not shown.
fn eliminated(conds: &[Poly], var: Var, facts: &Facts) -> Option<Vec<Poly>> {
    let (with, mut result): (Vec<Poly>, Vec<Poly>) = conds.iter().cloned().partition(|cond| cond.has(var));
    let facts = facts.with(&[], result.iter().cloned());
    // a var + r ≥ 0 and b var ≤ s
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for cond in with {
        let (factor, rest) = cond.linear(var)?;
        match factor.known()? {
            a @ 1.. => lower.push((a, rest)),
            b => upper.push((b.checked_neg()?, rest)),
        }
    }
    for (a, r) in &lower {
        for (b, s) in &upper {
            let shadow = s.scale(*a).add(&r.scale(*b));
            if *a == 1 || *b == 1 {
                result.push(shadow);
            } else if !facts.nonnegative(&shadow.plus(-(a - 1).checked_mul(b - 1)?)) {
                return None;
            }
        }
    }
    result.sort();
    result.dedup();
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Fuel, Source};
    use crate::value::sum::Factor;

    /// max over `h < n`, `l < m` where conditions hold of `x[a h + l]`, and all values of `a h +
    /// l`.
    fn check(n: i64, m: i64, a: i64, bounds: Option<(i64, i64)>) -> Option<Vec<i64>> {
        Fuel::fill(1 << 20);
        let (h, l) = (fresh(), fresh());
        let at = Poly::var(h).scale(a).add(&Poly::var(l));
        let conds = bounds.map_or_else(Vec::new, |(low, high)| vec![Poly::var(h).plus(-low), Poly::number(high).sub(&at)]);
        let binders = vec![(h, Poly::number(n)), (l, Poly::number(m))];
        let term = Term { binders, conds, factors: vec![(Factor::Read(Source::Input("x".into()), vec![at]), 1)] };
        let flat = glided(&term, &Facts::default())?;
        let [(var, extent)] = flat.binders.as_slice() else { panic!("{flat:?}") };
        let holds = |value: i64| flat.conds.iter().all(|c| c.with(*var, &Poly::number(value)).known().unwrap() >= 0);
        Some((0..extent.known().unwrap()).filter(|value| holds(*value)).collect())
    }

    #[test]
    fn windows_of_windows_cover_what_both_cover_or_are_left_alone() {
        for n in 1..4 {
            for m in 1..5 {
                for a in 1..4 {
                    for bounds in [None, Some((0, 3)), Some((1, 4)), Some((2, 9))] {
                        let (low, high) = bounds.unwrap_or((0, i64::MAX));
                        let mut met: Vec<i64> = (low..n).flat_map(|h| (0..m).map(move |l| a * h + l)).filter(|f| *f <= high).collect();
                        met.sort_unstable();
                        met.dedup();
                        match check(n, m, a, bounds) {
                            Some(found) => assert_eq!(found, met, "{n} {m} {a} {bounds:?}"),
                            None => assert!(a > m, "{n} {m} {a} {bounds:?}"),
                        }
                    }
                }
            }
        }
    }
}
