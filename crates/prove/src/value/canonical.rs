//! Canonical names of summed variables, by their use alone, so that equal sums look alike.

use crate::index::{Fuel, Poly, Var};
use crate::value::scope::{Replacement, merge_powers};
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// First canonical name, by depth of nesting.
const NAMES: Var = 0xe000_0000;
/// Number of names per depth.
const WIDTH: Var = 256;
/// Placeholders for the variable in question and for its siblings.
const THIS: Var = 0xffff_0000;
const SIBLING: Var = 0xffff_0001;
/// Maximum number of variable orders to compare.
const MOST_ORDERS: usize = 720;

/// The sum with canonical names, and like terms combined.
pub(crate) fn canonical(sum: &Sum) -> Sum {
    named(sum, 0)
}

fn named(sum: &Sum, depth: Var) -> Sum {
    Sum::new(sum.terms().iter().map(|(term, c)| (term_named(term, depth), c.clone())))
}

/// The term with canonical names, and which variable got which name.
pub(crate) fn ordered(term: &Term) -> (Term, Vec<(Var, Var)>) {
    renamed(term, 0)
}

fn term_named(term: &Term, depth: Var) -> Term {
    renamed(term, depth).0
}

fn renamed(term: &Term, depth: Var) -> (Term, Vec<(Var, Var)>) {
    if term.binders.is_empty() {
        return (nested(term, depth), Vec::new());
    }
    // A single variable needs nothing to be told apart by.
    let signature = |var, extent| if term.binders.len() == 1 { Signature::default() } else { signature(term, var, extent) };
    let mut binders: Vec<(Signature, Var, Poly)> =
        term.binders.iter().map(|(var, extent)| (signature(*var, extent), *var, extent.clone())).collect();
    binders.sort();
    let groups: Vec<usize> = binders.iter().map(|b| binders.iter().filter(|o| o.0 == b.0).count()).collect();
    let mut orders = orders(&groups);
    // Without fuel, equal sums may look different; the question ends soon.
    if !Fuel::spend(8 * (orders.len() * term.factors.len()) as u64) {
        orders.truncate(1);
    }
    let renamed = orders.into_iter().map(|order| {
        let name = |at: usize| NAMES + depth * WIDTH + at as Var;
        let list = order.iter().enumerate().map(|(at, from)| (name(at), binders[*from].2.clone())).collect();
        let names: Vec<(Var, Var)> = order.iter().enumerate().map(|(at, from)| (binders[*from].1, name(at))).collect();
        let pairs = names.iter().map(|(old, new)| (*old, Poly::var(*new))).collect();
        (nested(&simultaneous(term, list, pairs), depth + 1), names)
    });
    renamed.min().unwrap_or_else(|| (term.clone(), Vec::new()))
}

/// Renames without mixing up old and new names.
fn simultaneous(term: &Term, binders: Vec<(Var, Poly)>, pairs: Vec<(Var, Poly)>) -> Term {
    let inside = Term { binders: Vec::new(), conds: term.conds.clone(), factors: term.factors.clone() };
    Term { binders, ..inside.replace(&Replacement::new(pairs)) }
}

/// The term with canonical names inside its factors.
fn nested(term: &Term, depth: Var) -> Term {
    let mut factors: Vec<(Factor, i32)> = term.factors.iter().map(|(factor, power)| (factor_named(factor, depth), *power)).collect();
    merge_powers(&mut factors);
    Term { factors, ..term.clone() }
}

fn factor_named(factor: &Factor, depth: Var) -> Factor {
    match factor {
        Factor::Read(..) | Factor::Whole(_) => factor.clone(),
        Factor::Apply(function, arguments) => {
            let mut arguments: Vec<Sum> = arguments.iter().map(|a| named(a, depth)).collect();
            if *function == Function::Max {
                arguments.sort();
                arguments.dedup();
            }
            Factor::Apply(function.clone(), arguments)
        }
        Factor::Of(sum) => Factor::Of(named(sum, depth)),
        Factor::Over(fold, binders, conds, body) => over_named(*fold, binders, conds, body, depth),
    }
}

/// A reduction gets the same names as the sum over its domain.
fn over_named(fold: Fold, binders: &[(Var, Poly)], conds: &[Poly], body: &Sum, depth: Var) -> Factor {
    let term = Term { binders: binders.to_vec(), conds: conds.to_vec(), factors: vec![(Factor::Of(body.clone()), 1)] };
    let Term { binders, conds, mut factors } = term_named(&term, depth);
    match factors.pop() {
        Some((Factor::Of(body), 1)) => Factor::Over(fold, binders, conds, body),
        _ => Factor::Over(fold, binders, conds, body.clone()),
    }
}

