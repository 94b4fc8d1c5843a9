//! Presolve: smaller problems with the same least cost.
//!
//! Rounds of reductions, until one changes nothing:
//!
//! * what cannot be derived, or the roots do not need, goes;
//! * what costs nothing is derived once and for all;
//! * a node that every derivation of one of its children needs goes: it is on no solution without a
//!   cycle;
//! * of two nodes of a class, one goes if the other costs no more, where the classes below the
//!   first and the cheapest trees may be used;
//! * a class that every solution contains becomes a root; its cheapest node is paid for in advance,
//!   and whoever needs it no longer has to say so, unless both are on a cycle;
//! * a class that only one other needs is merged into it, if that adds no nodes.
//!
//! Then the problem falls apart into independent [`Part`]s.

mod bits;
mod components;
mod landmarks;

use self::bits::{contains, unite};
use self::components::components;
use self::landmarks::Landmarks;
use crate::lists::Lists;
use crate::problem::{NONE, Problem};
use regraft_ir::Budget;

/// Problems with more classes are not searched for landmarks, whose memory is quadratic.
const MOST_LANDMARKS: usize = 40_000;
/// Children that merging the nodes of a class into one other node may add.
const MOST_GROWTH: usize = 64;

/// A problem without what is decided.
#[derive(Clone, Debug)]
pub(crate) struct Reduced {
    /// What is paid in any case.
    pub base: u64,
    /// Nodes of the problem that are chosen in any case.
    pub forced: Vec<u32>,
    /// What is left, in parts that have nothing to do with each other.
    pub parts: Vec<Part>,
}

/// An independent part of a reduced problem.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The part, as a problem of its own.
    pub problem: Problem,
    /// The nodes of the problem it is from that each node stands for.
    pub stands: Vec<Vec<u32>>,
}

impl Part {
    /// The nodes of the problem it is from that some nodes stand for.
    pub fn meaning(&self, nodes: &[u32]) -> Vec<u32> {
        nodes.iter().flat_map(|&node| &self.stands[node as usize]).copied().collect()
    }
}

/// Reduces a problem, using only nodes that `allowed` admits, as far as the budget allows; `None`
/// if there is no solution.
pub(crate) fn reduce(problem: &Problem, allowed: impl Fn(u32) -> bool, budget: &mut dyn Budget) -> Option<Reduced> {
    let mut reducer = Reducer::new(problem, allowed);
    while reducer.round(budget)? {}
    Some(reducer.finish())
}

#[derive(Clone, Debug)]
struct Node {
    class: u32,
    cost: u64,
    /// Sorted.
    children: Vec<u32>,
    stands: Vec<u32>,
}

struct Reducer {
    nodes: Vec<Node>,
    classes: usize,
    /// Sorted.
    roots: Vec<u32>,
    base: u64,
    forced: Vec<u32>,
}

impl Reducer {
    fn new(problem: &Problem, allowed: impl Fn(u32) -> bool) -> Reducer {
        let nodes = (0..problem.nodes() as u32).filter(|&node| allowed(node)).map(|node| Node {
            class: problem.class_of(node),
            cost: problem.cost_of(node),
            children: sorted(problem.children.get(node).to_vec()),
            stands: vec![node],
        });
        let roots = sorted(problem.roots.clone());
        Reducer { nodes: nodes.collect(), classes: problem.classes(), roots, base: 0, forced: Vec::new() }
    }

    fn problem(&self) -> Problem {
        let cost = self.nodes.iter().map(|node| node.cost).collect();
        let class = self.nodes.iter().map(|node| node.class).collect();
        Problem::new(self.classes, cost, class, Lists::new(self.nodes.iter().map(|node| &node.children)), self.roots.clone())
    }

    /// Keeps the nodes that are marked.
    fn keep(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.nodes.retain(|_| kept.next().is_some_and(|&kept| kept));
    }

    /// One round; true if it changed anything, `None` if there is no solution.
    fn round(&mut self, budget: &mut dyn Budget) -> Option<bool> {
        self.discard_useless()?;
        if self.settle_free() {
            self.discard_useless()?;
        }
        if budget.exhausted() {
            return Some(false);
        }
        let mut changed = false;
        if self.classes <= MOST_LANDMARKS {
            changed |= self.by_landmarks();
        }
        changed |= self.merge();
        Some(changed)
    }

