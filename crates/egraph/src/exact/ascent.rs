//! Lower bounds by dual ascent.
//!
//! A *cut* is a set of nodes of which every solution contains one. If the cheapest node of a cut
//! costs `d`, then every solution costs `d` more than in the problem in which each of its nodes
//! costs `d` less; so the bound rises by `d`, until the roots can be derived with nodes that cost
//! nothing any more. Cuts go around cycles: what is behind a cut is not derivable without it.
//!
//! Wong, "A dual ascent approach for Steiner tree problems on a directed graph", Mathematical
//! Programming 28, 1984; Helmert and Domshlak, "Landmarks, critical paths and abstractions"
//! (LM-cut), ICAPS 2009, for and/or graphs.

use regraft_ir::SplitMix64;

use crate::problem::Problem;
use regraft_ir::Budget;

/// The orders that are tried.
const ORDERS: [Order; 4] = [Order::Dearest, Order::Deep, Order::Random(1), Order::Random(2)];
/// Attempts to raise a bound, and how many of them may fail in succession.
const ATTEMPTS: u32 = 50;
const IN_VAIN: u32 = 3;
/// Cuts between two looks at the budget.
const CHECKED: usize = 64;
/// Share of the cuts that are taken back at once.
const RETREAT: f64 = 0.3;

/// How to choose among cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Close to the roots, and behind the child with the dearest tree.
    Dearest,
    /// Close to the roots, and behind a child at random.
    Random(u64),
    /// As far from the roots as possible.
    Deep,
}

/// A lower bound, and what nodes cost beyond it: a solution costs the bound and the reduced costs
/// of its nodes at least.
#[derive(Clone, Debug)]
pub(crate) struct Ascent {
    pub bound: u64,
    pub reduced: Vec<u64>,
}

impl Ascent {
    /// The best of several bounds of a problem that has a solution, as far as the budget allows.
    pub fn all(problem: &Problem, budget: &mut dyn Budget, mut each: impl FnMut(&Ascent)) -> Ascent {
        let mut best: Option<State> = None;
        for order in ORDERS {
            if best.is_some() && budget.exhausted() {
                break;
            }
            let mut state = State::new(problem, order);
            state.ascend(budget);
            each(&state.ascent);
            if best.as_ref().is_none_or(|best| best.ascent.bound < state.ascent.bound) {
                best = Some(state);
            }
        }
        let Some(mut state) = best else { return Ascent { bound: 0, reduced: problem.cost.clone() } };
        if problem.roots.len() > 1 {
            state.polish(budget);
            each(&state.ascent);
        }
        state.ascent
    }

    /// For each node, a lower bound on the cost of the solutions that contain it.
    pub fn with_each(&self, problem: &Problem) -> Vec<u64> {
        let below = self.dearest_needs(problem);
        let above = self.cheapest_paths(problem);
        let bound = |node: u32| {
            let needs = problem.children.get(node).iter().map(|&child| below[child as usize]).max().unwrap_or(0);
            let path = above[problem.class_of(node) as usize];
            [self.bound, self.reduced[node as usize], needs, path].into_iter().fold(0, u64::saturating_add)
        };
        (0..problem.nodes() as u32).map(bound).collect()
    }

    /// What deriving each class costs at least, in reduced costs: of a node and its dearest child.
    fn dearest_needs(&self, problem: &Problem) -> Vec<u64> {
        let mut below = vec![u64::MAX; problem.classes()];
        let mut missing: Vec<u32> = (0..problem.nodes() as u32).map(|node| problem.children.get(node).len() as u32).collect();
        let mut open = std::collections::BinaryHeap::new();
        for node in (0..problem.nodes()).filter(|&node| missing[node] == 0) {
            open.push(std::cmp::Reverse((self.reduced[node], problem.class[node])));
        }
        while let Some(std::cmp::Reverse((cost, class))) = open.pop() {
            if below[class as usize] != u64::MAX {
                continue;
            }
            below[class as usize] = cost;
            for &parent in problem.parents.get(class) {
                missing[parent as usize] -= 1;
                if missing[parent as usize] == 0 {
                    open.push(std::cmp::Reverse((cost.saturating_add(self.reduced[parent as usize]), problem.class_of(parent))));
                }
            }
        }
        below
    }

    /// What the nodes on a path from a root to each class cost at least, in reduced costs.
    fn cheapest_paths(&self, problem: &Problem) -> Vec<u64> {
        let mut above = vec![u64::MAX; problem.classes()];
        let mut open: std::collections::BinaryHeap<_> = problem.roots.iter().map(|&root| std::cmp::Reverse((0, root))).collect();
        while let Some(std::cmp::Reverse((cost, class))) = open.pop() {
            if above[class as usize] != u64::MAX {
                continue;
            }
            above[class as usize] = cost;
            for &node in problem.members.get(class) {
                let cost = cost.saturating_add(self.reduced[node as usize]);
                let new = problem.children.get(node).iter().filter(|&&child| above[child as usize] == u64::MAX);
                open.extend(new.map(|&child| std::cmp::Reverse((cost, child))));
            }
        }
        above
    }
}