/// How a variable is used: its range and its index expressions, siblings not distinguished.
type Signature = (Poly, Vec<(String, Poly)>);

fn signature(term: &Term, var: Var, extent: &Poly) -> Signature {
    let siblings = term.binders.iter().map(|(other, _)| (*other, Poly::var(if *other == var { THIS } else { SIBLING })));
    let blurred = Replacement::new(siblings.collect());
    let plain = Term { binders: Vec::new(), ..term.clone() }.replace(&blurred);
    let mut uses: Vec<(String, Poly)> = plain.conds.iter().filter(|c| c.has(THIS)).map(|c| ("where".to_string(), c.clone())).collect();
    for (factor, power) in &plain.factors {
        match factor {
            Factor::Read(source, index) => {
                let places = index.iter().enumerate().filter(|(_, p)| p.has(THIS));
                uses.extend(places.map(|(at, p)| (format!("{source}^{power}.{at}"), p.clone())));
            }
            // Positions inside functions depend on the order of terms there, which depends on
            // names.
            other if other.has(THIS) => uses.push((format!("{}^{power}", kind(other)), Poly::default())),
            _ => {}
        }
    }
    uses.sort();
    (extent.clone(), uses)
}

fn kind(factor: &Factor) -> String {
    match factor {
        Factor::Read(source, _) => source.to_string(),
        Factor::Whole(_) => "whole".into(),
        Factor::Apply(function, _) => format!("{function:?}"),
        Factor::Over(fold, ..) => format!("{fold:?}"),
        Factor::Of(_) => "of".into(),
    }
}

/// Orders that permute equal elements: `groups[i]` is the size of the run of equal elements that
/// contains `i`.
fn orders(groups: &[usize]) -> Vec<Vec<usize>> {
    let mut result = vec![Vec::new()];
    let mut at = 0;
    while at < groups.len() {
        let run = groups[at].min(groups.len() - at).max(1);
        let inside = permutations(run);
        if result.len().saturating_mul(inside.len()) > MOST_ORDERS {
            result.iter_mut().for_each(|order| order.extend(at..at + run));
        } else {
            result = result
                .iter()
                .flat_map(|order| inside.iter().map(move |p| order.iter().copied().chain(p.iter().map(|i| at + i)).collect()))
                .collect();
        }
        at += run;
    }
    result
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n > 6 {
        return vec![(0..n).collect()];
    }
    let mut result = vec![Vec::new()];
    for item in 0..n {
        result = result
            .iter()
            .flat_map(|p: &Vec<usize>| {
                (0..=p.len()).map(move |at| {
                    let mut longer = p.clone();
                    longer.insert(at, item);
                    longer
                })
            })
            .collect();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Source, fresh};
    use num_traits::One;
    use regraft_ir::Dim;

    fn read(name: &str, index: &[Var]) -> (Factor, i32) {
        (Factor::Read(Source::Input(name.into()), index.iter().map(|v| Poly::var(*v)).collect()), 1)
    }

    #[test]
    fn names_and_orders_of_summed_variables_do_not_count() {
        Fuel::fill(1 << 20);
        let size = |name: &str| Poly::size(&Dim::symbol(name));
        // sum of A[i, j] B[j, k] C[k, i], in two orders and with other names; all ranges alike
        let chain = |i: Var, j: Var, k: Var, order: [Var; 3]| {
            let mut factors = vec![read("A", &[i, j]), read("B", &[j, k]), read("C", &[k, i])];
            factors.sort();
            let binders = order.iter().map(|v| (*v, size("N"))).collect();
            Sum::new([(Term { binders, conds: Vec::new(), factors }, One::one())])
        };
        let [a, b, c, d, e, f] = std::array::from_fn(|_| fresh());
        assert_eq!(canonical(&chain(a, b, c, [a, b, c])), canonical(&chain(d, e, f, [f, d, e])));
        // A[i, j] A[j, k] A[k, i] and A[i, j] A[j, i] A[k, k] differ.
        let square = |pairs: [(Var, Var); 3]| {
            let mut factors: Vec<_> = pairs.iter().map(|(x, y)| read("A", &[*x, *y])).collect();
            merge_powers(&mut factors);
            Sum::new([(Term { binders: vec![(a, size("N")), (b, size("N")), (c, size("N"))], conds: Vec::new(), factors }, One::one())])
        };
        assert_eq!(canonical(&square([(a, b), (b, c), (c, a)])), canonical(&square([(b, a), (a, c), (c, b)])));
        assert_ne!(canonical(&square([(a, b), (b, c), (c, a)])), canonical(&square([(a, b), (b, a), (c, c)])));
    }
}