    /// Discards what cannot be derived or is not needed, and numbers the classes anew.
    fn discard_useless(&mut self) -> Option<()> {
        let problem = self.problem();
        let by = problem.derive(&vec![true; problem.nodes()]).by;
        let derivable = |class: &u32| by[*class as usize] != NONE;
        if !self.roots.iter().all(derivable) {
            return None;
        }
        let usable: Vec<bool> =
            self.nodes.iter().map(|node| node.children.iter().all(derivable) && !node.children.contains(&node.class)).collect();
        let mut number = vec![NONE; self.classes];
        let mut open = self.roots.clone();
        let mut needed = Vec::new();
        while let Some(class) = open.pop() {
            if number[class as usize] == NONE {
                number[class as usize] = 0;
                needed.push(class);
                let usable = problem.members.get(class).iter().filter(|&&node| usable[node as usize]);
                open.extend(usable.flat_map(|&node| problem.children.get(node)));
            }
        }
        needed.sort_unstable();
        needed.iter().enumerate().for_each(|(new, &class)| number[class as usize] = new as u32);
        let kept: Vec<bool> = self.nodes.iter().zip(&usable).map(|(node, &usable)| usable && number[node.class as usize] != NONE).collect();
        self.keep(&kept);
        for node in &mut self.nodes {
            node.class = number[node.class as usize];
            node.children.iter_mut().for_each(|child| *child = number[*child as usize]);
        }
        self.roots.iter_mut().for_each(|root| *root = number[*root as usize]);
        self.classes = needed.len();
        Some(())
    }

    /// Derives what costs nothing; true if there was any.
    fn settle_free(&mut self) -> bool {
        let problem = self.problem();
        let free = problem.derive(&problem.cost.iter().map(|&cost| cost == 0).collect::<Vec<_>>());
        if free.order.is_empty() {
            return false;
        }
        // Outside of the roots, what costs nothing stands for nothing that does.
        let by = |class: &u32| free.by[*class as usize];
        for root in self.roots.iter().filter(|root| by(root) != NONE) {
            self.forced.extend_from_slice(&self.nodes[by(root) as usize].stands);
        }
        self.roots.retain(|root| by(root) == NONE);
        self.nodes.retain(|node| by(&node.class) == NONE);
        self.nodes.iter_mut().for_each(|node| node.children.retain(|child| by(child) == NONE));
        true
    }

    /// What follows from the classes below a class in every solution; true if anything did.
    fn by_landmarks(&mut self) -> bool {
        let problem = self.problem();
        let order = problem.derive(&vec![true; problem.nodes()]).order;
        let landmarks = Landmarks::new(&problem, &order);
        let mut changed = self.discard_dominated(&problem, &landmarks);
        for node in &mut self.nodes {
            let (all, before) = (node.children.clone(), node.children.len());
            node.children.retain(|&child| !all.iter().any(|&other| other != child && landmarks.needs(other, child)));
            changed |= node.children.len() < before;
        }
        changed | self.require(&landmarks)
    }

    /// Discards nodes that are on no solution, or that another node of their class can replace.
    fn discard_dominated(&mut self, problem: &Problem, landmarks: &Landmarks) -> bool {
        let trees = problem.knuth(|node| problem.cost_of(node) as f64);
        let mut position = vec![0; problem.classes()];
        trees.derivation.order.iter().enumerate().for_each(|(at, &class)| position[class as usize] = at);
        let mut kept = vec![true; problem.nodes()];
        // While the roots of the cheapest trees stay, what the trees of other classes cost does.
        let mut trees_hold = true;
        let mut below = landmarks.none();
        for class in 0..problem.classes() as u32 {
            for &node in problem.members.get(class) {
                landmarks.below(problem, node, &mut below);
                let cost = problem.cost_of(node);
                let tree = trees.derivation.by[class as usize] == node;
                let replaces = |other: u32| {
                    if other == node || !kept[other as usize] || problem.cost_of(other) > cost {
                        return false;
                    }
                    let mut more = 0.0;
                    for &child in problem.children.get(other).iter().filter(|&&child| !contains(&below, child)) {
                        if tree || !trees_hold || position[child as usize] >= position[class as usize] {
                            return false;
                        }
                        more += trees.cost[child as usize];
                    }
                    more == 0.0 || problem.cost_of(other) as f64 + more * (1.0 + 1e-9) <= cost as f64
                };
                if contains(&below, class) || problem.members.get(class).iter().any(|&other| replaces(other)) {
                    kept[node as usize] = false;
                    trees_hold &= !tree;
                }
            }
        }
        self.keep(&kept);
        kept.contains(&false)
    }

    /// Makes roots of the classes that every solution contains; true if that changed anything.
    fn require(&mut self, landmarks: &Landmarks) -> bool {
        let mut required = landmarks.none();
        self.roots.iter().for_each(|&root| unite(&mut required, landmarks.of(root)));
        let roots: Vec<u32> = (0..self.classes as u32).filter(|&class| contains(&required, class)).collect();
        let mut changed = roots.len() > self.roots.len();
        self.roots = roots;
        let component = components(&self.problem());
        for node in &mut self.nodes {
            let before = node.children.len();
            let class = node.class;
            node.children.retain(|&child| !contains(&required, child) || component[child as usize] == component[class as usize]);
            changed |= node.children.len() < before;
        }
        let mut least = vec![u64::MAX; self.classes];
        self.nodes.iter().for_each(|node| least[node.class as usize] = least[node.class as usize].min(node.cost));
        for &root in &self.roots {
            self.base += least[root as usize];
            changed |= least[root as usize] > 0;
        }
        for node in self.nodes.iter_mut().filter(|node| contains(&required, node.class)) {
            node.cost -= least[node.class as usize];
        }
        changed
    }

