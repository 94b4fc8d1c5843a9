//! `Subject`: a node of a graph, as far as its kernels depend on it.

use regraft_ir::{Bindings, DType, Graph, NodeId, Op, OpKind, ValueId};
use smallvec::SmallVec;

use super::kernel::Kernel;
use super::spec::{Condition, KernelPrice, KernelSpec};
use super::storage::{Storage, is_view};
use super::target::{LayoutId, LayoutTarget, PLAIN};
use crate::model::Ns;
use crate::roofline::is_fused;
use crate::workload::Workload;

/// A value's type under concrete sizes.
pub(super) struct Typed {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
}

/// What is known about a node when its kernels are made.
pub(super) struct Subject<'t> {
    target: &'t LayoutTarget,
    graph: &'t Graph,
    bindings: &'t Bindings,
    id: NodeId,
    /// `None` for constants: they come in any layout.
    pub(super) operands: Vec<Option<Typed>>,
    pub(super) results: Vec<Typed>,
    /// What the plain kernel costs.
    price: Ns,
}

impl Typed {
    fn of(graph: &Graph, bindings: &Bindings, value: ValueId) -> Option<Typed> {
        let ty = graph.ty(value)?;
        Some(Typed { dtype: ty.dtype, shape: ty.bind(bindings)? })
    }

    pub(super) fn storage<'t>(&'t self, target: &'t LayoutTarget) -> Storage<'t> {
        Storage { target, dtype: self.dtype, shape: &self.shape }
    }
}

impl<'t> Subject<'t> {
    pub(super) fn of(target: &'t LayoutTarget, bindings: &'t Bindings, graph: &'t Graph, id: NodeId, price: Ns) -> Option<Subject<'t>> {
        let node = graph.node(id);
        let operand = |value: &ValueId| {
            if graph.is_constant(*value) { Some(None) } else { Typed::of(graph, bindings, *value).map(Some) }
        };
        let operands = node.inputs.iter().map(operand).collect::<Option<_>>()?;
        let results = (0..node.types.len() as u32).map(|port| Typed::of(graph, bindings, id.port(port))).collect::<Option<_>>()?;
        Some(Subject { target, graph, bindings, id, operands, results, price })
    }

    pub(super) fn kernels(&self, mut plain: Kernel) -> Vec<Kernel> {
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

    /// What it costs to bring all operands from the plain layout into another one, and the results
    /// back.
    fn changes_within(&self, layout: LayoutId) -> Ns {
        let cost = |(tensor, from, to): (&Typed, LayoutId, LayoutId)| {
            let storage = tensor.storage(self.target);
            if storage.admits(layout) { storage.change(from, to) } else { 0 }
        };
        let operands = self.operands.iter().flatten().map(|operand| (operand, PLAIN, layout));
        operands.chain(self.results.iter().map(|result| (result, layout, PLAIN))).map(cost).fold(0, Ns::saturating_add)
    }

    /// Takes the changes out of prices that the list charged for: those towards operators that know
    /// the plain layout alone, and from those that are eager to leave it.
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
