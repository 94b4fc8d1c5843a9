//! `Inquiries`: what was asked to find the moves of a state.

use std::sync::Arc;

use regraft_ir::{NodeId, NodeSet};
use smallvec::SmallVec;

use super::near::Near;

/// Nodes of a block.
const BLOCK: usize = 32;

/// The nodes that were asked about to find the moves at one node: while they stay as they are, the
/// same moves are found there.
#[derive(Debug)]
pub(super) struct Inquiry {
    near: Near,
    nodes: SmallVec<[NodeId; 16]>,
}

impl Inquiry {
    /// About these nodes.
    pub(super) fn about(nodes: impl Iterator<Item = NodeId>) -> Inquiry {
        let nodes: SmallVec<[NodeId; 16]> = nodes.collect();
        Inquiry { near: Near::of(nodes.iter().copied()), nodes }
    }
}

/// An [`Inquiry`] for every node at which rules were matched; states share what they have in
/// common.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    /// By id.
    blocks: Vec<Arc<Block>>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    near: Near,
    of: [Option<Arc<Inquiry>>; BLOCK],
    /// Those that would be answered otherwise now: a bit each.
    outdated: u32,
}

impl Inquiries {
    /// The nodes at which moves may have changed with these nodes, ascending.
    pub(super) fn touched(&self, near: &Near, dirty: &NodeSet) -> Vec<NodeId> {
        let mut touched = Vec::new();
        for (at, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.near.meets(near)) {
            for (place, inquiry) in block.of.iter().enumerate() {
                let Some(inquiry) = inquiry else { continue };
                if inquiry.near.meets(near) && inquiry.nodes.iter().any(|id| dirty.contains(*id)) {
                    touched.push(NodeId((at * BLOCK + place) as u32));
                }
            }
        }
        touched
    }

    /// Whether there is no answer for a node, or an outdated one.
    pub(super) fn is_open(&self, id: NodeId) -> bool {
        let (at, place) = (id.0 as usize / BLOCK, id.0 as usize % BLOCK);
        self.blocks.get(at).is_none_or(|block| block.of[place].is_none() || block.outdated >> place & 1 == 1)
    }

    /// Notes that the answers for some nodes may be others now.
    pub(super) fn outdate(&mut self, ids: impl Iterator<Item = NodeId>) {
        for id in ids.filter(|id| !self.is_open(*id)).collect::<SmallVec<[NodeId; 16]>>() {
            Arc::make_mut(&mut self.blocks[id.0 as usize / BLOCK]).outdated |= 1 << (id.0 as usize % BLOCK);
        }
    }

    /// Replaces those of some nodes.
    pub(super) fn replace(&mut self, by: Vec<(NodeId, Arc<Inquiry>)>) {
        for (id, inquiry) in by {
            let (at, place) = (id.0 as usize / BLOCK, id.0 as usize % BLOCK);
            if at >= self.blocks.len() {
                self.blocks.resize_with(at + 1, Arc::default);
            }
            let block = Arc::make_mut(&mut self.blocks[at]);
            block.near = block.near.and(&inquiry.near);
            block.of[place] = Some(inquiry);
            block.outdated &= !(1 << place);
        }
    }
}
