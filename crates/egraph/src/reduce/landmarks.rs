//! Which classes are below a class in every solution.
//!
//! Keyder, Richter and Helmert, "Sound and complete landmarks for and/or graphs", ECAI 2010: the
//! greatest fix-point of `landmarks(c) = {c} ∪ ⋂ over nodes ⋃ over children landmarks(child)`.

use super::bits::{Bits, contains, insert, intersect, unite};
use crate::problem::Problem;

/// For each class, the classes of every derivation of it, itself included.
#[derive(Clone, Debug)]
pub(crate) struct Landmarks {
    bits: Bits,
}

impl Landmarks {
    /// The landmarks of a problem in which every class is derivable, with `order` as an order in
    /// which they are derived.
    pub fn new(problem: &Problem, order: &[u32]) -> Landmarks {
        let classes = problem.classes();
        let mut landmarks = Landmarks { bits: Bits::new(classes) };
        let (mut known, mut stale) = (vec![false; classes], vec![true; classes]);
        let (mut row, mut common) = (landmarks.bits.empty(), landmarks.bits.empty());
        while stale.iter().any(|&stale| stale) {
            for &class in order {
                if !std::mem::take(&mut stale[class as usize]) {
                    continue;
                }
                common.fill(u64::MAX);
                let mut any = false;
                for &node in problem.members.get(class) {
                    if problem.children.get(node).iter().any(|&child| !known[child as usize]) {
                        continue;
                    }
                    landmarks.below(problem, node, &mut row);
                    if !contains(&row, class) {
                        intersect(&mut common, &row);
                        any = true;
                    }
                }
                // No node may be used yet: so far, the class counts as one that needs everything.
                if !any {
                    continue;
                }
                insert(&mut common, class);
                let first = !std::mem::replace(&mut known[class as usize], true);
                if landmarks.bits.replace(class, &common) || first {
                    problem.parents.get(class).iter().for_each(|&parent| stale[problem.class_of(parent) as usize] = true);
                }
            }
        }
        landmarks
    }

    /// Writes the classes below a node to `row`.
    pub fn below(&self, problem: &Problem, node: u32, row: &mut [u64]) {
        row.fill(0);
        problem.children.get(node).iter().for_each(|&child| unite(row, self.bits.row(child)));
    }

    /// An empty set of classes.
    pub fn none(&self) -> Vec<u64> {
        self.bits.empty()
    }

    /// Whether every derivation of `class` contains `below`.
    pub fn needs(&self, class: u32, below: u32) -> bool {
        self.bits.has(class, below)
    }

    /// The landmarks of a class.
    pub fn of(&self, class: u32) -> &[u64] {
        self.bits.row(class)
    }
}
