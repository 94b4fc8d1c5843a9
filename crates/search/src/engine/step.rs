//! `Step`: an applied move, and what is needed to undo it.

use regraft_cost::Ns;
use regraft_ir::{Applied, Graph, NodeId};
use smallvec::SmallVec;

use super::facts::Facts;

/// A short list of nodes, sorted and without duplicates.
pub(super) type Nodes = SmallVec<[NodeId; 24]>;

/// An applied move.
pub(super) struct Step {
    /// What the patch changed.
    pub(super) applied: Applied,
    /// As in the [`Move`](super::Move).
    pub(super) adds_paths: bool,
    /// As in the [`Move`](super::Move).
    pub(super) drops_paths: bool,
    /// Where the previous facts of nodes that this step changed begin in the log.
    pub(super) facts: usize,
    /// The previous key.
    pub(super) key: u128,
    /// What nodes cost before, each by itself.
    pub(super) sum: Ns,
    /// The previous cost.
    pub(super) cost: Ns,
    /// What the outputs added to the key before.
    pub(super) outputs_share: u128,
}

impl Step {
    /// Nodes that it created, rewired, or whose readers it changed.
    pub(super) fn dirty(&self, graph: &Graph) -> Nodes {
        let mut dirty = Nodes::new();
        dirty.extend(self.applied.created.iter().copied());
        for created in &self.applied.created {
            dirty.extend(producers(graph, *created));
        }
        for (reader, _, old) in &self.applied.rewired {
            dirty.push(*reader);
            dirty.push(old.node);
            dirty.extend(producers(graph, *reader));
        }
        for (id, node) in &self.applied.removed {
            dirty.push(*id);
            dirty.extend(node.inputs.iter().map(|v| v.node));
        }
        for (index, old) in &self.applied.outputs {
            dirty.push(old.node);
            dirty.push(graph.outputs()[*index].value.node);
        }
        sort(&mut dirty);
        dirty
    }
}

/// Nodes that read another value than before a patch; those that it made are not among them.
pub(super) fn rewired(graph: &Graph, applied: &Applied) -> Nodes {
    let mut rewired: Nodes = applied.rewired.iter().map(|(reader, ..)| *reader).filter(|id| graph.get(*id).is_some()).collect();
    sort(&mut rewired);
    rewired
}

/// Nodes whose price a patch may have changed; those that it made are not among them. `facts` are
/// those before it, and `read` the nodes that it reads or puts in the place of others.
///
/// Prices depend on producers and readers one hop away, so both sides of every changed edge count.
pub(super) fn repriced(graph: &Graph, facts: &Facts<'_>, applied: &Applied, read: impl Iterator<Item = NodeId>) -> Nodes {
    let is_old = |id: &NodeId| applied.created.first().is_none_or(|first| id < first);
    let mut touched: Nodes = read.collect();
    for (_, node) in &applied.removed {
        touched.extend(node.inputs.iter().map(|v| v.node));
    }
    for (reader, _, old) in &applied.rewired {
        touched.push(*reader);
        touched.push(old.node);
    }
    for (index, old) in &applied.outputs {
        touched.push(old.node);
        touched.extend(Some(graph.outputs()[*index].value.node).filter(is_old));
    }
    sort(&mut touched);
    touched.retain(|id| graph.get(*id).is_some());
    // An operator that lost or gained a reader may now have a single one, or no longer: that
    // changes the cost of its readers.
    let changed = touched.len();
    for at in 0..changed {
        let node = graph.node(touched[at]);
        if !node.constant && facts[touched[at]].has_one_reader != (node.users.len() == 1) {
            touched.extend(node.users.iter().map(|(user, _)| *user).filter(is_old));
        }
    }
    if touched.len() > changed {
        sort(&mut touched);
    }
    touched
}

/// The nodes that a node reads; none if it was removed.
fn producers(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    graph.get(id).into_iter().flat_map(|n| n.inputs.iter().map(|v| v.node))
}

fn sort(nodes: &mut Nodes) {
    nodes.sort_unstable();
    nodes.dedup();
}
