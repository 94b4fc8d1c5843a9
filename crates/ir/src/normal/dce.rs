//! Dead-code removal.

use smallvec::SmallVec;

use crate::graph::{Graph, NodeId};
use crate::normal::{Step, removed};
use crate::op::OpKind;
use crate::patch::{Patch, PatchValue};

/// The cause recorded in patches of [`dce`].
pub const DCE: &str = "normal-form: dead code";

/// Removes every node that no output depends on, opaque ones included; declared inputs stay.
/// Returns how many were removed.
pub fn dce(graph: &mut Graph) -> usize {
    removed(&dce_steps(graph))
}

/// [`dce`] with its trail: one patch per unread node, which also removes what only that node read.
pub fn dce_steps(graph: &mut Graph) -> Vec<Step> {
    let unread = |id: &NodeId| {
        let node = graph.node(*id);
        node.users.is_empty() && !matches!(node.op.kind(), OpKind::Input) && !graph.feeds_output(*id)
    };
    let dead: Vec<NodeId> = graph.ids().filter(unread).collect();
    dead.into_iter().map(|id| Step::take(graph, removal(id))).collect()
}

/// The patch that replaces an unread value by itself, after which nothing reads its node.
fn removal(id: NodeId) -> Patch {
    Patch { cause: DCE.into(), create: Vec::new(), replace: SmallVec::from_iter([(id.out(), PatchValue::Old(id.out()))]) }
}
