//! `Kernels`: in which layouts a node of a graph can be computed, and at what price.

use regraft_ir::{Bindings, DType, Graph, NodeId, Op, OpKind, ValueId};
use smallvec::SmallVec;

use super::problem::Layouts;
use super::storage::{Storage, is_view};
use super::target::{Condition, KernelPrice, KernelSpec, LayoutId, LayoutTarget, PLAIN};
use crate::model::Ns;
use crate::roofline::is_fused;
use crate::workload::Workload;

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
    /// By layout: the operands and results in which it cannot be replaced by the plain one alone, without
    /// a dearer kernel.
    pub(super) coupled: Vec<Slots>,
    /// The layouts that cannot be replaced in all of these together.
    pub(super) gains: Layouts,
    /// For each result, what changing its layout costs: by the layout before, then by the one after.
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

    /// Whether it is `other` with the plain layout in the place of this one in these operands and results.
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

    /// Leaves out kernels than which another one is never dearer, whatever is around, if all changes of a
    /// value cost the same: for every operand or result in another layout, one change more is the most
    /// that this can cost (dead-end elimination: Desmet et al., Nature 356, 1992).
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

    /// What it costs to bring a result from one layout into others, given as bits, each made from the
    /// one that the node makes.
    pub fn changes(&self, port: u32, from: LayoutId, to: Layouts) -> Ns {
        let row = &self.changes[port as usize][usize::from(from) * self.layouts..][..self.layouts];
        let wanted = (0..self.layouts).filter(|id| *id != usize::from(from) && to >> id & 1 == 1);
        wanted.fold(0, |sum: Ns, id| sum.saturating_add(row[id]))
    }
}

/// A value's type under concrete sizes.
struct Typed {
    dtype: DType,
    shape: Vec<usize>,
}

/// What is known about a node when its kernels are made.
struct Subject<'t> {
    target: &'t LayoutTarget,
    graph: &'t Graph,
    bindings: &'t Bindings,
    id: NodeId,
    /// `None` for constants: they come in any layout.
    operands: Vec<Option<Typed>>,
    results: Vec<Typed>,
    /// What the plain kernel costs.
    price: Ns,
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

impl Typed {
    fn of(graph: &Graph, bindings: &Bindings, value: ValueId) -> Option<Typed> {
        let ty = graph.ty(value)?;
        Some(Typed { dtype: ty.dtype, shape: ty.bind(bindings)? })
    }

    fn storage<'t>(&'t self, target: &'t LayoutTarget) -> Storage<'t> {
        Storage { target, dtype: self.dtype, shape: &self.shape }
    }
}

