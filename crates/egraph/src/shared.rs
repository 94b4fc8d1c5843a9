//! Extraction by costs that know of sharing, approximately.

use std::rc::Rc;

use crate::method::{Answer, Extractor};
use crate::problem::{NONE, Problem};
use regraft_ir::Budget;

/// The cost function of "Accelerating Tensor Graph Superoptimization with Equality Saturation and
/// Monte Carlo Tree Search" (PACT 2024), Algorithm 2, in the fix-point of egg's extractor.
///
/// Each class keeps a history: the classes below it, with what each added to its cost. A child that
/// is in the history of the children before it adds nothing; of what its own history shares with
/// theirs, the largest entry is deducted. So sharing is seen, but only one shared class for each
/// child; and as deductions make costs depend on the order, the choice may be cyclic. Where it is,
/// cycles are opened at as few classes as tree costs allow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl Extractor for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn solve(&self, problem: &Problem, budget: &mut dyn Budget) -> Option<Answer> {
        let by = Histories::new(problem).fixed_point(budget);
        let chosen: Vec<bool> = (0..problem.nodes() as u32).map(|node| by[problem.class_of(node) as usize] == node).collect();
        let published = problem.derive(&chosen);
        let nodes = match problem.trimmed(&published.by) {
            Some(nodes) => nodes,
            None => problem.trimmed(&problem.knuth(penalized(problem, &chosen)).derivation.by)?,
        };
        Some(Answer::unbounded(nodes))
    }
}

/// Tree costs in which what is not chosen counts more than everything that is.
fn penalized(problem: &Problem, chosen: &[bool]) -> impl Fn(u32) -> f64 {
    let all: f64 = (0..problem.nodes()).filter(|&node| chosen[node]).map(|node| problem.cost[node] as f64).sum();
    let price: Vec<f64> = (0..problem.nodes()).map(|node| problem.cost[node] as f64 + if chosen[node] { 0.0 } else { all }).collect();
    move |node| price[node as usize]
}

/// A class below, and what it added.
type Entry = (u32, f64);

struct Histories<'a> {
    problem: &'a Problem,
    /// Cheapest cost of each class so far.
    cost: Vec<f64>,
    by: Vec<u32>,
    history: Vec<Rc<[Entry]>>,
    /// The look at a node in which a class was entered last.
    met: Vec<u32>,
    looks: u32,
}

impl Histories<'_> {
    fn new(problem: &Problem) -> Histories<'_> {
        let classes = problem.classes();
        Histories {
            problem,
            cost: vec![f64::INFINITY; classes],
            by: vec![NONE; classes],
            history: vec![Rc::from([]); classes],
            met: vec![0; classes],
            looks: 0,
        }
    }

    /// The choice when no class gets cheaper any more. Classes are visited in order, in passes; one
    /// whose children are as they were has nothing new. Costs only fall, but nothing says how
    /// often, so the budget is asked in each pass.
    fn fixed_point(mut self, budget: &mut dyn Budget) -> Vec<u32> {
        let mut stale = vec![true; self.problem.classes()];
        while stale.iter().any(|&stale| stale) && !budget.exhausted() {
            for class in 0..self.problem.classes() as u32 {
                if !std::mem::take(&mut stale[class as usize]) || !self.visit(class) {
                    continue;
                }
                for &parent in self.problem.parents.get(class) {
                    stale[self.problem.class_of(parent) as usize] = true;
                }
            }
        }
        self.by
    }

    /// Looks at the nodes of a class; true if one is cheaper than what was known.
    fn visit(&mut self, class: u32) -> bool {
        let mut best = None;
        for &node in self.problem.members.get(class) {
            let Some((cost, history)) = self.look(node) else { continue };
            if cost < self.cost[class as usize] {
                self.cost[class as usize] = cost;
                self.by[class as usize] = node;
                best = Some(history);
            }
        }
        let found = best.is_some();
        if let Some(history) = best {
            self.history[class as usize] = history.into();
        }
        found
    }

    /// Cost and history of a node; `None` while a child has no cost, or if it needs its own class.
    fn look(&mut self, node: u32) -> Option<(f64, Vec<Entry>)> {
        let children = self.problem.children.get(node);
        if children.iter().any(|&child| self.by[child as usize] == NONE || child == self.problem.class_of(node)) {
            return None;
        }
        self.looks += 1;
        let mut history: Vec<Entry> = Vec::new();
        let mut total = self.problem.cost_of(node) as f64;
        for &child in children {
            let mut share = 0.0f64;
            if self.met[child as usize] != self.looks {
                let below = self.history[child as usize].clone();
                let known = below.iter().filter(|(class, _)| self.met[*class as usize] == self.looks);
                let overlap = known.map(|&(_, added)| added).fold(0.0, f64::max);
                share = (self.cost[child as usize] - overlap).max(0.0);
                for &(class, added) in below.iter() {
                    self.note(&mut history, class, added);
                }
            }
            total += share;
            if share > 0.0 {
                self.note(&mut history, child, share);
            }
        }
        Some((total, history))
    }

    /// Enters a class in the history of the node being looked at, unless it is there.
    fn note(&mut self, history: &mut Vec<Entry>, class: u32, added: f64) {
        if self.met[class as usize] != self.looks {
            self.met[class as usize] = self.looks;
            history.push((class, added));
        }
    }
}
