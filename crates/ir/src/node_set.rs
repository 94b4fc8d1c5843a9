//! `NodeSet`: a set of nodes.

use smallvec::{SmallVec, smallvec};

use crate::graph::{Graph, NodeId};

/// A set of nodes, by id.
#[derive(Clone, Debug, Default)]
pub struct NodeSet(SmallVec<[u64; 16]>);

impl NodeSet {
    /// These nodes, with room for all of the graph.
    pub fn of(graph: &Graph, ids: impl Iterator<Item = NodeId>) -> NodeSet {
        let mut set = NodeSet(smallvec![0u64; graph.capacity() / 64 + 1]);
        ids.for_each(|id| {
            set.insert(id);
        });
        set
    }

    /// Adds a node; whether it was not there before.
    pub fn insert(&mut self, id: NodeId) -> bool {
        // A node that was removed may lie beyond the graph's capacity.
        let (word, bit) = (id.0 as usize / 64, 1 << (id.0 % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Whether a node is in the set.
    pub fn contains(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }
}