impl<'t> Subject<'t> {
    fn of(target: &'t LayoutTarget, bindings: &'t Bindings, graph: &'t Graph, id: NodeId, price: Ns) -> Option<Subject<'t>> {
        let node = graph.node(id);
        let operand = |value: &ValueId| {
            if graph.is_constant(*value) { Some(None) } else { Typed::of(graph, bindings, *value).map(Some) }
        };
        let operands = node.inputs.iter().map(operand).collect::<Option<_>>()?;
        let results = (0..node.types.len() as u32).map(|port| Typed::of(graph, bindings, id.port(port))).collect::<Option<_>>()?;
        Some(Subject { target, graph, bindings, id, operands, results, price })
    }

    fn kernels(&self, mut plain: Kernel) -> Vec<Kernel> {
        let node = self.graph.node(self.id);
        if node.constant || matches!(node.op, Op::Input(_)) {
            return vec![plain];
        }
        for (slot, operand) in plain.operands.iter_mut().enumerate() {
            *operand = operand.filter(|_| !self.is_single(slot));
        }
        let kind = node.op.kind();
        let mut all = vec![plain];
        for spec in self.target.kernels.iter().filter(|spec| spec.is_of(kind) && self.meets(spec)) {
            let Some(price) = self.priced(spec) else { continue };
            for id in &spec.each {
                let id = self.target.id(id).unwrap_or(PLAIN);
                self.add(&mut all, &vec![vec![id]; self.operands.len()], &[id], price, spec.eager);
            }
            if let Some(last) = spec.operands.last() {
                let texts = (0..self.operands.len()).map(|slot| spec.operands.get(slot).unwrap_or(last));
                let operands: Vec<Vec<LayoutId>> = texts.map(|text| self.target.alternatives(text)).collect();
                let results: Vec<LayoutId> = spec.results.iter().flat_map(|text| self.target.alternatives(text)).collect();
                self.add(&mut all, &operands, &results, price, spec.eager);
            }
        }
        if let (true, Op::Transpose(op), [Some(operand)], [result]) = (self.target.views, &node.op, &self.operands[..], &self.results[..]) {
            let layouts = || PLAIN..=self.target.layouts.len() as LayoutId;
            for (from, to) in layouts().flat_map(|from| layouts().map(move |to| (from, to))) {
                if is_view(operand.storage(self.target), from, &op.perm, result.storage(self.target), to) {
                    self.add(&mut all, &[vec![from]], &[to], 0, false);
                }
            }
        }
        if self.target.lists_include_changes {
            self.take_out_changes(&mut all);
        }
        all
    }

    /// Adds a kernel for every choice of the alternatives of each operand, and of the layout of all
    /// results, that the types admit. Of kernels between the same layouts the cheapest stays.
    fn add(&self, all: &mut Vec<Kernel>, operands: &[Vec<LayoutId>], results: &[LayoutId], price: Ns, eager: bool) {
        let mut choices: Vec<SmallVec<[Option<LayoutId>; 4]>> = vec![SmallVec::new()];
        for (slot, alternatives) in operands.iter().enumerate() {
            let Some(operand) = self.operands[slot].as_ref().filter(|_| !self.is_single(slot)) else {
                choices.iter_mut().for_each(|choice| choice.push(None));
                continue;
            };
            let storage = operand.storage(self.target);
            let mut admitted: Vec<LayoutId> =
                alternatives.iter().filter(|id| storage.admits(**id)).map(|id| storage.canonical(*id)).collect();
            admitted.sort_unstable();
            admitted.dedup();
            let with = |choice: &SmallVec<[Option<LayoutId>; 4]>, id: LayoutId| choice.iter().copied().chain([Some(id)]).collect();
            choices = choices.iter().flat_map(|choice| admitted.iter().map(move |id| with(choice, *id))).collect();
        }
        for to in results {
            let of: Option<SmallVec<[LayoutId; 2]>> = self
                .results
                .iter()
                .map(|result| result.storage(self.target).admits(*to).then(|| result.storage(self.target).canonical(*to)))
                .collect();
            let Some(of) = of else { continue };
            for choice in &choices {
                match all.iter_mut().find(|kernel| kernel.operands == *choice && kernel.results == of) {
                    Some(known) => known.price = known.price.min(price),
                    None => all.push(Kernel { operands: choice.clone(), results: of.clone(), price, eager }),
                }
            }
        }
    }

    fn is_single(&self, slot: usize) -> bool {
        self.operands[slot].as_ref().is_some_and(|operand| operand.storage(self.target).is_single())
    }

    fn meets(&self, spec: &KernelSpec) -> bool {
        spec.when.iter().all(|condition| match condition {
            Condition::Attribute { name, is } => self.graph.node(self.id).op.attr(name).is_some_and(|attr| attr.to_string() == *is),
            Condition::Size { operand, axis, at_least, at_most, multiple_of } => {
                let size = match operand {
                    None => self.results.first().and_then(|result| result.shape.get(*axis).copied()),
                    Some(operand) => self.size(*operand, *axis),
                };
                size.is_some_and(|size| (*at_least..=*at_most).contains(&size) && size % multiple_of == 0)
            }
            Condition::Sizes { axis, multiple_of } => {
                (0..self.operands.len()).all(|operand| self.size(operand, *axis).is_some_and(|size| size % multiple_of == 0))
            }
            Condition::Rank { is } => self.results.first().is_some_and(|result| result.shape.len() == *is),
            Condition::SameShapes => {
                let shape = self.results.first().map(|result| &result.shape);
                self.operands.iter().all(|operand| operand.as_ref().map(|operand| &operand.shape) == shape)
            }
        })
    }

    /// A size of an operand, which may be a constant.
    fn size(&self, operand: usize, axis: usize) -> Option<usize> {
        let value = *self.graph.node(self.id).inputs.get(operand)?;
        let size = self.graph.ty(value)?.shape.get(axis)?.eval(self.bindings)?;
        usize::try_from(size).ok()
    }

    fn priced(&self, spec: &KernelSpec) -> Option<Ns> {
        let inside = spec.within.as_ref().map_or(0, |within| self.changes_within(self.target.id(within).unwrap_or(PLAIN)));
        let price = match spec.price {
            KernelPrice::Same => self.price,
            KernelPrice::Times(factor) => (factor * self.price as f64).round() as Ns,
            KernelPrice::Machine(machine) if !is_fused(self.graph, self.id) => {
                machine.time(&Workload::of(self.graph, self.bindings, self.id)?) as Ns
            }
            KernelPrice::Machine(_) => 0,
            KernelPrice::Rate(rate) => {
                let result = self.results.first()?;
                rate.of(result.dtype.bytes(&result.shape))
            }
        };
        Some(price.saturating_add(inside))
    }

    /// What it costs to bring all operands from the plain layout into another one, and the results back.
    fn changes_within(&self, layout: LayoutId) -> Ns {
        let cost = |(tensor, from, to): (&Typed, LayoutId, LayoutId)| {
            let storage = tensor.storage(self.target);
            if storage.admits(layout) { storage.change(from, to) } else { 0 }
        };
        let operands = self.operands.iter().flatten().map(|operand| (operand, PLAIN, layout));
        operands.chain(self.results.iter().map(|result| (result, layout, PLAIN))).map(cost).fold(0, Ns::saturating_add)
    }

    /// Takes the changes out of prices that the list charged for: those towards operators that know the
    /// plain layout alone, and from those that are eager to leave it.
    fn take_out_changes(&self, all: &mut [Kernel]) {
        let node = self.graph.node(self.id);
        let specs = |kind: OpKind| self.target.kernels.iter().filter(move |spec| spec.is_of(kind));
        for kernel in all {
            let mut listed: Ns = 0;
            for ((value, operand), layout) in node.inputs.iter().zip(&self.operands).zip(&kernel.operands) {
                let (Some(operand), Some(layout)) = (operand, *layout) else { continue };
                let kind = self.graph.node(value.node).op.kind();
                let eager = specs(kind).find(|spec| spec.eager);
                let from = match (specs(kind).next(), eager) {
                    (None, _) => PLAIN,
                    (_, Some(spec)) => spec.results.first().or(spec.each.first()).and_then(|name| self.target.id(name)).unwrap_or(PLAIN),
                    _ => continue,
                };
                let storage = operand.storage(self.target);
                if storage.admits(from) {
                    listed = listed.saturating_add(storage.change(from, layout));
                }
            }
            if self.graph.feeds_output(self.id) {
                let results = self.results.iter().zip(&kernel.results);
                let back = results.map(|(result, layout)| result.storage(self.target).change(*layout, PLAIN));
                listed = back.fold(listed, Ns::saturating_add);
            }
            kernel.price = kernel.price.saturating_sub(listed);
        }
    }
}

impl KernelSpec {
    fn is_of(&self, kind: OpKind) -> bool {
        self.operators.iter().any(|name| OpKind::from_name(name) == Some(kind))
    }
}
