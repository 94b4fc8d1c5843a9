//! Extraction by sets of nodes.

use std::collections::VecDeque;

use crate::local_search::improved;
use crate::method::{Answer, Extractor};
use crate::problem::{NONE, Problem};
use regraft_ir::Budget;

/// Keeps, for each class, the cheapest set of nodes found that derives it, and joins the sets of a
/// node's children: what two children share is counted once. Not optimal, as each class goes by its
/// own cost and not by what its readers share.
///
/// Of two sets that derive a class by different nodes, the first decides in the union; so every set
/// stays closed and without a cycle, and the set of the roots is a solution as it stands. Local
/// search then improves it.
#[derive(Clone, Copy, Debug)]
pub struct GreedyDag {
    /// Whether to improve the solution by local search.
    pub local_search: bool,
}

impl Default for GreedyDag {
    fn default() -> GreedyDag {
        GreedyDag { local_search: true }
    }
}

impl Extractor for GreedyDag {
    fn name(&self) -> &'static str {
        "greedy-dag"
    }

    fn solve(&self, problem: &Problem, budget: &mut dyn Budget) -> Option<Answer> {
        let start = greedy_dag(problem, |_| true)?;
        Some(Answer::unbounded(if self.local_search { improved(problem, start, budget) } else { start }))
    }
}

/// A set of nodes that derives a class.
#[derive(Clone, Debug)]
struct Chosen {
    cost: u64,
    nodes: Vec<u32>,
}

/// Unions of sets, each class once.
struct Union<'a> {
    problem: &'a Problem,
    /// The union in which a class was met last.
    met: Vec<u32>,
    unions: u32,
}

impl Union<'_> {
    /// The union of the sets of `classes`, the largest first; `None` if it meets `without` or costs
    /// `limit` or more.
    fn of(&mut self, sets: &[Option<Chosen>], classes: &[u32], without: u32, limit: u64) -> Option<Chosen> {
        self.unions += 1;
        let mut order: Vec<&Chosen> = classes.iter().map(|&class| sets[class as usize].as_ref()).collect::<Option<_>>()?;
        order.sort_by_key(|set| std::cmp::Reverse(set.nodes.len()));
        let mut union = Chosen { cost: 0, nodes: Vec::new() };
        for set in order {
            for &node in &set.nodes {
                let class = self.problem.class_of(node);
                if self.met[class as usize] == self.unions {
                    continue;
                }
                self.met[class as usize] = self.unions;
                union.cost = union.cost.saturating_add(self.problem.cost_of(node));
                if class == without || union.cost >= limit {
                    return None;
                }
                union.nodes.push(node);
            }
        }
        Some(union)
    }
}

/// The solution found with the allowed nodes, if any.
pub(crate) fn greedy_dag(problem: &Problem, allowed: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
    let mut union = Union { problem, met: vec![0; problem.classes()], unions: 0 };
    let mut sets: Vec<Option<Chosen>> = vec![None; problem.classes()];
    let mut missing: Vec<u32> = (0..problem.nodes() as u32).map(|node| problem.children.get(node).len() as u32).collect();
    let mut queued: Vec<bool> = (0..problem.nodes()).map(|node| missing[node] == 0 && allowed(node as u32)).collect();
    let mut open: VecDeque<u32> = (0..problem.nodes() as u32).filter(|&node| queued[node as usize]).collect();
    while let Some(node) = open.pop_front() {
        queued[node as usize] = false;
        let (class, cost) = (problem.class_of(node), problem.cost_of(node));
        let known = sets[class as usize].as_ref().map(|set| set.cost);
        let limit = known.unwrap_or(u64::MAX).saturating_sub(cost);
        let Some(mut set) = union.of(&sets, problem.children.get(node), class, limit) else { continue };
        set.cost = set.cost.saturating_add(cost);
        if known.is_some_and(|known| set.cost >= known) {
            continue;
        }
        set.nodes.push(node);
        sets[class as usize] = Some(set);
        for &parent in problem.parents.get(class) {
            if known.is_none() {
                missing[parent as usize] -= 1;
            }
            if missing[parent as usize] == 0 && allowed(parent) && !queued[parent as usize] {
                queued[parent as usize] = true;
                open.push_back(parent);
            }
        }
    }
    union.of(&sets, &problem.roots, NONE, u64::MAX).map(|set| set.nodes)
}
