//! All families of a rule, where they can be enumerated: one instance for every way to broadcast
//! its operands.
//!
//! Without convolutions, pools and constants, sizes only decide which operand of an elementwise
//! operator is broadcast along which axis. Every possible way occurs with small sizes: free sizes
//! may be 1, or 2 where they must not be, and the others are sums of them.

use std::collections::BTreeMap;

use crate::guard::Guards;
use crate::infer::Typing;
use crate::instance::{Instance, take};
use crate::kind::Kind;
use crate::operator::Operator;
use crate::plan::{Leaf, Plan};
use crate::reading::Reading;
use crate::size::Size;

/// Maximum number of sizes of single leaves to try.
const MOST_CHECKS: usize = 20_000;
/// Maximum number of ways to distinguish.
const MOST_WAYS: usize = 256;

/// What every elementwise operator does along every axis.
type Way = Vec<u8>;

/// One instance for every way of broadcasting that satisfies `guards`; `None` if sizes decide more
/// than that, or if there are too many.
pub(crate) fn census(plan: &Plan, kinds: &[Kind], guards: Guards) -> Option<Vec<Instance>> {
    let free = |operator: &Operator| {
        use Operator::{Binary, Concat, MatMul, Scale, Split, Transpose, Unary};
        matches!(operator, Binary(_) | Concat { .. } | MatMul { .. } | Scale | Split { .. } | Transpose { .. } | Unary(_))
    };
    let variables = plan.leaves.iter().all(|l| matches!(l, Leaf::Variable(_)));
    if !variables || !plan.steps.iter().all(|s| free(&s.operator)) {
        return None;
    }
    let joins = |side: usize| {
        let needed = plan.needed(side);
        let steps = plan.steps.iter().zip(needed).filter(|(s, needed)| *needed && matches!(s.operator, Operator::Concat { .. }));
        steps.map(|(s, _)| s.operands.len() - 1).sum::<usize>()
    };
    let largest = 2 + i64::try_from(joins(0).max(joins(1))).ok()?;
    let ranks: Vec<usize> = kinds.iter().map(|k| k.rank()).collect();
    let rank = ranks.iter().copied().max()?;
    let moves = |operator: &Operator| matches!(operator, Operator::MatMul { .. } | Operator::Transpose { .. });
    let alike = ranks.iter().all(|r| *r == rank || *r == 0) && !plan.steps.iter().any(|s| moves(&s.operator));
    let mut count = Census { plan, guards, checks: 0, found: BTreeMap::new(), chosen: Vec::new() };
    if !alike {
        let shapes: Vec<Vec<Vec<i64>>> = ranks.iter().map(|rank| all(*rank, largest)).collect();
        count.leaf(&shapes)?;
        return Some(count.found.into_values().collect());
    }
    // No operator moves an axis, so the axes are independent.
    let mut product: Vec<Vec<Vec<i64>>> = vec![ranks.iter().map(|rank| vec![1; *rank]).collect()];
    for axis in 0..rank {
        let along = |n: i64, rank: usize| (0..rank).map(|at| if at == axis { n } else { 1 }).collect::<Vec<i64>>();
        let shapes: Vec<Vec<Vec<i64>>> =
            ranks.iter().map(|rank| if *rank == 0 { vec![Vec::new()] } else { (1..=largest).map(|n| along(n, *rank)).collect() }).collect();
        count.found.clear();
        count.leaf(&shapes)?;
        product = product
            .iter()
            .flat_map(|shapes| {
                count.found.values().map(|way| {
                    let mut shapes = shapes.clone();
                    shapes.iter_mut().zip(&way.shapes).filter(|(s, _)| !s.is_empty()).for_each(|(s, way)| s[axis] = way[axis]);
                    shapes
                })
            })
            .collect();
        if product.len() > MOST_WAYS {
            return None;
        }
    }
    Some(product.into_iter().map(|shapes| Instance { shapes, reading: Reading::ALL[0], guards, groups: Vec::new() }).collect())
}

/// All shapes of this rank with sizes up to `largest`.
fn all(rank: usize, largest: i64) -> Vec<Vec<i64>> {
    (0..rank).fold(vec![Vec::new()], |shapes, _| {
        shapes.iter().flat_map(|shape| (1..=largest).map(|n| [shape.as_slice(), &[n]].concat())).collect()
    })
}

struct Census<'a> {
    plan: &'a Plan,
    guards: Guards,
    checks: usize,
    found: BTreeMap<Way, Instance>,
    chosen: Vec<Vec<i64>>,
}

impl Census<'_> {
    /// Tries all shapes of the next leaf; `None` if there are too many.
    fn leaf(&mut self, shapes: &[Vec<Vec<i64>>]) -> Option<()> {
        let leaf = self.chosen.len();
        for shape in &shapes[leaf] {
            self.checks += 1;
            if self.checks > MOST_CHECKS || self.found.len() > MOST_WAYS {
                return None;
            }
            self.chosen.push(shape.clone());
            if let Some((way, guards)) = self.way() {
                if leaf + 1 < shapes.len() {
                    self.leaf(shapes)?;
                } else {
                    let instance = Instance { shapes: self.chosen.clone(), reading: Reading::ALL[0], guards, groups: Vec::new() };
                    self.found.entry(way).or_insert(instance);
                }
            }
            self.chosen.pop();
        }
        Some(())
    }

    /// The way of the leaves chosen so far, if they fit.
    fn way(&self) -> Option<(Way, Guards)> {
        let mut typing = Typing::concrete(Reading::ALL[0]);
        let mut slots = vec![None; self.plan.slots];
        for (leaf, shape) in self.chosen.iter().enumerate() {
            let sizes = shape.iter().map(|n| Size::known(*n)).collect();
            take(self.plan, leaf, sizes, &mut slots, &mut typing).ok()?;
        }
        let guards = typing.facts.guards(typing.reading);
        guards.include(self.guards).then_some((typing.facts.ways, guards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::guard::Guard;
    use crate::kind::typings;

    /// The number of ways for each typing of a rule.
    fn ways(rule: &str, guards: Guards) -> Vec<Option<usize>> {
        let rules = Format::Equations.read(rule.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let plan = Plan::new(&rules[0]);
        typings(&plan).iter().map(|kinds| census(&plan, kinds, guards).map(|found| found.len())).collect()
    }

    #[test]
    fn every_way_of_broadcasting_is_found_once() {
        let same = Guards::NONE.with(Guard::SameShape);
        // Along each axis, both are equal or one of them is 1.
        assert_eq!(ways("ewadd(transpose(a),b)==ewadd(b,transpose(a))", Guards::NONE)[0], Some(9));
        assert_eq!(ways("ewadd(transpose(a),b)==ewadd(b,transpose(a))", same)[0], Some(1));
        assert_eq!(ways("matmul(a,matmul(b,c))==matmul(matmul(a,b),c)", Guards::NONE), [Some(1), Some(1)]);
        // The rows may be broadcast; the columns must match the shared factor.
        assert_eq!(ways("ewadd(matmul(a,b),matmul(c,b))==matmul(ewadd(a,c),b)", Guards::NONE)[0], Some(3));
        // Tensors concatenated crosswise have the same shape except along the axis.
        let crossed = "ewadd(concat(1,a,b),concat(1,c,d))==ewadd(concat(1,c,b),concat(1,a,d))";
        assert!(ways(crossed, Guards::NONE).iter().all(|n| *n == Some(1)), "{:?}", ways(crossed, Guards::NONE));
        assert_eq!(ways("conv2d(1,1,0,0,a,b)==conv2d(1,1,0,0,a,b)", Guards::NONE), [None]);
    }
}
