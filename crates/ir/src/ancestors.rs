//! `Ancestors`: what nodes of one graph are computed from, for many questions about it.

use smallvec::SmallVec;

use crate::graph::{Graph, NodeId};
use crate::node_set::NodeSet;

/// What a visit of a node costs, in words of a row.
const VISIT: usize = 16;
/// Of larger graphs, rows take too much memory: those of one of this size take 32 MiB.
const MOST: usize = 1 << 14;

/// Answers whether nodes of a graph depend on others, as [`Graph::depends`] does.
///
/// The first answers come from walks. Once these have taken as long as finding out what every node
/// depends on, that is found out, a row of bits per node, and each further answer is a bit.
#[derive(Clone, Debug)]
pub struct Ancestors<'g> {
    graph: &'g Graph,
    /// Words of a row; none if rows are not found out yet.
    words: usize,
    /// For each node, the nodes that it is computed from.
    rows: Vec<u64>,
    /// Nodes whose row is known.
    known: NodeSet,
    /// Nodes that walks have visited.
    visited: usize,
}

impl<'g> Ancestors<'g> {
    /// Nothing is found out yet.
    pub fn of(graph: &'g Graph) -> Ancestors<'g> {
        Ancestors { graph, words: 0, rows: Vec::new(), known: NodeSet::default(), visited: 0 }
    }

    /// Whether one of some nodes is, or is computed from, one of others.
    pub fn depends(&mut self, from: impl IntoIterator<Item = NodeId>, on: &[NodeId]) -> bool {
        if self.words == 0 {
            let graph = self.graph;
            let (nodes, words) = (graph.capacity(), graph.capacity().div_ceil(64));
            if nodes > MOST || self.visited * VISIT <= nodes * (2 * words + VISIT) {
                return graph.walk(from, on, &mut self.visited);
            }
            self.words = words;
            self.rows = vec![0; words * nodes];
            self.known = NodeSet::of(graph, std::iter::empty());
        }
        from.into_iter().any(|id| on.contains(&id) || on.iter().any(|other| self.is_above(*other, id)))
    }

    /// Whether a node is computed from another one.
    fn is_above(&mut self, above: NodeId, id: NodeId) -> bool {
        self.find(id);
        self.rows[id.0 as usize * self.words + above.0 as usize / 64] >> (above.0 % 64) & 1 == 1
    }

    /// Finds out the row of a node, and those of the nodes above it.
    fn find(&mut self, id: NodeId) {
        let mut stack: SmallVec<[NodeId; 32]> = SmallVec::from_iter([id]);
        while let Some(id) = stack.last().copied() {
            if self.known.contains(id) {
                stack.pop();
                continue;
            }
            let graph = self.graph;
            let operands = || graph.node(id).inputs.iter().map(|value| value.node);
            let waiting = stack.len();
            stack.extend(operands().filter(|id| !self.known.contains(*id)));
            if stack.len() > waiting {
                continue;
            }
            let (words, own) = (self.words, id.0 as usize * self.words);
            for operand in operands() {
                let other = operand.0 as usize * words;
                for at in 0..words {
                    self.rows[own + at] |= self.rows[other + at];
                }
                self.rows[own + operand.0 as usize / 64] |= 1 << (operand.0 % 64);
            }
            self.known.insert(id);
            stack.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::op::Op;
    use crate::ops::activation::Relu;
    use crate::ops::arithmetic::Add;
    use crate::ty::TensorType;

    #[test]
    fn rows_answer_as_walks_do() {
        let mut graph = Graph::new("ladder");
        let x = graph.add_input("x", TensorType::new(DType::F32, [2i64]));
        let y = graph.add_input("y", TensorType::new(DType::F32, [2i64]));
        let mut sides = [x, y];
        for at in 0..150 {
            let (from, to) = (at % 2, (at / 3) % 2);
            let relu = graph.add(Op::Relu(Relu {}), &[sides[from]]).expect("a type").out();
            sides[to] = if at % 5 == 0 { graph.add(Op::Add(Add {}), &sides).expect("a type").out() } else { relu };
        }
        let ids: Vec<NodeId> = graph.ids().collect();
        let mut answers = [0, 0];
        for round in 0..2 {
            let mut ancestors = Ancestors::of(&graph);
            for id in ids.iter().rev() {
                for other in &ids {
                    let answer = graph.depends([*id], &[*other]);
                    assert_eq!(ancestors.depends([*id], &[*other]), answer, "{id:?} on {other:?} in round {round}");
                    answers[usize::from(answer)] += 1;
                }
            }
            assert!(ancestors.words > 0, "rows were never found out");
        }
        assert!(answers.iter().all(|count| *count > 1000), "{answers:?}");
    }
}
