//! Families: all sizes for which a rule behaves as on one instance.
//!
//! Sizes that an operator requires to be equal in an instance are equal in its family; a size
//! broadcast there is 1; kernels and numbers of groups are those of the instance. All else is free.
//! The family is found by typing the instance with a symbol for every size, and solving the
//! operators' constraints on the symbols.

use std::collections::BTreeMap;

use regraft_ir::dim::Factor;
use regraft_ir::{Dim, Graph, text};

use crate::guard::{Guard, Guards};
use crate::infer::{Typed, Typing};
use crate::instance::{Instance, type_all};
use crate::lower::lower;
use crate::operator::Operator;
use crate::plan::{Leaf, Plan};
use crate::size::{Obligation, Size, Sizes};

/// Maximum number of constraints to solve.
const MOST_ROUNDS: usize = 200;

/// Both sides of a rule over symbolic sizes.
#[derive(Debug)]
pub struct Family {
    /// Both graphs as text: equal for equal families.
    pub key: String,
    /// The left side.
    pub before: Graph,
    /// The right side.
    pub after: Graph,
}

/// The family of an instance, under guards that it satisfies.
///
/// # Errors
/// The operators' constraints on the sizes have no solution by sums of free sizes.
pub(crate) fn family(plan: &Plan, instance: &Instance, guards: Guards, names: &[String]) -> Result<Family, String> {
    let mut solver = Solver::new(plan, instance, names);
    for _ in 0..MOST_ROUNDS {
        let mut typing = Typing::symbolic(instance.reading);
        let slots = type_all(plan, &solver.leaves, &mut typing)?;
        let mut obligations = typing.obligations.take().unwrap_or_default();
        if guards.has(Guard::EqualOutputsPerGroup) {
            obligations.extend(equal_outputs_per_group(plan, &slots));
        }
        if plan.leaves.iter().any(|l| matches!(l, Leaf::Constant(_))) {
            obligations.extend(equal_results(plan, &slots));
        }
        // Equations first: they may settle what the others would narrow needlessly.
        if let Some(open) = obligations.iter().filter(|o| !holds(o)).min_by_key(|o| order(o)) {
            solver.solve(open)?;
            continue;
        }
        if solver.leaves.iter().flatten().any(|d| !d.s.at_least(1)) {
            return Err("sizes that are differences of others".into());
        }
        let [before, after] = [0, 1].map(|side| lower(plan, side, &slots, instance.reading, names));
        let (before, after) = (before?, after?);
        return Ok(Family { key: text::print(&before) + &text::print(&after), before, after });
    }
    Err("sizes that depend on each other in too many ways".into())
}

/// Groups and output channels of all convolutions.
fn groups<'a>(plan: &'a Plan, slots: &'a [Typed]) -> impl Iterator<Item = (i64, &'a Size)> {
    plan.steps.iter().filter(|s| matches!(s.operator, Operator::Conv { .. })).map(|step| {
        let [x, w] = [0, 1].map(|at| &slots[step.operands[at]].sizes);
        (x[1].n / w[1].n.max(1), &w[0])
    })
}

fn equal_outputs_per_group(plan: &Plan, slots: &[Typed]) -> Vec<Obligation> {
    let all: Vec<(i64, &Size)> = groups(plan, slots).collect();
    all.windows(2).map(|w| Obligation::Equal(w[0].1.times(w[1].0).s, w[1].1.times(w[0].0).s)).collect()
}

/// Sizes of constants must give the results of both sides the same shape.
fn equal_results(plan: &Plan, slots: &[Typed]) -> Vec<Obligation> {
    let pairs = plan.outputs[0].iter().zip(&plan.outputs[1]).map(|(a, b)| slots[*a].sizes.iter().zip(&slots[*b].sizes));
    pairs.flatten().map(|(a, b)| Obligation::Equal(a.s.clone(), b.s.clone())).collect()
}

