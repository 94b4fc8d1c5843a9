//! Case distinctions on masks: tensors whose elements are 0 or 1.

use crate::index::{Facts, Poly, Var};
use crate::value::algebra::{Trouble, power, product};
use crate::value::function::apply;
use crate::value::maxima::over;
use crate::value::scope::under;
use crate::value::sum::{Factor, Sum, Term};

/// An element of a mask in the sum, at an index free of variables bound inside.
pub(crate) fn open_mask(sum: &Sum, facts: &Facts) -> Option<Factor> {
    in_sum(sum, facts, &mut Vec::new())
}

fn in_sum(sum: &Sum, facts: &Facts, bound: &mut Vec<Var>) -> Option<Factor> {
    sum.terms().iter().find_map(|(term, _)| {
        below(&term.binders, bound, |bound| term.factors.iter().find_map(|(factor, _)| in_factor(factor, facts, bound)))
    })
}

fn in_factor(factor: &Factor, facts: &Facts, bound: &mut Vec<Var>) -> Option<Factor> {
    match factor {
        Factor::Read(source, index) => {
            let open = facts.is_mask(source) && !index.iter().any(|p| bound.iter().any(|var| p.has(*var)));
            open.then(|| factor.clone())
        }
        Factor::Whole(_) => None,
        Factor::Apply(_, arguments) => arguments.iter().find_map(|a| in_sum(a, facts, bound)),
        Factor::Of(sum) => in_sum(sum, facts, bound),
        Factor::Over(_, binders, _, body) => below(binders, bound, |bound| in_sum(body, facts, bound)),
    }
}

fn below<T>(binders: &[(Var, Poly)], bound: &mut Vec<Var>, look: impl FnOnce(&mut Vec<Var>) -> T) -> T {
    let depth = bound.len();
    bound.extend(binders.iter().map(|(var, _)| *var));
    let found = look(bound);
    bound.truncate(depth);
    found
}

/// The sum where the element of a mask is 1, or where it is 0.
pub(crate) fn chosen(sum: &Sum, element: &Factor, one: bool, facts: &Facts) -> Result<Sum, Trouble> {
    let mut result = Sum::default();
    for (term, c) in sum.terms() {
        result = result.add(&chosen_in_term(term, element, one, facts)?.scale(c));
    }
    Ok(result)
}

fn chosen_in_term(term: &Term, element: &Factor, one: bool, facts: &Facts) -> Result<Sum, Trouble> {
    let plain = |term: &Term| Sum::new([(term.clone(), crate::value::whole(1))]);
    // Inside, the element's variables are shadowed by others of the same names.
    if term.binders.iter().any(|(var, _)| element.has(*var)) {
        return Ok(plain(term));
    }
    let inner = facts.inside(&term.binders, &term.conds);
    let mut result = Sum::one();
    for (factor, p) in &term.factors {
        let value = match factor {
            found if found == element => {
                if one {
                    Sum::one()
                } else {
                    Sum::default()
                }
            }
            Factor::Apply(function, arguments) => {
                let arguments = arguments.iter().map(|a| chosen(a, element, one, &inner)).collect::<Result<_, _>>()?;
                apply(function.clone(), arguments, &inner)?
            }
            Factor::Of(sum) => chosen(sum, element, one, &inner)?,
            Factor::Over(fold, binders, conds, body) if !binders.iter().any(|(var, _)| element.has(*var)) => {
                let body = chosen(body, element, one, &inner.with(binders, conds.clone()))?;
                over(*fold, binders.clone(), conds.clone(), body, &inner)?
            }
            other => Sum::factor(other.clone()),
        };
        result = product(&result, &power(&value, *p, &inner)?, &inner)?;
    }
    Ok(under(term, result))
}
