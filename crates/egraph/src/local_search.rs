//! Local search for solutions of e-graphs that are too large to be solved as a whole.
//!
//! What is chosen stays, but around one class everything is open again: such a neighbourhood is a
//! small problem, which the exact search solves, or improves as far as a limit allows. (Shaw,
//! "Using constraint programming and local search methods to solve vehicle routing problems", CP
//! 1998.)

use crate::exact::{Open, Search};
use crate::problem::Problem;
use crate::reduce::{Reduced, reduce};
use regraft_ir::Budget;

/// Nodes of a neighbourhood beyond which it is not extended.
const NEIGHBOURHOOD: usize = 600;
/// Nodes of the problems visited for one neighbourhood, together.
const WORK: u64 = 12_000;

/// The solution, or a cheaper one that is not improved by opening any neighbourhood.
pub(crate) fn improved(problem: &Problem, start: Vec<u32>, budget: &mut dyn Budget) -> Vec<u32> {
    match descended(problem, &|_| true, budget) {
        Some(found) if problem.total(&found) < problem.total(&start) => found,
        _ => start,
    }
}

/// A solution that uses only allowed nodes, improved.
fn descended(problem: &Problem, allowed: &dyn Fn(u32) -> bool, budget: &mut dyn Budget) -> Option<Vec<u32>> {
    let Reduced { forced: mut chosen, parts, .. } = reduce(problem, allowed, budget)?;
    for part in parts {
        let mut open = Open::new(part, budget)?;
        if open.may_shrink(open.cost) && !budget.exhausted() {
            let smaller = descended(&open.part.problem, &|node| open.may_use(node, open.cost), budget);
            open.improve(smaller);
        } else {
            descend(&mut open, budget);
        }
        chosen.extend(open.part.meaning(&open.best));
    }
    problem.within(&chosen)
}

/// Opens one neighbourhood after the other while any of them has a cheaper solution.
fn descend(open: &mut Open, budget: &mut dyn Budget) {
    // Classes around which nothing was found since the solution was another.
    let mut settled = vec![false; open.part.problem.classes()];
    loop {
        let problem = &open.part.problem;
        let center = open.best.iter().map(|&node| problem.class_of(node)).find(|&class| !settled[class as usize]);
        let Some(center) = center else { return };
        if budget.exhausted() {
            return;
        }
        let (near, core) = neighbourhood(problem, center);
        let mut kept = vec![false; problem.nodes()];
        open.best.iter().for_each(|&node| kept[node as usize] = true);
        let allowed = |node: u32| kept[node as usize] || near[problem.class_of(node) as usize];
        let found = Search::new(budget, WORK).solve(problem, allowed, open.cost);
        if found.nodes.is_none() {
            core.iter().for_each(|&class| settled[class as usize] = true);
        } else {
            near.iter().zip(&mut settled).filter(|(near, _)| **near).for_each(|(_, settled)| *settled = false);
        }
        open.improve(found.nodes);
    }
}

/// Which classes are around a class, and those of them that are close to it: by the number of steps
/// to children and parents.
fn neighbourhood(problem: &Problem, center: u32) -> (Vec<bool>, Vec<u32>) {
    let mut near = vec![false; problem.classes()];
    near[center as usize] = true;
    let mut reached = vec![center];
    let (mut next, mut nodes) = (0, 0);
    while next < reached.len() && nodes < NEIGHBOURHOOD {
        let class = reached[next];
        next += 1;
        nodes += problem.members.get(class).len();
        let below = problem.members.get(class).iter().flat_map(|&node| problem.children.get(node)).copied();
        let above = problem.parents.get(class).iter().map(|&node| problem.class_of(node));
        for other in below.chain(above) {
            if !std::mem::replace(&mut near[other as usize], true) {
                reached.push(other);
            }
        }
    }
    let whole = next == reached.len();
    reached.iter().skip(next).for_each(|&class| near[class as usize] = false);
    reached.truncate(if whole { next } else { next.div_ceil(4) });
    (near, reached)
}
