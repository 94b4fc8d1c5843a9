//! Families: all sizes for which a rule goes the same way as for one instance.
//!
//! Two sizes that are equal in an instance because an operator needs it are equal in its family; a size that is broadcast there is 1; kernels and numbers of
//! groups are those of the instance. All else is free. The family is found by typing the instance with a symbol beside every size, and by solving what
//! the operators then demand of the symbols.

use std::collections::BTreeMap;

use regraft_ir::dim::Factor;
use regraft_ir::{Dim, Graph};

use crate::guard::{Guard, Guards};
use crate::infer::{Typed, Typing};
use crate::instance::{Instance, type_all};
use crate::lower::lower;
use crate::operator::Operator;
use crate::plan::{Leaf, Plan};
use crate::size::{Obligation, Size, Sizes};

/// Demands that are solved at most.
const MOST_ROUNDS: usize = 200;

/// Both sides of a rule over symbolic sizes.
#[derive(Debug)]
pub struct Family {
    /// The sizes of all leaves, and what is fixed: equal for equal families.
    pub key: String,
    /// The left side.
    pub before: Graph,
    /// The right side.
    pub after: Graph,
}

/// The family of an instance, under guards that it fulfils.
///
/// # Errors
/// What the operators demand of the sizes has no solution by sums of free sizes.
pub(crate) fn family(plan: &Plan, instance: &Instance, guards: Guards, names: &[String]) -> Result<Family, String> {
    let mut solver = Solver::new(plan, instance, names);
    for _ in 0..MOST_ROUNDS {
        let mut typing = Typing::symbolic(instance.reading);
        let slots = type_all(plan, &solver.leaves, &mut typing)?;
        let mut obligations = typing.obligations.take().unwrap_or_default();
        if guards.has(Guard::EqualOutputsPerGroup) {
            obligations.extend(equal_outputs_per_group(plan, &slots));
        }
        if let Some(open) = obligations.iter().find(|o| !holds(o)) {
            solver.solve(open)?;
            continue;
        }
        if solver.leaves.iter().flatten().any(|d| !d.s.at_least(1)) {
            return Err("sizes that are differences of others".into());
        }
        let [before, after] = [0, 1].map(|side| lower(plan, side, &slots, instance.reading, names));
        return Ok(Family { key: key(plan, &slots, &solver.leaves, instance), before: before?, after: after? });
    }
    Err("sizes that depend on each other in too many ways".into())
}

fn key(plan: &Plan, slots: &[Typed], leaves: &[Sizes], instance: &Instance) -> String {
    let shapes: Vec<String> = leaves.iter().map(|sizes| format!("{:?}", sizes.iter().map(|d| &d.s).collect::<Vec<_>>())).collect();
    format!("{} {:?} {:?}", shapes.join(" "), groups(plan, slots).map(|(group, _)| group).collect::<Vec<_>>(), instance.reading)
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
                    [Factor::Symbol(name)] if n % divisor != 0 => Some((*name).to_owned()),
                    _ => None,
                });
                let symbol = uneven.ok_or("a remainder that no size decides")?;
                let remainder = self.number(&symbol)?.rem_euclid(*divisor);
                self.rescale(&symbol, *divisor, if remainder == 0 { 0 } else { remainder - divisor })
            }
        }
    }

    fn number(&self, symbol: &str) -> Result<i64, String> {
        self.numbers.get(symbol).copied().ok_or_else(|| format!("the size {symbol} has no number"))
    }

    /// Puts `factor * new + offset` in a symbol's place.
    fn rescale(&mut self, symbol: &str, factor: i64, offset: i64) -> Result<(), String> {
        let number = (self.number(symbol)? - offset) / factor;
        let fresh = format!("{symbol}'");
        self.replace(symbol, &(Dim::symbol(&fresh) * Dim::from(factor) + Dim::from(offset)));
        self.numbers.insert(fresh, number);
        Ok(())
    }

    /// Makes a sum zero: one of its symbols becomes what the others leave for it.
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
        // A size that is a sum of others is one for all values; a difference may still cancel later.
        solutions.sort_by_key(|(_, rest)| !rest.at_least(1));
        let (symbol, rest) = solutions.into_iter().next().ok_or_else(|| format!("the sizes of {sum} = 0"))?;
        self.replace(&symbol, &rest);
        Ok(())
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