fn order(obligation: &Obligation) -> usize {
    match obligation {
        // A rounded quotient is exact once the remainder is settled.
        Obligation::Equal(a, b)
            if [a, b].iter().any(|d| d.products().iter().any(|(_, f)| f.iter().any(|f| !matches!(f, Factor::Symbol(_))))) =>
        {
            4
        }
        Obligation::Equal(..) => 0,
        Obligation::Known(_) => 1,
        Obligation::AtLeast(..) => 2,
        Obligation::Remainder { .. } => 3,
    }
}

fn holds(obligation: &Obligation) -> bool {
    match obligation {
        Obligation::Equal(a, b) => a == b,
        Obligation::Known(d) => d.known().is_some(),
        Obligation::AtLeast(d, least) => d.at_least(*least),
        Obligation::Remainder { size, divisor, remainder } => {
            size.products().iter().all(|(n, factors)| n.rem_euclid(*divisor) == if factors.is_empty() { *remainder } else { 0 })
                && (*remainder == 0 || size.products().iter().any(|(_, factors)| factors.is_empty()))
        }
    }
}

struct Solver {
    leaves: Vec<Sizes>,
    /// The number that every symbol stands for in the instance.
    numbers: BTreeMap<String, i64>,
}

impl Solver {
    fn new(plan: &Plan, instance: &Instance, names: &[String]) -> Solver {
        let mut numbers = BTreeMap::new();
        let leaves = instance.shapes.iter().zip(&plan.leaves).enumerate().map(|(at, (shape, leaf))| {
            let name = match leaf {
                Leaf::Variable(variable) => names[*variable].clone(),
                Leaf::Constant(_) => format!("k{at}_"),
            };
            let sized = shape.iter().enumerate().map(|(axis, n)| {
                let symbol = format!("{name}{axis}");
                let s = Dim::symbol(&symbol);
                numbers.insert(symbol, *n);
                Size { n: *n, s }
            });
            sized.collect()
        });
        let leaves = leaves.collect();
        Solver { leaves, numbers }
    }

    /// Narrows the family so that the obligation holds.
    fn solve(&mut self, obligation: &Obligation) -> Result<(), String> {
        match obligation {
            Obligation::Equal(a, b) => self.equate(&(a.clone() - b.clone())),
            Obligation::Known(size) => {
                let mut symbols = Vec::new();
                size.symbols(&mut symbols);
                for symbol in symbols {
                    let number = self.number(&symbol)?;
                    self.replace(&symbol, &Dim::from(number));
                }
                Ok(())
            }
            Obligation::AtLeast(size, least) => {
                let symbol = size.as_symbol().ok_or("a lower bound of a sum")?.to_owned();
                self.rescale(&symbol, 1, least - 1)
            }
            Obligation::Remainder { size, divisor, .. } => {
                let uneven = size.products().into_iter().find_map(|(n, factors)| match factors.as_slice() {
                    [Factor::Symbol(name)] if n % divisor != 0 => Some(((*name).to_owned(), divisor / gcd(*divisor, n.abs()))),
                    _ => None,
                });
                let (symbol, step) = uneven.ok_or("a remainder that no size decides")?;
                let remainder = self.number(&symbol)?.rem_euclid(step);
                self.rescale(&symbol, step, if remainder == 0 { 0 } else { remainder - step })
            }
        }
    }

    fn number(&self, symbol: &str) -> Result<i64, String> {
        self.numbers.get(symbol).copied().ok_or_else(|| format!("the size {symbol} has no number"))
    }

    /// Replaces a symbol by `factor * new + offset`.
    fn rescale(&mut self, symbol: &str, factor: i64, offset: i64) -> Result<(), String> {
        let number = (self.number(symbol)? - offset) / factor;
        let fresh = format!("{symbol}'");
        self.replace(symbol, &(Dim::symbol(&fresh) * Dim::from(factor) + Dim::from(offset)));
        self.numbers.insert(fresh, number);
        Ok(())
    }

