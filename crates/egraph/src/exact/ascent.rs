//! Lower bounds by dual ascent.
//!
//! A *cut* is a set of nodes of which every solution contains one. If the cheapest node of a cut
//! costs `d`, then every solution costs `d` more than in the problem in which each of its nodes costs
//! `d` less; so the bound rises by `d`, until the roots can be derived with nodes that cost nothing
//! any more. Cuts go around cycles: what is behind a cut is not derivable without it.
//!
//! Wong, "A dual ascent approach for Steiner tree problems on a directed graph", Mathematical
//! Programming 28, 1984; Helmert and Domshlak, "Landmarks, critical paths and abstractions" (LM-cut),
//! ICAPS 2009, for and/or graphs.

use regraft_ir::SplitMix64;

use crate::problem::Problem;

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

/// A lower bound, and what nodes cost beyond it: a solution costs the bound and the reduced costs of
/// its nodes at least.
#[derive(Clone, Debug)]
pub(crate) struct Ascent {
    pub bound: u64,
    pub reduced: Vec<u64>,
}

impl Ascent {
    /// The bound of a problem that has a solution.
    pub fn new(problem: &Problem, order: Order) -> Ascent {
        let mut state = State::new(problem, order);
        let mut cut = Vec::new();
        while let Some(&root) = problem.roots.iter().find(|&&root| !state.derived[root as usize]) {
            state.cut(root, &mut cut);
            let Some(least) = cut.iter().map(|&node| state.reduced[node as usize]).min() else { break };
            state.bound = state.bound.saturating_add(least);
            for &node in &cut {
                state.reduced[node as usize] -= least;
                if state.reduced[node as usize] == 0 {
                    state.free(node);
                }
            }
        }
        Ascent { bound: state.bound, reduced: state.reduced }
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
    bound: u64,
    reduced: Vec<u64>,
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
            bound: 0,
            reduced: problem.cost.clone(),
            missing: (0..problem.nodes() as u32).map(|node| problem.children.get(node).len() as u32).collect(),
            derived: vec![false; problem.classes()],
            behind: vec![false; problem.classes()],
        };
        for node in 0..problem.nodes() as u32 {
            if problem.cost_of(node) == 0 {
                state.free(node);
            }
        }
        state
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
                if self.missing[parent as usize] == 0 && self.reduced[parent as usize] == 0 {
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
                let pass = self.missing[node as usize] > 0 && (self.reduced[node as usize] == 0 || self.order == Order::Deep);
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
