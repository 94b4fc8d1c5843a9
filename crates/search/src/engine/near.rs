//! `Near`: a set of nodes in a few words.

use regraft_ir::NodeId;

/// Words of a [`Near`].
const WORDS: usize = 8;

/// A set of nodes in which some count as one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near([u64; WORDS]);

impl Near {
    /// These nodes.
    pub(super) fn of(ids: impl IntoIterator<Item = NodeId>) -> Near {
        let mut near = Near::default();
        for id in ids {
            let at = id.0 as usize % (64 * WORDS);
            near.0[at / 64] |= 1 << (at % 64);
        }
        near
    }

    /// Whether a node may be in both sets.
    pub(super) fn meets(&self, other: &Near) -> bool {
        self.0.iter().zip(&other.0).fold(0, |common, (a, b)| common | (a & b)) != 0
    }

    /// The nodes of either.
    pub(super) fn and(&self, other: &Near) -> Near {
        Near(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_nodes_meet_where_a_node_is_in_both() {
        let near = |ids: &[u32]| Near::of(ids.iter().map(|id| NodeId(*id)));
        assert!(near(&[1, 700]).meets(&near(&[2, 700])));
        assert!(!near(&[1, 700]).meets(&near(&[2, 701])));
        assert!(near(&[1]).and(&near(&[2])).meets(&near(&[2])));
    }
}
