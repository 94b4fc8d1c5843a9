//! Tree costs: a node costs what it and its children cost, however often they are shared.
//!
//! Knuth, "A generalization of Dijkstra's algorithm", Information Processing Letters 6(1), 1977.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::{Derivation, NONE, Problem};

/// The cheapest tree of each class.
#[derive(Clone, Debug)]
pub(crate) struct Knuth {
    /// Cost of the tree, in units of the e-graph; infinite where there is none. Trees may be
    /// exponentially larger than graphs, so this is a floating-point number.
    pub cost: Vec<f64>,
    /// Root nodes of the trees; classes are in the order of their costs.
    pub derivation: Derivation,
}

impl Problem {
    /// The cheapest tree of each class, with `price` as the cost of nodes (infinite for nodes not
    /// to be used). Of equal ones, that with the first node.
    pub(crate) fn knuth(&self, price: impl Fn(u32) -> f64) -> Knuth {
        let mut cost = vec![f64::INFINITY; self.classes()];
        let mut derivation = Derivation { by: vec![NONE; self.classes()], order: Vec::new() };
        let mut missing: Vec<u32> = (0..self.nodes() as u32).map(|node| self.children.get(node).len() as u32).collect();
        // The bits of numbers that are not negative are in the order of the numbers.
        let mut open: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let push = |open: &mut BinaryHeap<_>, total: f64, node: u32| {
            if total < f64::INFINITY {
                open.push(Reverse((total.to_bits(), node)));
            }
        };
        for node in (0..self.nodes() as u32).filter(|&node| missing[node as usize] == 0) {
            push(&mut open, price(node), node);
        }
        while let Some(Reverse((total, node))) = open.pop() {
            let class = self.class_of(node);
            if derivation.by[class as usize] != NONE {
                continue;
            }
            derivation.by[class as usize] = node;
            derivation.order.push(class);
            cost[class as usize] = f64::from_bits(total);
            for &parent in self.parents.get(class) {
                missing[parent as usize] -= 1;
                if missing[parent as usize] == 0 {
                    let below: f64 = self.children.get(parent).iter().map(|&child| cost[child as usize]).sum();
                    push(&mut open, price(parent) + below, parent);
                }
            }
        }
        Knuth { cost, derivation }
    }
}
