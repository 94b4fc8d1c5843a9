//! Exact extraction: branch and reduce.
//!
//! A problem is reduced ([`reduce`]) and falls into parts. For each part, dual ascent ([`Ascent`])
//! gives a lower bound and the sets of nodes from which good solutions are made; what cannot be on
//! a better solution is discarded, and what is left is reduced again. When that ends, the problem
//! is split at a class that every solution contains.

mod ascent;
#[cfg(test)]
mod tests;

use self::ascent::Ascent;
use crate::greedy_dag::greedy_dag;
use crate::local_search::improved;
use crate::method::{Answer, Extractor};
use crate::problem::Problem;
use crate::reduce::{Part, Reduced, reduce};
use crate::tree::tree;
use regraft_ir::Budget;

/// Work before local search is tried, in visits of a problem as large as the whole.
const FIRST_VISITS: u64 = 3;
/// A part is reduced again if one node in so many can be discarded.
const SHRINKS: usize = 20;

/// Chooses the cheapest nodes, and shows how far any choice may be below.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

impl Extractor for Exact {
    fn name(&self) -> &'static str {
        "ilp"
    }

    fn solve(&self, problem: &Problem, budget: &mut dyn Budget) -> Option<Answer> {
        let start = greedy_dag(problem, |_| true)?;
        let mut search = Search::new(budget, FIRST_VISITS * problem.nodes() as u64);
        let found = search.solve(problem, |_| true, problem.total(&start));
        let stopped = search.stopped;
        let (mut nodes, mut bound) = (found.nodes.unwrap_or(start), found.bound);
        if stopped && !budget.exhausted() {
            nodes = improved(problem, nodes, budget);
            let found = Search::new(budget, u64::MAX).solve(problem, |_| true, problem.total(&nodes));
            bound = bound.max(found.bound);
            nodes = found.nodes.unwrap_or(nodes);
        }
        Some(Answer { bound: Some(bound.min(problem.total(&nodes))), nodes })
    }
}

/// What is known of the solutions of a problem that cost less than a limit.
pub(crate) struct Found {
    /// One of them; the cheapest, unless the search was stopped.
    pub nodes: Option<Vec<u32>>,
    /// What all of them cost at least; the limit or more, if there are none.
    pub bound: u64,
}

/// A part with its bounds.
pub(crate) struct Open {
    pub part: Part,
    /// Cheapest known solution.
    pub best: Vec<u32>,
    pub cost: u64,
    bound: u64,
    with_each: Vec<u64>,
}

/// A search with limits. Once it has reached one, it ends with what it has.
pub(crate) struct Search<'a> {
    budget: &'a mut dyn Budget,
    /// Nodes of problems that may still be visited.
    work: u64,
    stopped: bool,
}