    /// Merges classes into the only class that needs them; true if there were any.
    fn merge(&mut self) -> bool {
        let problem = self.problem();
        let mut kept = vec![true; self.nodes.len()];
        let mut touched = vec![false; self.classes];
        let mut is_root = vec![false; self.classes];
        self.roots.iter().for_each(|&root| is_root[root as usize] = true);
        let (mut added, mut changed) = (Vec::new(), false);
        for class in 0..self.classes as u32 {
            let (members, parents) = (problem.members.get(class), problem.parents.get(class));
            let (Some(&member), Some(&parent)) = (members.first(), parents.first()) else { continue };
            let around = || parents.iter().map(|&parent| problem.class_of(parent)).chain([class]);
            if around().any(|class| touched[class as usize]) {
                continue;
            }
            let only = parents.iter().all(|&other| problem.class_of(other) == problem.class_of(parent));
            let single = members.len() == 1;
            let growth = (members.len() - 1) * (problem.children.get(parent).len() - 1);
            let free = single && problem.cost_of(member) == 0;
            let apart = !is_root[class as usize] && only && (single || parents.len() == 1 && growth <= MOST_GROWTH);
            if !free && !apart {
                continue;
            }
            around().for_each(|class| touched[class as usize] = true);
            changed = true;
            let mut merged: Vec<Node> = Vec::new();
            for &parent in parents {
                merged.extend(members.iter().map(|&node| self.merged(parent, node, class, !is_root[class as usize])));
            }
            if is_root[class as usize] {
                self.forced.extend_from_slice(&self.nodes[member as usize].stands);
                self.roots.retain(|&root| root != class);
                self.roots.extend_from_slice(&self.nodes[member as usize].children);
            }
            members.iter().chain(parents).for_each(|&node| kept[node as usize] = false);
            added.append(&mut merged);
        }
        self.keep(&kept);
        self.nodes.append(&mut added);
        self.roots = sorted(std::mem::take(&mut self.roots));
        changed
    }

    /// A node with one of its children replaced by a node of it.
    fn merged(&self, parent: u32, node: u32, class: u32, with_stands: bool) -> Node {
        let (parent, node) = (&self.nodes[parent as usize], &self.nodes[node as usize]);
        let children = parent.children.iter().filter(|&&child| child != class).chain(&node.children).copied();
        let stands = parent.stands.iter().chain(node.stands.iter().filter(|_| with_stands)).copied();
        Node { class: parent.class, cost: parent.cost + node.cost, children: sorted(children.collect()), stands: stands.collect() }
    }

    /// Divides what is left where nothing connects it.
    fn finish(self) -> Reduced {
        let mut leader: Vec<u32> = (0..self.classes as u32).collect();
        fn find(leader: &mut [u32], class: u32) -> u32 {
            let mut at = class;
            while leader[at as usize] != at {
                leader[at as usize] = leader[leader[at as usize] as usize];
                at = leader[at as usize];
            }
            at
        }
        for node in &self.nodes {
            for &child in &node.children {
                let (a, b) = (find(&mut leader, node.class), find(&mut leader, child));
                leader[a.max(b) as usize] = a.min(b);
            }
        }
        let mut part_of = vec![NONE; self.classes];
        let mut number = vec![0; self.classes];
        let mut sizes: Vec<u32> = Vec::new();
        for class in 0..self.classes as u32 {
            let first = find(&mut leader, class);
            if first == class {
                part_of[class as usize] = sizes.len() as u32;
                sizes.push(0);
            }
            let part = part_of[first as usize];
            part_of[class as usize] = part;
            number[class as usize] = sizes[part as usize];
            sizes[part as usize] += 1;
        }
        let mut nodes: Vec<Vec<Node>> = vec![Vec::new(); sizes.len()];
        for mut node in self.nodes {
            let part = part_of[node.class as usize] as usize;
            node.class = number[node.class as usize];
            node.children.iter_mut().for_each(|child| *child = number[*child as usize]);
            nodes[part].push(node);
        }
        let parts = nodes.into_iter().zip(sizes).enumerate().map(|(part, (mut nodes, classes))| {
            let roots = self.roots.iter().filter(|&&root| part_of[root as usize] == part as u32).map(|&root| number[root as usize]);
            let (cost, class) = (nodes.iter().map(|node| node.cost).collect(), nodes.iter().map(|node| node.class).collect());
            let children = Lists::new(nodes.iter().map(|node| &node.children));
            let problem = Problem::new(classes as usize, cost, class, children, roots.collect());
            Part { problem, stands: nodes.iter_mut().map(|node| std::mem::take(&mut node.stands)).collect() }
        });
        Reduced { base: self.base, forced: self.forced, parts: parts.collect() }
    }
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
