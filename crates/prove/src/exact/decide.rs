//! Decides whether a difference vanishes, quotients by sums included.

use super::arena::{Arena, Atom, Broken, Id, ONE, Term, ZERO};

const FRACTION: Broken = "a divisor has an exponent that is not whole";

/// True if the expression is zero once every divisor is replaced by the sum it stands for.
///
/// The divisors are multiplied out one by one, the most recent first: no other divisor's sum
/// contains it.
pub(super) fn vanishes(arena: &mut Arena, mut id: Id) -> Result<bool, Broken> {
    loop {
        let terms = arena.terms(id)?.to_vec();
        let mut last = None;
        for term in &terms {
            for (atom, _) in arena.monomials.factors(term.monomial) {
                if matches!(arena.atom_of(atom), Atom::Divisor(_)) {
                    last = last.max(Some(atom));
                }
            }
        }
        let Some(atom) = last else { return Ok(terms.is_empty()) };
        id = multiplied_out(arena, &terms, atom)?;
    }
}

/// The terms times the lowest power of the divisor that clears it from the denominator, with the
/// divisor replaced by the sum it stands for.
fn multiplied_out(arena: &mut Arena, terms: &[Term], atom: u32) -> Result<Id, Broken> {
    let Atom::Divisor(key) = *arena.atom_of(atom) else { return Err(FRACTION) };
    let sum = arena.expression_of_key(key);
    // Terms by their exponent of the divisor, with the divisor removed.
    let mut by_exponent: Vec<(i64, Vec<Term>)> = Vec::new();
    for term in terms {
        let mut factors = arena.monomials.factors(term.monomial);
        let exponent = match factors.iter().position(|f| f.0 == atom) {
            Some(at) => factors.remove(at).1.integer().ok_or(FRACTION)?,
            None => 0,
        };
        let rest = Term { monomial: arena.monomials.of(factors), ..*term };
        match by_exponent.iter_mut().find(|(e, _)| *e == exponent) {
            Some((_, list)) => list.push(rest),
            None => by_exponent.push((exponent, vec![rest])),
        }
    }
    let least = by_exponent.iter().map(|(e, _)| *e).min().unwrap_or(0).min(0);
    let mut total = ZERO;
    for (exponent, list) in by_exponent {
        let mut factor = ONE;
        for _ in least..exponent {
            factor = arena.product(factor, sum);
        }
        let list = arena.of_terms(list)?;
        let part = arena.product(list, factor);
        total = arena.sum(total, part);
    }
    Ok(total)
}
