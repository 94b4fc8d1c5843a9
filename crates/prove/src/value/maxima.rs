//! Maxima: of several sums, and of one sum over a range.

use num_traits::One;

use crate::index::{Facts, Poly, Var};
use crate::value::algebra::{Trouble, common_factors, power, product};
use crate::value::function::apply;
use crate::value::number::Number;
use crate::value::sign::{Trend, is_nonnegative, is_positive_factor, trend};
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// Maximum number of arguments of a maximum.
const MOST_ARGUMENTS: usize = 16;

/// The largest of several sums: nested maxima flattened, common parts taken out.
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
    // An argument that never exceeds another one is not needed.
    let mut kept: Vec<Sum> = Vec::new();
    for (at, sum) in flat.iter().enumerate() {
        // Of two arguments that a case makes equal, the later one goes.
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
        // max(a, b) = b + max(a - b, 0) = b + (a - b) + max(b - a, 0): the difference whose first
        // coefficient is positive.
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

/// A positive number and positive factors common to all sums.
fn positive_content(sums: &[Sum], facts: &Facts) -> (Number, Vec<(Factor, i32)>) {
    let all = Sum::new(sums.iter().flat_map(|sum| sum.terms()).map(|(term, _)| (term.clone(), Number::one())));
    let scale = sums.iter().flat_map(|sum| sum.terms()).map(|(_, c)| c.abs()).min().unwrap_or_else(Number::one);
    let mut factors = common_factors(&all);
    factors.retain(|(factor, _)| is_positive_factor(factor, facts));
    (scale, factors)
}

/// A reduction over a nonempty domain.
pub(crate) fn over(fold: Fold, binders: Vec<(Var, Poly)>, conds: Vec<Poly>, body: Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let free = |sum: &Sum| !binders.iter().any(|(var, _)| sum.has(*var));
    if binders.is_empty() && conds.is_empty() {
        return Ok(body);
    }
    if fold == Fold::Product {
        return product_over(binders, conds, body, facts);
    }
    if free(&body) {
        return Ok(body);
    }
    if let [(term, c)] = body.terms() {
        let inside = term.binders.is_empty() && term.conds.is_empty() && c.is_positive();
        match term.factors.as_slice() {
            // A maximum of maxima.
            [(Factor::Over(Fold::Max, more, wheres, inner), 1)] if inside && apart(&binders, more) => {
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
    // A function that rises with its only varying element is largest where that element is.
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
    // b + max(a, 0) is the larger of b and b + a.
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
    // What does not vary is added to the maximum.
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

/// A product over a domain: a nested product becomes one product over both domains, and each factor
/// gets its own product.
fn product_over(binders: Vec<(Var, Poly)>, conds: Vec<Poly>, body: Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let whole = |body| Ok(Sum::factor(Factor::Over(Fold::Product, binders.clone(), conds.clone(), body)));
    let [(term, c)] = body.terms() else { return whole(body) };
    if !c.is_one() || !term.binders.is_empty() || !term.conds.is_empty() {
        return whole(body);
    }
    match term.factors.as_slice() {
        [] => Ok(Sum::one()),
        [(Factor::Over(Fold::Product, more, wheres, inner), 1)] if apart(&binders, more) => {
            let all = binders.iter().chain(more).cloned().collect();
            let mut wheres: Vec<Poly> = conds.iter().chain(wheres).cloned().collect();
            wheres.sort();
            wheres.dedup();
            over(Fold::Product, all, wheres, inner.clone(), facts)
        }
        [(_, 1)] => whole(body),
        factors => factors.iter().try_fold(Sum::one(), |result, (factor, p)| {
            let inside = if let Factor::Of(inside) = factor { inside.clone() } else { Sum::factor(factor.clone()) };
            let one = over(Fold::Product, binders.clone(), conds.clone(), inside, facts)?;
            product(&result, &power(&one, *p, facts)?, facts)
        }),
    }
}

/// Whether no variable name occurs in both lists.
fn apart(binders: &[(Var, Poly)], more: &[(Var, Poly)]) -> bool {
    !more.iter().any(|(var, _)| binders.iter().any(|(other, _)| other == var))
}

/// The only factor through which the body varies with the binders.
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

/// The sum with a factor replaced by another sum.
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