struct State<'a> {
    problem: &'a Problem,
    order: Order,
    random: SplitMix64,
    /// How eagerly to go behind each class.
    rank: Vec<f64>,
    ascent: Ascent,
    /// The cuts, and by how much each raised the bound.
    cuts: Vec<(Vec<u32>, u64)>,
    /// Children of each node that are not derived.
    missing: Vec<u32>,
    /// Whether a class can be derived with nodes that cost nothing any more.
    derived: Vec<bool>,
    /// Whether a class is behind the cut being made.
    behind: Vec<bool>,
}

impl State<'_> {
    fn new(problem: &Problem, order: Order) -> State<'_> {
        let random = SplitMix64(if let Order::Random(seed) = order { seed } else { 0 });
        let mut state = State {
            problem,
            order,
            random,
            rank: problem.knuth(|node| problem.cost_of(node) as f64).cost,
            ascent: Ascent { bound: 0, reduced: problem.cost.clone() },
            cuts: Vec::new(),
            missing: Vec::new(),
            derived: Vec::new(),
            behind: vec![false; problem.classes()],
        };
        state.derive();
        state
    }

    /// Derives what can be derived with nodes that cost nothing any more.
    fn derive(&mut self) {
        self.missing = (0..self.problem.nodes() as u32).map(|node| self.problem.children.get(node).len() as u32).collect();
        self.derived = vec![false; self.problem.classes()];
        for node in 0..self.problem.nodes() as u32 {
            if self.ascent.reduced[node as usize] == 0 {
                self.free(node);
            }
        }
    }

    /// Cuts until the roots can be derived.
    fn ascend(&mut self, budget: &mut dyn Budget) {
        let mut roots = self.problem.roots.clone();
        if matches!(self.order, Order::Random(_)) {
            for at in (1..roots.len()).rev() {
                roots.swap(at, self.random.below(at + 1));
            }
        }
        roots.reverse();
        while let Some(&root) = roots.last() {
            if self.derived[root as usize] {
                roots.pop();
                continue;
            }
            if self.cuts.len().is_multiple_of(CHECKED) && budget.exhausted() {
                break;
            }
            let mut cut = Vec::new();
            self.cut(root, &mut cut);
            let Some(least) = cut.iter().map(|&node| self.ascent.reduced[node as usize]).min() else { break };
            self.ascent.bound = self.ascent.bound.saturating_add(least);
            for &node in &cut {
                self.ascent.reduced[node as usize] -= least;
                if self.ascent.reduced[node as usize] == 0 {
                    self.free(node);
                }
            }
            self.cuts.push((cut, least));
        }
    }

    /// Takes some cuts back and puts others in their place, while that raises the bound.
    fn polish(&mut self, budget: &mut dyn Budget) {
        self.order = Order::Random(0);
        let (mut attempts, mut in_vain) = (0, 0);
        while attempts < ATTEMPTS && in_vain < IN_VAIN && !budget.exhausted() {
            let before = (self.ascent.clone(), self.cuts.clone());
            self.retreat();
            self.ascend(budget);
            attempts += 1;
            in_vain = if self.ascent.bound > before.0.bound { 0 } else { in_vain + 1 };
            if self.ascent.bound < before.0.bound {
                (self.ascent, self.cuts) = before;
            }
        }
    }

    /// Takes some of the cuts back.
    fn retreat(&mut self) {
        let cuts = std::mem::take(&mut self.cuts);
        for (cut, least) in cuts {
            if self.random.unit() < RETREAT {
                self.ascent.bound -= least;
                cut.iter().for_each(|&node| self.ascent.reduced[node as usize] += least);
            } else {
                self.cuts.push((cut, least));
            }
        }
        self.derive();
    }

    /// Derives what a node that costs nothing any more derives.
    fn free(&mut self, node: u32) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let class = self.problem.class_of(node);
            if self.missing[node as usize] > 0 || std::mem::replace(&mut self.derived[class as usize], true) {
                continue;
            }
            for &parent in self.problem.parents.get(class) {
                self.missing[parent as usize] -= 1;
                if self.missing[parent as usize] == 0 && self.ascent.reduced[parent as usize] == 0 {
                    open.push(parent);
                }
            }
        }
    }

    /// A set of nodes that cost something, one of which every derivation of `root` contains.
    fn cut(&mut self, root: u32, cut: &mut Vec<u32>) {
        cut.clear();
        let mut behind = vec![root];
        self.behind[root as usize] = true;
        let mut next = 0;
        while next < behind.len() {
            let class = behind[next];
            next += 1;
            for &node in self.problem.members.get(class) {
                let children = self.problem.children.get(node);
                if children.iter().any(|&child| self.behind[child as usize]) {
                    continue;
                }
                let pass = self.missing[node as usize] > 0 && (self.ascent.reduced[node as usize] == 0 || self.order == Order::Deep);
                if !pass {
                    cut.push(node);
                    continue;
                }
                let open = children.iter().copied().filter(|&child| !self.derived[child as usize]);
                let rank = |random: &mut SplitMix64, child: u32| match self.order {
                    Order::Random(_) => random.unit(),
                    _ => self.rank[child as usize],
                };
                let random = &mut self.random;
                let chosen = open.map(|child| (rank(random, child), child)).max_by(|a, b| a.0.total_cmp(&b.0));
                if let Some((_, child)) = chosen {
                    self.behind[child as usize] = true;
                    behind.push(child);
                }
            }
        }
        cut.retain(|&node| !self.problem.children.get(node).iter().any(|&child| self.behind[child as usize]));
        behind.iter().for_each(|&class| self.behind[class as usize] = false);
    }
}
