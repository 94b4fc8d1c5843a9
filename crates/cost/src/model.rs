//! What a cost model is, and what a cost means.

use regraft_ir::{Bindings, Graph, NodeId};

use crate::layout::LaidOut;

/// A cost in nanoseconds of the target machine, elapsed with the threads that a model runs on.
///
/// Integers, so that sums do not depend on order and undoing a change restores a total bit for bit.
/// Sums saturate; [`Ns::MAX`] means "cannot run".
pub type Ns = u64;

/// Prices the nodes of a graph.
///
/// Laws: a node that depends only on constants costs 0; the price of a node depends only on the
/// node itself, the kinds of its operands' producers, whether those have another reader, and the
/// kinds of its own readers (so a local change moves only local prices); re-creating an identical
/// node gives an identical price.
pub trait CostModel: Sync {
    /// The price of one execution of this node in its context.
    fn price(&self, graph: &Graph, id: NodeId) -> Ns;

    /// What one run costs besides its nodes.
    fn overhead(&self) -> Ns {
        0
    }

    /// The layouts to choose from; without them, a graph costs what its nodes cost. With them,
    /// [`CostModel::price`] is that of the plain kernel of a node.
    fn layouts(&self) -> Option<&LaidOut<'_>> {
        None
    }

    /// The sizes that it prices at, if they are the same for all that it knows.
    fn bindings(&self) -> Option<&Bindings> {
        None
    }

    /// The price of a whole graph.
    fn total(&self, graph: &Graph) -> Ns {
        graph.ids().fold(self.overhead(), |sum, id| sum.saturating_add(self.price(graph, id)))
    }
}
