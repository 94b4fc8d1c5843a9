//! `Kernels`: in which layouts a node of a graph can be computed, and at what price.

use regraft_ir::{Bindings, Graph, NodeId};
use smallvec::SmallVec;

use super::problem::Layouts;
use super::subject::{Subject, Typed};
use super::target::{LayoutId, LayoutTarget, PLAIN};
use crate::model::Ns;

/// Operands and results of a node, as bits; those from [`MOST_SLOTS`] on share the last one.
pub(super) type Slots = u64;

/// Operands and results that are told apart.
pub(super) const MOST_SLOTS: usize = Slots::BITS as usize;

/// The bit of an operand, or of a result after these.
pub(super) fn bit(at: usize) -> Slots {
    1 << at.min(MOST_SLOTS - 1)
}

/// A way to compute a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Layouts of the operands; `None` where any will do.
    pub operands: SmallVec<[Option<LayoutId>; 4]>,
    /// Layouts of the results.
    pub results: SmallVec<[LayoutId; 2]>,
    /// What it costs.
    pub price: Ns,
    /// Whether the target takes it at once.
    pub eager: bool,
}

/// The ways to compute a node, the plain one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    /// At least one.
    pub all: Vec<Kernel>,
    /// By layout: the operands and results in which it cannot be replaced by the plain one alone,
    /// without a dearer kernel.
    pub(super) coupled: Vec<Slots>,
    /// The layouts that cannot be replaced in all of these together.
    pub(super) gains: Layouts,
    /// For each result, what changing its layout costs: by the layout before, then by the one
    /// after.
    changes: Vec<Vec<Ns>>,
    /// For each operand and result, what one change of it costs, if all changes cost the same.
    bounds: Vec<Ns>,
    /// Layouts of the target, the plain one included.
    layouts: usize,
}

impl Kernel {
    /// The layouts that occur in it, as bits.
    pub(super) fn layouts(&self) -> Layouts {
        self.operands.iter().flatten().chain(&self.results).fold(0, |all, layout| all | 1 << layout)
    }

    /// Whether the plain layout alone occurs in it.
    pub(super) fn is_plain(&self) -> bool {
        self.layouts() & !(1 << PLAIN) == 0
    }

    /// The layout of an operand, or of a result after these; `None` where any will do.
    fn slot(&self, at: usize) -> Option<LayoutId> {
        self.operands.get(at).copied().unwrap_or_else(|| self.results.get(at - self.operands.len()).copied())
    }

    /// The operands and results in a layout.
    fn slots(&self, layout: LayoutId) -> Slots {
        (0..self.operands.len() + self.results.len()).filter(|at| self.slot(*at) == Some(layout)).fold(0, |slots, at| slots | bit(at))
    }

    /// Whether it is `other` with the plain layout in the place of this one in these operands and
    /// results.
    fn is_without(&self, layout: LayoutId, slots: Slots, other: &Kernel) -> bool {
        let plain = |at: usize, id: LayoutId| if id == layout && slots & bit(at) != 0 { PLAIN } else { id };
        self.operands.len() == other.operands.len()
            && (0..self.operands.len() + self.results.len()).all(|at| self.slot(at) == other.slot(at).map(|id| plain(at, id)))
    }
}

impl Kernels {
    fn new(all: Vec<Kernel>, changes: Vec<Vec<Ns>>, layouts: usize) -> Kernels {
        let mut kernels = Kernels { all, changes, layouts, ..Kernels::default() };
        kernels.survey();
        kernels
    }

