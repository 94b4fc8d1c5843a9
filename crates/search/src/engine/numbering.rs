//! `Numbering`: nodes by the order in which they were first met.

use regraft_ir::{Graph, NodeId};

/// The first number that stands for an input of the graph that was not met.
const INPUTS: u32 = 1 << 31;

/// Nodes in the order in which they were first met.
///
/// Inputs of the graph have numbers of their own, which they keep until they are met: wherever a
/// place is, rules may read the sizes of inputs.
#[derive(Default)]
pub(super) struct Numbering {
    nodes: Vec<NodeId>,
    /// For each node of the graph, the turn in which it was met last, and its number then.
    met: Vec<(u32, u32)>,
    turn: u32,
}

impl Numbering {
    /// Begins anew with these nodes.
    pub(super) fn begin(&mut self, graph: &Graph, first: &[NodeId]) {
        if self.met.len() < graph.capacity() || self.turn == u32::MAX {
            (self.met, self.turn) = (vec![(0, 0); graph.capacity()], 0);
        }
        self.turn += 1;
        self.nodes.clear();
        first.iter().for_each(|id| {
            self.number(*id);
        });
    }

    /// How many nodes were met.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node with a number.
    pub(super) fn node(&self, graph: &Graph, number: u32) -> NodeId {
        if number >= INPUTS { graph.inputs()[(number - INPUTS) as usize] } else { self.nodes[number as usize] }
    }

    /// The number of a node, if it has one.
    pub(super) fn get(&self, graph: &Graph, id: NodeId) -> Option<u32> {
        let met = self.met.get(id.0 as usize).filter(|(turn, _)| *turn == self.turn).map(|(_, number)| *number);
        let input = || graph.inputs().iter().position(|input| *input == id).map(|at| INPUTS + at as u32);
        met.or_else(input)
    }

    /// The number of a node: the next one, if it has none.
    pub(super) fn number(&mut self, id: NodeId) -> u64 {
        let met = &mut self.met[id.0 as usize];
        if met.0 != self.turn {
            *met = (self.turn, self.nodes.len() as u32);
            self.nodes.push(id);
        }
        u64::from(met.1)
    }
}
