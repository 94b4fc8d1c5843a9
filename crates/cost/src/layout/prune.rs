//! Which layouts can be of any use to a node.

use regraft_ir::{Graph, NodeId};

use super::kernel::Kernels;
use super::problem::Layouts;
use super::target::{LayoutId, LayoutTarget};

/// By node id, the layouts that an assignment need not do without.
///
/// Consider the nodes that know a layout and are connected by values between such nodes. If each of
/// them would do as well with the plain layout in its place, so would all of them together: changes
/// between these nodes cost nothing either way, and others cost no more, provided that all changes of
/// a value cost the same. So some of them must gain by it.
pub(super) fn useful<'k>(target: &LayoutTarget, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Vec<Layouts> {
    if !target.is_uniform() {
        return vec![Layouts::MAX; graph.capacity()];
    }
    let mut useful = vec![1; graph.capacity()];
    let mut stack = Vec::new();
    for id in graph.ids().filter(|id| !graph.node(*id).constant) {
        for layout in 1..=target.layouts.len() as LayoutId {
            if kernels(id).gains >> layout & 1 == 1 && useful[id.0 as usize] >> layout & 1 == 0 {
                useful[id.0 as usize] |= 1 << layout;
                stack.push((id, layout));
            }
        }
    }
    while let Some((id, layout)) = stack.pop() {
        let node = graph.node(id);
        for other in node.inputs.iter().map(|value| value.node).chain(node.users.iter().map(|(user, _)| *user)) {
            let is_new = !graph.node(other).constant && useful[other.0 as usize] >> layout & 1 == 0 && kernels(other).knows >> layout & 1 == 1;
            if is_new {
                useful[other.0 as usize] |= 1 << layout;
                stack.push((other, layout));
            }
        }
    }
    useful
}