    /// Leaves out all kernels but these, and perhaps the first.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&Kernel) -> bool) {
        let is_any = self.all.iter().any(&is_kept);
        if is_any {
            self.all.retain(is_kept);
            self.survey();
        }
    }

    /// Leaves out kernels than which another one is never dearer, whatever is around, if all
    /// changes of a value cost the same: for every operand or result in another layout, one change
    /// more is the most that this can cost (dead-end elimination: Desmet et al., Nature 356, 1992).
    pub(super) fn drop_dominated(&mut self) {
        let replacing = |by: &Kernel, kernel: &Kernel| {
            let differing = (0..self.bounds.len()).filter(|at| by.slot(*at) != kernel.slot(*at));
            differing.fold(by.price, |sum, at| sum.saturating_add(self.bounds[at]))
        };
        let mut left: Vec<usize> = (0..self.all.len()).collect();
        let mut at = 0;
        while at < left.len() && !self.bounds.is_empty() {
            let own = &self.all[left[at]];
            if left.iter().any(|by| *by != left[at] && replacing(&self.all[*by], own) <= own.price) {
                left.remove(at);
            } else {
                at += 1;
            }
        }
        if left.len() < self.all.len() {
            self.all = left.iter().map(|at| self.all[*at].clone()).collect();
            self.survey();
        }
    }

    fn survey(&mut self) {
        let layouts = 1..self.layouts as LayoutId;
        let (coupled, gains): (Vec<Slots>, Vec<bool>) = layouts.map(|layout| self.coupling(layout)).unzip();
        self.coupled = [0].into_iter().chain(coupled).collect();
        self.gains = gains.into_iter().zip(1..).fold(0, |all, (gains, layout)| all | Layouts::from(gains) << layout);
    }

    /// Where a layout cannot be replaced alone, and whether it cannot be replaced there altogether.
    fn coupling(&self, layout: LayoutId) -> (Slots, bool) {
        let replaceable = |slots: Slots| {
            let has = |kernel: &&Kernel| kernel.slots(layout) & slots != 0;
            let mut without = self.all.iter().filter(has);
            without.all(|kernel| self.all.iter().any(|other| other.price <= kernel.price && other.is_without(layout, slots, kernel)))
        };
        let all = self.all.iter().fold(0, |all, kernel| all | kernel.slots(layout));
        let coupled = (0..MOST_SLOTS).map(bit).filter(|slot| all & slot != 0 && !replaceable(*slot)).fold(0, |slots, slot| slots | slot);
        (coupled, coupled != 0 && !replaceable(coupled))
    }

    /// What it costs to bring a result from one layout into others, given as bits, each made from
    /// the one that the node makes.
    pub fn changes(&self, port: u32, from: LayoutId, to: Layouts) -> Ns {
        let row = &self.changes[port as usize][usize::from(from) * self.layouts..][..self.layouts];
        let wanted = (0..self.layouts).filter(|id| *id != usize::from(from) && to >> id & 1 == 1);
        wanted.fold(0, |sum: Ns, id| sum.saturating_add(row[id]))
    }
}

/// The kernels of a node whose plain one costs `price`. They depend on what [`CostModel::price`]
/// depends on.
///
/// [`CostModel::price`]: crate::CostModel::price
pub fn kernels(target: &LayoutTarget, bindings: &Bindings, graph: &Graph, id: NodeId, price: Ns) -> Kernels {
    let node = graph.node(id);
    let layouts = target.layouts.len() + 1;
    let plain = Kernel {
        operands: node.inputs.iter().map(|value| (!graph.is_constant(*value)).then_some(PLAIN)).collect(),
        results: SmallVec::from_elem(PLAIN, node.types.len()),
        price,
        eager: false,
    };
    let Some(subject) = Subject::of(target, bindings, graph, id, price) else {
        // Without sizes nothing is known of other layouts.
        let forbidden: Vec<Ns> = (0..layouts * layouts).map(|at| if at / layouts == at % layouts { 0 } else { Ns::MAX }).collect();
        return Kernels::new(vec![plain], vec![forbidden; node.types.len()], layouts);
    };
    let changes = subject.results.iter().map(|result| {
        let storage = result.storage(target);
        (0..layouts * layouts).map(|at| storage.change((at / layouts) as LayoutId, (at % layouts) as LayoutId)).collect()
    });
    let change = |tensor: &Typed| target.changes.first().map_or(Ns::MAX, |change| change.rate.of(tensor.dtype.bytes(&tensor.shape)));
    let operands = subject.operands.iter().map(|operand| operand.as_ref().map_or(0, change));
    let bounds = operands.chain(subject.results.iter().map(change)).collect();
    let changes = changes.collect();
    Kernels { bounds, ..Kernels::new(subject.kernels(plain), changes, layouts) }
}
