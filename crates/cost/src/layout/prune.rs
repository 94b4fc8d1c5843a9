//! Which layouts can be of any use to a value.

use regraft_ir::{Graph, NodeId, ValueId};

use super::kernel::{Kernel, Kernels, bit};
use super::problem::{Layouts, reads};
use super::target::{LayoutId, LayoutTarget, PLAIN};

/// The layouts that an assignment need not do without, value by value.
///
/// Consider values that are connected by nodes where a layout cannot be replaced by the plain one
/// in one operand or result alone. If it can be replaced in all of them together, then an
/// assignment that uses the layout for some of these values can do without: no kernel gets dearer,
/// and no value is changed more often. Changes cost no more either, provided that all changes of a
/// value cost the same. So the layout is of use only where a node gains by it, and to what is
/// connected to that.
pub(super) struct Useful {
    /// By node id: where its results begin.
    first: Vec<u32>,
    /// By result; the plain one always.
    layouts: Vec<Layouts>,
}

impl Useful {
    pub(super) fn of<'k>(target: &LayoutTarget, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Useful {
        let mut useful = Useful { first: Vec::with_capacity(graph.capacity()), layouts: Vec::new() };
        let start = if target.is_uniform() { 1 << PLAIN } else { Layouts::MAX };
        for id in (0..graph.capacity() as u32).map(NodeId) {
            useful.first.push(useful.layouts.len() as u32);
            let results = graph.get(id).map_or(0, |node| node.types.len());
            useful.layouts.resize(useful.layouts.len() + results, start);
        }
        let mut stack = Vec::new();
        for id in graph.ids().filter(|id| !graph.node(*id).constant) {
            let gains = kernels(id).gains;
            for layout in (1..Layouts::BITS as LayoutId).filter(|layout| gains >> layout & 1 == 1) {
                useful.spread(graph, id, kernels(id), layout, &mut stack);
            }
        }
        while let Some((value, layout)) = stack.pop() {
            let maker = graph.node(value.node).inputs.len() + value.port as usize;
            for (id, slot) in reads(graph, value).map(|(user, slot)| (user, slot as usize)).chain([(value.node, maker)]) {
                if kernels(id).coupled[usize::from(layout)] & bit(slot) != 0 {
                    useful.spread(graph, id, kernels(id), layout, &mut stack);
                }
            }
        }
        useful
    }

    /// Makes a layout useful to all values where a node cannot replace it alone.
    fn spread(&mut self, graph: &Graph, id: NodeId, kernels: &Kernels, layout: LayoutId, stack: &mut Vec<(ValueId, LayoutId)>) {
        let node = graph.node(id);
        let results = (0..node.types.len() as u32).map(|port| id.port(port));
        for (slot, value) in node.inputs.iter().copied().chain(results).enumerate() {
            let at = self.at(value);
            let is_new = self.layouts[at] >> layout & 1 == 0;
            if is_new && kernels.coupled[usize::from(layout)] & bit(slot) != 0 && !graph.is_constant(value) {
                self.layouts[at] |= 1 << layout;
                stack.push((value, layout));
            }
        }
    }

    fn at(&self, value: ValueId) -> usize {
        (self.first[value.node.0 as usize] + value.port) as usize
    }

    /// Whether all layouts of a kernel of a node are.
    pub(super) fn admits(&self, graph: &Graph, id: NodeId, kernel: &Kernel) -> bool {
        let is_useful = |value: ValueId, layout: LayoutId| self.layouts[self.at(value)] >> layout & 1 == 1;
        let operands = graph.node(id).inputs.iter().zip(&kernel.operands);
        operands.into_iter().all(|(value, layout)| layout.is_none_or(|layout| is_useful(*value, layout)))
            && kernel.results.iter().enumerate().all(|(port, layout)| is_useful(id.port(port as u32), *layout))
    }
}