    /// Makes a sum zero by solving for one of its symbols.
    fn equate(&mut self, sum: &Dim) -> Result<(), String> {
        let products = sum.products();
        let common = products.iter().fold(0, |g, (n, _)| gcd(g, n.abs()));
        let solutions = products.iter().enumerate().filter_map(|(at, (n, factors))| {
            let [Factor::Symbol(symbol)] = factors.as_slice() else { return None };
            let elsewhere = |other: &[Factor<'_>]| other.iter().any(|f| !matches!(f, Factor::Symbol(name) if name != symbol));
            let others = || products.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, p)| p);
            if n.abs() != common || others().any(|(_, factors)| elsewhere(factors)) {
                return None;
            }
            let rest = others().fold(Dim::from(0), |sum, (m, factors)| {
                let product = factors.iter().fold(Dim::from(-m / n), |p, f| match f {
                    Factor::Symbol(name) => p * Dim::symbol(name),
                    _ => p,
                });
                sum + product
            });
            Some(((*symbol).to_owned(), rest))
        });
        let mut solutions: Vec<(String, Dim)> = solutions.collect();
        // A size that is a sum of others is valid for all values; a difference may still cancel
        // later.
        solutions.sort_by_key(|(_, rest)| !rest.at_least(1));
        if let Some((symbol, rest)) = solutions.into_iter().next() {
            self.replace(&symbol, &rest);
            return Ok(());
        }
        // `3 a = 4 b`: each becomes a multiple of a common unit.
        match products.as_slice() {
            [(n, first), (m, second)] if n.signum() != m.signum() => {
                let ([Factor::Symbol(symbol)], [Factor::Symbol(_)]) = (first.as_slice(), second.as_slice()) else {
                    return Err(format!("the sizes of {sum} = 0"));
                };
                let symbol = (*symbol).to_owned();
                self.rescale(&symbol, m.abs() / gcd(n.abs(), m.abs()), 0)
            }
            _ => Err(format!("the sizes of {sum} = 0")),
        }
    }

    fn replace(&mut self, symbol: &str, by: &Dim) {
        for size in self.leaves.iter_mut().flatten() {
            let sum = size.s.products().into_iter().fold(Dim::from(0), |sum, (n, factors)| {
                let product = factors.iter().fold(Dim::from(n), |p, factor| match factor {
                    Factor::Symbol(name) if *name == symbol => p * by.clone(),
                    Factor::Symbol(name) => p * Dim::symbol(name),
                    // Sizes of leaves are sums of products of symbols, by construction.
                    Factor::FloorDiv(a, b) => p * a.floor_div(b),
                    Factor::Broadcast(a, b) => p * a.broadcast(b).unwrap_or_else(|| Dim::from(1)),
                });
                sum + product
            });
            size.s = sum;
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::names;
    use crate::format::Format;
    use crate::reading::Reading;

    /// The types of the inputs of the family of `shapes`, and of the first result on the right.
    fn inputs(rule: &str, shapes: &[&[i64]], guards: Guards) -> Result<String, String> {
        let rules = Format::of(rule.as_bytes()).read(rule.as_bytes()).map_err(|e| e.to_string())?;
        let plan = Plan::new(&rules[0]);
        let shapes = shapes.iter().map(|s| s.to_vec()).collect();
        let instance = Instance { shapes, reading: Reading::ALL[0], guards, groups: Vec::new() };
        let family = family(&plan, &instance, guards, &names(&rules[0]))?;
        let graph = &family.after;
        let types = graph.inputs().iter().map(|id| id.out()).chain(graph.outputs().iter().map(|o| o.value));
        Ok(types.filter_map(|v| Some(format!("{:?}", graph.ty(v)?.shape.as_slice()))).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_family_frees_every_size_that_operators_do_not_fix() {
        let none = Guards::NONE;
        let per_group = none.with(Guard::EqualOutputsPerGroup);
        let cases: [(&str, &[&[i64]], Guards, &str); 11] = [
            ("matmul(matmul(a,b),c)==matmul(a,matmul(b,c))", &[&[2, 3], &[3, 4], &[4, 1]], none, "[a0, b0] [b0, c0] [c0, c1] [a0, c1]"),
            // A broadcast size is 1; the others stay equal.
            ("ewadd(a,b)==ewadd(b,a)", &[&[2, 1], &[2, 3]], none, "[b0, 1] [b0, b1] [b0, b1]"),
            (
                "conv2d(1,1,0,0,a,b)==conv2d(1,1,0,0,a,b)",
                &[&[1, 4, 5, 5], &[6, 2, 3, 3]],
                none,
                "[a0, 2*b1, a2, a3] [2*b0', b1, 3, 3] [a0, 2*b0', a2, a3]",
            ),
            // Windows without padding fit; with strides, the remainder is kept.
            (
                "conv2d(1,1,1,0,a,b)==conv2d(1,1,1,0,a,b)",
                &[&[1, 1, 4, 4], &[1, 1, 3, 3]],
                none,
                "[a0, b1, a2' + 2, a3' + 2] [b0, b1, 3, 3] [a0, b0, a2', a3']",
            ),
            (
                "conv2d(2,2,0,0,a,b)==conv2d(2,2,0,0,a,b)",
                &[&[1, 1, 4, 5], &[1, 1, 3, 3]],
                none,
                "[a0, b1, 2*a2', 2*a3' - 1] [b0, b1, 3, 3] [a0, b0, a2', a3']",
            ),
            (
                "concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(0,b,d))",
                &[&[1, 2, 4, 4], &[2, 2, 1, 1], &[1, 4, 4, 4], &[4, 2, 1, 1]],
                per_group,
                "[c0, d1, c2, c3] [b0, d1, 1, 1] [c0, 2*d1, c2, c3] [2*b0, d1, 1, 1] [c0, 3*b0, c2, c3]",
            ),
            (
                "concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))",
                &[&[1, 4, 4, 4], &[4, 1, 1, 1], &[1, 3, 4, 4], &[3, 1, 1, 1]],
                per_group,
                "[c0, 4*b1, c2, c3] [4*b0', b1, 1, 1] [c0, 3*d1, c2, c3] [3*b0', d1, 1, 1] [c0, 7*b0', c2, c3]",
            ),
            (
                "concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(0,b,d))",
                &[&[1, 4, 4, 4], &[4, 1, 1, 1], &[1, 2, 4, 4], &[2, 1, 1, 1]],
                per_group,
                "[c0, 4*d1, c2, c3] [4*d0', d1, 1, 1] [c0, 2*d1, c2, c3] [2*d0', d1, 1, 1] [c0, 6*d0', c2, c3]",
            ),
            (
                "concat(0,a,conv2d(1,3,0,0,b,c))==concat(0,a,conv2d(1,3,0,0,b,c))",
                &[&[1, 1, 4, 4], &[1, 1, 1, 1], &[1, 1, 4, 2]],
                none,
                "[b0, c1, b2, 3*b3' - 2] [c0, c1, 1, 1] [a0, c0, b2, b3'] [b0 + a0, c0, b2, b3']",
            ),
            // Differences of sizes cancel.
            (
                "ewadd(concat(1,a,b),concat(1,c,d))==ewadd(concat(1,c,b),concat(1,a,d))",
                &[&[1, 2], &[1, 3], &[1, 2], &[1, 3]],
                none,
                "[d0, c1] [d0, d1] [d0, c1] [d0, d1] [d0, d1 + c1]",
            ),
            ("matmul(a,Imatmul)==a", &[&[2, 3], &[3, 3]], none, "[a0, 3] [a0, 3]"),
        ];
        for (rule, shapes, guards, expected) in cases {
            assert_eq!(inputs(rule, shapes, guards).as_deref(), Ok(expected), "{rule}");
        }
    }

    #[test]
    fn sizes_that_are_differences_have_no_family() {
        // A window without padding over concatenated parts: how they share its size is open.
        let rule = "conv2d(1,1,1,0,concat(2,a,b),c)==conv2d(1,1,1,0,concat(2,a,b),c)";
        assert!(inputs(rule, &[&[1, 1, 1, 3], &[1, 1, 2, 3], &[1, 1, 3, 3]], Guards::NONE).is_err());
    }
}
