//! An e-graph as what extraction is about: numbers only.

use crate::lists::Lists;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// Classes of alternative nodes, of which each needs all of its child classes. A *solution* is a
/// set of nodes, at most one per class, from which all roots can be derived without a cycle; its
/// cost is the sum of its nodes' costs.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Cost of each node, in units of the e-graph.
    pub(crate) cost: Vec<u64>,
    /// Class of each node.
    pub(crate) class: Vec<u32>,
    /// Child classes of each node, each once, in the order of the e-graph.
    pub(crate) children: Lists,
    /// Nodes of each class.
    pub(crate) members: Lists,
    /// Nodes of which each class is a child.
    pub(crate) parents: Lists,
    /// Classes that every solution derives.
    pub(crate) roots: Vec<u32>,
}

impl Problem {
    /// A problem over `classes` classes.
    pub(crate) fn new(classes: usize, cost: Vec<u64>, class: Vec<u32>, children: Lists, roots: Vec<u32>) -> Problem {
        let members = Lists::grouped(classes, class.iter().enumerate().map(|(node, &class)| (class, node as u32)));
        let parents = Lists::grouped(classes, children.pairs().map(|(node, child)| (child, node)));
        Problem { cost, class, children, members, parents, roots }
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.cost.len()
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.members.len()
    }

    /// Class of a node.
    pub(crate) fn class_of(&self, node: u32) -> u32 {
        self.class[node as usize]
    }

    /// Cost of a node.
    pub(crate) fn cost_of(&self, node: u32) -> u64 {
        self.cost[node as usize]
    }

    /// Cost of a set of nodes.
    pub(crate) fn total(&self, nodes: &[u32]) -> u64 {
        nodes.iter().map(|&node| self.cost_of(node)).fold(0, u64::saturating_add)
    }

    /// The solution within a set of nodes and those without a cost; `None` if there is none. It
    /// costs no more than the set.
    pub(crate) fn within(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        let mut allowed: Vec<bool> = self.cost.iter().map(|&cost| cost == 0).collect();
        nodes.iter().for_each(|&node| allowed[node as usize] = true);
        self.trimmed(&self.derive(&allowed).by)
    }

    /// What the roots need of a choice of one node per class ([`NONE`] where there is none); `None`
    /// if a class has no choice. The choice must have no cycle.
    pub(crate) fn trimmed(&self, by: &[u32]) -> Option<Vec<u32>> {
        let mut seen = vec![false; self.classes()];
        let mut open = self.roots.clone();
        let mut nodes = Vec::new();
        while let Some(class) = open.pop() {
            if std::mem::replace(&mut seen[class as usize], true) {
                continue;
            }
            let node = by[class as usize];
            if node == NONE {
                return None;
            }
            nodes.push(node);
            open.extend_from_slice(self.children.get(node));
        }
        nodes.sort_unstable();
        Some(nodes)
    }

    /// Derives as many classes as possible with the allowed nodes, in an order in which each class
    /// comes after the children of its node.
    pub(crate) fn derive(&self, allowed: &[bool]) -> Derivation {
        let mut derivation = Derivation { by: vec![NONE; self.classes()], order: Vec::new() };
        let mut missing: Vec<u32> = (0..self.nodes() as u32).map(|node| self.children.get(node).len() as u32).collect();
        let ready = (0..self.nodes() as u32).filter(|&node| allowed[node as usize] && missing[node as usize] == 0);
        for node in ready {
            derivation.add(self.class_of(node), node);
        }
        let mut next = 0;
        while next < derivation.order.len() {
            let class = derivation.order[next];
            next += 1;
            for &parent in self.parents.get(class) {
                missing[parent as usize] -= 1;
                if missing[parent as usize] == 0 && allowed[parent as usize] {
                    derivation.add(self.class_of(parent), parent);
                }
            }
        }
        derivation
    }
}

/// Which classes are derivable, and how.
#[derive(Clone, Debug)]
pub(crate) struct Derivation {
    /// A node of each class, [`NONE`] where the class is not derivable. Without a cycle.
    pub by: Vec<u32>,
    /// The derivable classes, children first.
    pub order: Vec<u32>,
}

impl Derivation {
    fn add(&mut self, class: u32, node: u32) {
        if self.by[class as usize] == NONE {
            self.by[class as usize] = node;
            self.order.push(class);
        }
    }
}
