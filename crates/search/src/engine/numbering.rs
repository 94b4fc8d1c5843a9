//! `Numbering`: nodes by the order in which they were first met.

use regraft_ir::{Graph, NodeId};

/// Nodes in the order in which they were first met.
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

    /// All nodes, by number.
    pub(super) fn all(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The node with a number.
    pub(super) fn node(&self, number: u16) -> NodeId {
        self.nodes[usize::from(number)]
    }

    /// The number of a node, if it has one.
    pub(super) fn get(&self, id: NodeId) -> Option<u32> {
        self.met.get(id.0 as usize).filter(|(turn, _)| *turn == self.turn).map(|(_, number)| *number)
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
