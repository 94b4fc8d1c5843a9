//! `Inquiries`: what was asked to find the moves of a state.

use std::sync::Arc;

use regraft_ir::NodeId;

use super::near::Near;
use super::node_set::NodeSet;

/// Nodes of a block.
const BLOCK: usize = 32;

/// The nodes that were asked about to find the moves at one node: as long as they stay as they are,
/// so do the moves.
#[derive(Debug)]
pub(super) struct Inquiry {
    near: Near,
    nodes: Vec<NodeId>,
}

impl Inquiry {
    /// About these nodes.
    pub(super) fn about(nodes: impl Iterator<Item = NodeId>) -> Inquiry {
        let nodes: Vec<NodeId> = nodes.collect();
        Inquiry { near: Near::of(nodes.iter().copied()), nodes }
    }
}

/// An [`Inquiry`] for every node at which rules were matched; states share what they have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    /// By id.
    blocks: Vec<Arc<Block>>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    near: Near,
    of: [Option<Arc<Inquiry>>; BLOCK],
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
        }
    }
}
