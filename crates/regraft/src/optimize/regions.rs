//! Where a rewritten graph differs from its original: small pairs of subgraphs that must compute
//! the same.
//!
//! Nodes that survive a rewrite keep their ids. Wherever a surviving node, or an output, reads a
//! different value than before, the old and the new value must be equal. Both are computed from
//! surviving values, which are equal by the same argument further up. If every such pair is equal
//! as a function of the surviving values (taken as free inputs), the graphs compute the same.

use std::collections::{BTreeMap, BTreeSet};

use regraft_ir::{Graph, NodeId, Op, ValueId};

/// Two lists of values, from the graph before and after, that must be equal as functions of
/// `inputs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Values that exist in both graphs and are not computed from constants in either.
    pub inputs: BTreeSet<ValueId>,
    /// Values of the graph before, and their replacements after.
    pub pairs: Vec<(ValueId, ValueId)>,
}

/// Two graphs, one made from the other, and the values where they can be cut.
pub struct Regions<'a> {
    before: &'a Graph,
    after: &'a Graph,
    /// True if a value can be made an input of a region.
    cuttable: &'a dyn Fn(ValueId) -> bool,
    /// Nodes in both graphs, except those whose operands cannot be told apart.
    survivors: BTreeSet<NodeId>,
}

/// The regions in which `after` differs from `before`. Regions end only at `cuttable` values and at
/// outputs.
pub fn regions(
    before: &Graph,
    after: &Graph,
    cuttable: &dyn Fn(ValueId) -> bool,
    nameable: &dyn Fn(ValueId, ValueId) -> bool,
) -> Vec<Region> {
    let same = |id: &NodeId| {
        before.get(*id).zip(after.get(*id)).is_some_and(|(a, b)| a.op == b.op && a.inputs.len() == b.inputs.len() && a.types == b.types)
    };
    let survivors = after.ids().filter(same).collect();
    let mut regions = Regions { before, after, cuttable, survivors };
    let pairs = loop {
        let (pairs, lost) = regions.pairs(nameable);
        if lost.is_empty() {
            break pairs;
        }
        // What cannot be compared before a node is compared after it.
        regions.survivors.retain(|id| !lost.contains(id));
    };
    regions.joined(pairs)
}

impl Regions<'_> {
    /// Pairs of values that must be equal, and nodes that read an unnamed one.
    fn pairs(&self, nameable: &dyn Fn(ValueId, ValueId) -> bool) -> (BTreeSet<(ValueId, ValueId)>, BTreeSet<NodeId>) {
        let (mut pairs, mut lost) = (BTreeSet::new(), BTreeSet::new());
        let differ = |a: ValueId, b: ValueId| a != b || !self.survivors.contains(&a.node);
        for id in &self.survivors {
            for (a, b) in self.before.node(*id).inputs.iter().zip(&self.after.node(*id).inputs) {
                if !differ(*a, *b) {
                    continue;
                }
                if nameable(*a, *b) {
                    pairs.insert((*a, *b));
                } else {
                    lost.insert(*id);
                }
            }
        }
        let outputs = self.before.outputs().iter().zip(self.after.outputs()).map(|(a, b)| (a.value, b.value));
        pairs.extend(outputs.filter(|(a, b)| differ(*a, *b)));
        (pairs, lost)
    }

    /// Nodes that compute `value`, up to the values to cut at, which go to `inputs`. The node that
    /// computes `value` itself is always included.
    fn walk(&self, graph: &Graph, value: ValueId, inputs: &mut BTreeSet<ValueId>) -> BTreeSet<NodeId> {
        let (mut nodes, mut stack, mut seen) = (BTreeSet::new(), vec![value], BTreeSet::new());
        while let Some(at) = stack.pop() {
            if !seen.insert(at) {
                continue;
            }
            let node = graph.node(at.node);
            if matches!(node.op, Op::Input(_)) || at != value && self.is_end(graph, at) {
                inputs.insert(at);
                continue;
            }
            if !node.constant {
                nodes.insert(at.node);
            }
            stack.extend(&node.inputs);
        }
        nodes
    }

    fn is_end(&self, graph: &Graph, value: ValueId) -> bool {
        !graph.node(value.node).constant && self.survivors.contains(&value.node) && (self.cuttable)(value)
    }

    /// The nodes that compute both sides of a pair, and their free inputs. If one side is computed
    /// from the other, it ends there.
    fn sides(&self, a: ValueId, b: ValueId) -> (BTreeSet<ValueId>, Vec<(bool, NodeId)>) {
        let (mut left, mut right) = (BTreeSet::new(), BTreeSet::new());
        let mut old = self.walk(self.before, a, &mut left);
        let mut new = self.walk(self.after, b, &mut right);
        if left.contains(&b) {
            (new, right) = (BTreeSet::new(), BTreeSet::from([b]));
        } else if right.contains(&a) {
            (old, left) = (BTreeSet::new(), BTreeSet::from([a]));
        }
        left.extend(right);
        (left, old.into_iter().map(|id| (false, id)).chain(new.into_iter().map(|id| (true, id))).collect())
    }

    /// Pairs grouped by shared nodes.
    fn joined(&self, pairs: BTreeSet<(ValueId, ValueId)>) -> Vec<Region> {
        let mut regions: Vec<Region> = Vec::new();
        let mut owner: BTreeMap<(bool, NodeId), usize> = BTreeMap::new();
        for (a, b) in pairs {
            let (inputs, nodes) = self.sides(a, b);
            let mut own = Region { inputs, pairs: vec![(a, b)] };
            let at = regions.len();
            let others: BTreeSet<usize> = nodes.iter().filter_map(|node| owner.get(node).copied()).collect();
            for other in others {
                let joined = std::mem::take(&mut regions[other]);
                own.inputs.extend(joined.inputs);
                own.pairs.splice(0..0, joined.pairs);
                owner.values_mut().filter(|region| **region == other).for_each(|region| *region = at);
            }
            owner.extend(nodes.into_iter().map(|node| (node, at)));
            regions.push(own);
        }
        regions.retain(|region| !region.pairs.is_empty());
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::normal::cse;
    use regraft_ir::text::parse;

    fn graph(text: &str) -> Graph {
        parse(text).expect("a graph")
    }

    #[test]
    fn a_graph_differs_from_itself_nowhere() {
        let same = graph("graph (x: f32[4]) { y = Relu(x) output y }");
        assert_eq!(regions(&same, &same.clone(), &|_| true, &|_, _| true), []);
    }

    #[test]
    fn independent_places_are_regions_of_their_own() {
        let before = graph(
            "graph (x: f32[4]) { a = Relu(x) b = Relu(x) c = Add(a, b) d = Sigmoid(c) e = Tanh(d) f = Tanh(d) g = Mul(e, f) output g }",
        );
        let mut after = before.clone();
        assert!(cse(&mut after) > 0);
        let found = regions(&before, &after, &|_| true, &|_, _| true);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|r| r.inputs.len() == 1 && r.pairs.len() == 1), "{found:?}");
        // If nothing can be cut, the whole is one region between the inputs and the outputs.
        let whole = regions(&before, &after, &|_| false, &|_, _| false);
        assert_eq!(whole.len(), 1, "{whole:?}");
        assert_eq!(whole[0].inputs.len(), 1);
    }
}