impl Search<'_> {
    /// A search that visits problems of so many nodes together at most.
    pub fn new(budget: &mut dyn Budget, work: u64) -> Search<'_> {
        Search { budget, work, stopped: false }
    }

    /// Looks for the cheapest solution below `limit` that uses only allowed nodes.
    pub fn solve(&mut self, problem: &Problem, allowed: impl Fn(u32) -> bool, limit: u64) -> Found {
        let Some(reduced) = reduce(problem, allowed, self.budget) else { return Found { nodes: None, bound: u64::MAX } };
        let Reduced { base, forced, parts } = reduced;
        let nodes: usize = parts.iter().map(|part| part.problem.nodes()).sum();
        self.work = self.work.saturating_sub(1 + nodes as u64);
        if base >= limit {
            return Found { nodes: None, bound: base };
        }
        let mut open: Vec<Open> = parts.into_iter().filter_map(|part| Open::new(part, self.budget)).collect();
        let mut bound = base + open.iter().map(|part| part.bound).sum::<u64>();
        for part in &mut open {
            if bound >= limit {
                return Found { nodes: None, bound };
            }
            // What this part may cost at most, if the others cost as little as they can.
            let most = limit - (bound - part.bound);
            let before = part.bound;
            self.close(part, most);
            bound += part.bound - before;
        }
        let cost = base + open.iter().map(|part| part.cost).sum::<u64>();
        let nodes = if cost < limit {
            let mut chosen = forced;
            open.iter().for_each(|part| chosen.extend(part.part.meaning(&part.best)));
            problem.within(&chosen)
        } else {
            None
        };
        Found { nodes, bound }
    }

    /// Finds the cheapest solution of a part, if it costs less than `most`.
    fn close(&mut self, open: &mut Open, most: u64) {
        let limit = open.cost.min(most);
        if open.bound >= limit || self.stop() {
            return;
        }
        let problem = &open.part.problem;
        let useful = |node: u32| open.may_use(node, limit);
        if open.may_shrink(limit) {
            let found = self.solve(problem, useful, limit);
            open.take(found, limit);
            return;
        }
        // Split by the nodes of a class that every solution contains.
        let worst = |&root: &u32| {
            let mut bounds: Vec<u64> =
                problem.members.get(root).iter().map(|&node| open.with_each[node as usize]).filter(|&b| b < limit).collect();
            bounds.sort_unstable();
            (bounds.get(1).copied().unwrap_or(limit), std::cmp::Reverse(bounds.len()), std::cmp::Reverse(root))
        };
        let Some(&class) = problem.roots.iter().max_by_key(|root| worst(root)) else { return };
        let mut members: Vec<u32> = problem.members.get(class).iter().copied().filter(|&node| useful(node)).collect();
        members.sort_by_key(|&node| open.with_each[node as usize]);
        let (mut best, mut bound): (Option<Vec<u32>>, u64) = (None, u64::MAX);
        let mut below = limit;
        for &member in &members {
            if self.stop() {
                bound = bound.min(open.with_each[member as usize]);
                continue;
            }
            let found = self.solve(
                problem,
                |node| open.with_each[node as usize] < below && (problem.class_of(node) != class || node == member),
                below,
            );
            bound = bound.min(found.bound.max(open.with_each[member as usize]));
            if let Some(nodes) = found.nodes {
                below = problem.total(&nodes);
                best = Some(nodes);
            }
        }
        open.take(Found { nodes: best, bound }, limit);
    }

    fn stop(&mut self) -> bool {
        self.stopped = self.stopped || self.work == 0 || self.budget.exhausted();
        self.stopped
    }
}

impl Open {
    /// A part with a first solution and a first bound.
    pub fn new(part: Part, budget: &mut dyn Budget) -> Option<Open> {
        let problem = &part.problem;
        // Sets of nodes take their time in deep problems; trees do not.
        let mut best = if budget.exhausted() { tree(problem)? } else { greedy_dag(problem, |_| true)? };
        let mut cost = problem.total(&best);
        let ascent = Ascent::all(problem, budget, |ascent| {
            let near = greedy_dag(problem, |node| ascent.reduced[node as usize] == 0);
            if let Some(nodes) = near.filter(|nodes| problem.total(nodes) < cost) {
                cost = problem.total(&nodes);
                best = nodes;
            }
        });
        // All costs are multiples of a step, and so is what a solution costs.
        let step = problem.cost.iter().copied().fold(0, gcd).max(1);
        let up = |bound: u64| bound.div_ceil(step).saturating_mul(step);
        let with_each = ascent.with_each(problem).into_iter().map(up).collect();
        Some(Open { bound: up(ascent.bound), best, cost, with_each, part })
    }

    /// Whether a node may be on a solution that costs less than `limit`.
    pub fn may_use(&self, node: u32, limit: u64) -> bool {
        self.with_each[node as usize] < limit
    }

    /// Whether so many nodes are on no solution below `limit` that the part should be reduced
    /// again.
    pub fn may_shrink(&self, limit: u64) -> bool {
        self.with_each.iter().filter(|&&bound| bound >= limit).count() * SHRINKS > self.with_each.len()
    }

    /// Enters a solution, if there is one and it is cheaper.
    pub fn improve(&mut self, nodes: Option<Vec<u32>>) {
        if let Some(nodes) = nodes {
            let cost = self.part.problem.total(&nodes);
            if cost < self.cost {
                (self.best, self.cost) = (nodes, cost);
            }
        }
    }

    /// Enters what a search for solutions below `limit` found.
    fn take(&mut self, found: Found, limit: u64) {
        self.improve(found.nodes);
        // Nothing was sought beyond the limit.
        self.bound = self.bound.max(found.bound.min(limit)).min(self.cost);
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
