//! E-graphs.

use std::collections::{HashMap, HashSet};

use crate::error::{EGraphError, Flaw};
use crate::lists::Lists;
use crate::problem::{NONE, Problem};

/// The solution of least cost is about this many units.
const UNITS: i32 = 60;

/// A node as files name it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, unique in the e-graph.
    pub name: String,
    /// Operator; any text.
    pub op: String,
    /// Name of its class.
    pub class: String,
    /// Names of its children: nodes that stand for their classes.
    pub children: Vec<String>,
    /// Cost of the node without its children; finite and not negative, in any unit.
    pub cost: f64,
    /// Whether a better node replaces it, so that it must not be extracted.
    pub subsumed: bool,
}

/// Classes of equal nodes whose children are classes, and the classes to extract.
///
/// Nodes and classes have numbers from 0, in the order in which they were first named.
#[derive(Clone, Debug)]
pub struct EGraph {
    nodes: Vec<Node>,
    /// Class of each node.
    class: Vec<u32>,
    /// Child nodes of each node.
    children: Lists,
    /// Names of the classes.
    classes: Vec<String>,
    roots: Vec<u32>,
}

impl EGraph {
    /// The e-graph of these nodes, to be extracted at the classes named by `roots`.
    pub fn new(nodes: Vec<Node>, roots: &[String]) -> Result<EGraph, EGraphError> {
        let count = nodes.len() + nodes.iter().map(|node| node.children.len()).sum::<usize>();
        if count >= (u32::MAX / 2) as usize {
            return Err(EGraphError::TooLarge { count });
        }
        let mut numbers: HashMap<&str, u32> = HashMap::with_capacity(nodes.len());
        let mut class_numbers: HashMap<&str, u32> = HashMap::new();
        let (mut classes, mut class) = (Vec::new(), Vec::with_capacity(nodes.len()));
        for (number, node) in nodes.iter().enumerate() {
            if numbers.insert(&node.name, number as u32).is_some() {
                return Err(EGraphError::Twice { node: node.name.clone() });
            }
            if !node.cost.is_finite() || node.cost < 0.0 {
                return Err(EGraphError::Cost { node: node.name.clone(), cost: node.cost });
            }
            class.push(*class_numbers.entry(&node.class).or_insert_with(|| {
                classes.push(node.class.clone());
                classes.len() as u32 - 1
            }));
        }
        let mut children: Vec<Vec<u32>> = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let number = |child: &String| {
                numbers.get(child.as_str()).copied().ok_or_else(|| EGraphError::Child { node: node.name.clone(), child: child.clone() })
            };
            children.push(node.children.iter().map(number).collect::<Result<_, _>>()?);
        }
        let root = |name: &String| class_numbers.get(name.as_str()).copied().ok_or_else(|| EGraphError::Root { class: name.clone() });
        let mut roots: Vec<u32> = roots.iter().map(root).collect::<Result<_, _>>()?;
        roots.sort_unstable();
        roots.dedup();
        if roots.is_empty() {
            return Err(EGraphError::NoRoots);
        }
        Ok(EGraph { children: Lists::new(children), class, classes, roots, nodes })
    }

    /// An e-graph without names: nodes, each with its class, one node of the class of each child,
    /// and its cost; and the classes to extract. For e-graphs that are extracted once, over and
    /// over.
    ///
    /// # Errors
    ///
    /// A cost that is no cost; no roots. Numbers must be those of nodes and classes.
    pub fn unnamed(nodes: Vec<(u32, Vec<u32>, f64)>, classes: usize, roots: &[u32]) -> Result<EGraph, EGraphError> {
        let unnamed =
            |cost: f64| Node { name: String::new(), op: String::new(), class: String::new(), children: Vec::new(), cost, subsumed: false };
        if let Some((node, cost)) = nodes.iter().map(|node| node.2).enumerate().find(|(_, cost)| !cost.is_finite() || *cost < 0.0) {
            return Err(EGraphError::Cost { node: node.to_string(), cost });
        }
        let mut roots = roots.to_vec();
        roots.sort_unstable();
        roots.dedup();
        if roots.is_empty() {
            return Err(EGraphError::NoRoots);
        }
        let class = nodes.iter().map(|node| node.0).collect();
        let named = nodes.iter().map(|node| unnamed(node.2)).collect();
        let children = Lists::new(nodes.into_iter().map(|node| node.1));
        Ok(EGraph { children, class, classes: vec![String::new(); classes], roots, nodes: named })
    }

    /// All nodes; a node's number is its position.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Names of all classes; a class's number is its position.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Names of the root classes.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|&root| self.classes[root as usize].as_str())
    }

    /// Number of a node's class.
    pub fn class_of(&self, node: usize) -> usize {
        self.class[node] as usize
    }

    /// Numbers of the classes of a node's children, in their order.
    pub fn child_classes(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.children.get(node as u32).iter().map(|&child| self.class_of(child as usize))
    }

    /// Checks a choice of nodes, by their numbers: that each class has at most one, that no root
    /// and no child is missing, and that there is no cycle. Returns the nodes that the roots need,
    /// children first.
    pub fn check(&self, chosen: &[usize]) -> Result<Vec<usize>, Flaw> {
        let name = |class: u32| self.classes[class as usize].clone();
        let mut by = vec![NONE; self.classes.len()];
        for &node in chosen {
            if self.nodes.get(node).is_none_or(|node| node.subsumed) {
                return Err(Flaw::NoNode { node });
            }
            let class = self.class[node];
            if by[class as usize] != NONE && by[class as usize] != node as u32 {
                return Err(Flaw::Twice { class: name(class) });
            }
            by[class as usize] = node as u32;
        }
        // Depth first: a class that is met again before it is finished needs itself.
        let (mut begun, mut finished) = (vec![false; by.len()], vec![false; by.len()]);
        let mut order = Vec::new();
        let mut open: Vec<u32> = self.roots.iter().rev().copied().collect();
        while let Some(&class) = open.last() {
            let node = by[class as usize];
            if node == NONE {
                return Err(Flaw::Missing { class: name(class) });
            }
            if std::mem::replace(&mut begun[class as usize], true) {
                open.pop();
                if !std::mem::replace(&mut finished[class as usize], true) {
                    order.push(node as usize);
                }
                continue;
            }
            for &child in self.children.get(node).iter().rev() {
                let child = self.class[child as usize];
                if !finished[child as usize] {
                    if begun[child as usize] {
                        return Err(Flaw::Cyclic { class: name(child) });
                    }
                    open.push(child);
                }
            }
        }
        Ok(order)
    }

    /// Names a root without a finite term.
    pub(crate) fn infinite(&self, problem: &Problem) -> EGraphError {
        let by = problem.derive(&vec![true; problem.nodes()]).by;
        let root = self.roots.iter().find(|&&root| by[root as usize] == NONE).unwrap_or(&self.roots[0]);
        EGraphError::Infinite { class: self.classes[*root as usize].clone() }
    }

    /// The e-graph as numbers, and the cost of one unit: a power of two, so that costs which are
    /// multiples of it are exact.
    pub(crate) fn problem(&self) -> (Problem, f64) {
        let subsumed = |node: usize| self.nodes[node].subsumed;
        let children = (0..self.nodes.len()).map(|node| {
            let mut classes: Vec<u32> = self.children.get(node as u32).iter().map(|&child| self.class[child as usize]).collect();
            // A node that needs its own class is on no solution.
            if subsumed(node) {
                classes.push(self.class[node]);
            }
            let mut seen = HashSet::new();
            classes.retain(|&class| seen.insert(class));
            classes
        });
        let nothing = vec![0; self.nodes.len()];
        let mut problem = Problem::new(self.classes.len(), nothing, self.class.clone(), Lists::new(children), self.roots.clone());
        let price = |node: u32| self.nodes[node as usize].cost;
        let tree = problem.trimmed(&problem.knuth(price).derivation.by).unwrap_or_default();
        let known: f64 = tree.iter().map(|&node| price(node)).sum();
        let exponent = if known > 0.0 { known.log2().ceil() as i32 - UNITS } else { 0 };
        let unit = 2f64.powi(exponent.max(-1000));
        // What costs more than a known solution is on no better one, so its cost may be cut.
        let most = (1u64 << (UNITS + 1)) as f64;
        // What costs anything costs a unit, even if a solution is known that costs nothing.
        let units = |cost: f64| if cost > 0.0 { (cost / unit).round().clamp(1.0, most) as u64 } else { 0 };
        problem.cost = self.nodes.iter().map(|node| units(node.cost)).collect();
        (problem, unit)
    }
}
