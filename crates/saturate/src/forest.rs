//! `Forest`: why values are equal (Nieuwenhuis and Oliveras, "Proof-producing congruence closure",
//! 2005).

use regraft_ir::NodeId;

/// Why two values were set equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rewrite, by its number.
    Rule(u32),
    /// The same result of two nodes with the same operator on equal operands.
    Congruent(NodeId, NodeId),
}

/// A tree for each class, whose edges are the equalities that made it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    above: Vec<Option<(u32, Reason)>>,
}

impl Forest {
    /// One more value, equal to nothing.
    pub(crate) fn grow(&mut self) {
        self.above.push(None);
    }

    /// Two values of different trees are equal.
    pub(crate) fn join(&mut self, a: u32, b: u32, reason: Reason) {
        // Turns the tree of the first such that it is the root.
        let (mut at, mut above) = (a, Some((b, reason)));
        while let Some(edge) = above {
            let next = self.above[at as usize].replace(edge);
            above = next.map(|(_, reason)| (at, reason));
            let Some((up, _)) = next else { break };
            at = up;
        }
    }

    /// The equalities between two values of one class, in order: where each leads, and why.
    pub(crate) fn path(&self, a: u32, b: u32) -> Vec<(u32, Reason)> {
        let up = |from: u32| {
            let mut chain = vec![from];
            let mut at = from;
            while let Some((next, _)) = self.above[at as usize] {
                chain.push(next);
                at = next;
            }
            chain
        };
        let (mut left, mut right) = (up(a), up(b));
        // What both have in common above their meeting point is no part of the path.
        while left.len() > 1 && right.len() > 1 && left[left.len() - 2] == right[right.len() - 2] {
            left.pop();
            right.pop();
        }
        let reason = |at: u32| self.above[at as usize].map(|(_, reason)| reason);
        let mut path: Vec<(u32, Reason)> = left.windows(2).filter_map(|pair| Some((pair[1], reason(pair[0])?))).collect();
        path.extend(right.windows(2).rev().filter_map(|pair| Some((pair[0], reason(pair[0])?))));
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_one_value_to_the_other() {
        let mut forest = Forest::default();
        (0..7).for_each(|_| forest.grow());
        for (number, (a, b)) in [(0, 1), (2, 3), (1, 2), (5, 4), (4, 0)].into_iter().enumerate() {
            forest.join(a, b, Reason::Rule(number as u32));
        }
        let reasons = |a, b| forest.path(a, b).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>();
        assert_eq!(reasons(0, 3), [Reason::Rule(0), Reason::Rule(2), Reason::Rule(1)]);
        assert_eq!(reasons(3, 0), [Reason::Rule(1), Reason::Rule(2), Reason::Rule(0)]);
        assert_eq!(reasons(5, 1), [Reason::Rule(3), Reason::Rule(4), Reason::Rule(0)]);
        assert_eq!(forest.path(3, 5).last(), Some(&(5, Reason::Rule(3))));
        assert!(forest.path(6, 6).is_empty());
    }
}
