//! Layouts spelled in a graph: every change of layout becomes transposes around it.
//!
//! A value `v` that is made in the order `a` of its axes and wanted in the order `b` is read as
//! `T(T(T(v, a), a^-1 b), b^-1)`. The first transpose renames the axes of what is stored, the
//! second moves the elements, and the third renames them again; those that do nothing are left out.
//! Together they are the identity, so each edit is true by itself, whatever a target makes of it,
//! and a certificate proves it where it is. A target that takes transposes as views
//! (`LayoutTarget::views`) pays for the second one what the change costs.

use std::sync::Arc;

use regraft_cost::layout::{Assignment, Kernels, LayoutId, LayoutTarget, PLAIN};
use regraft_ir::ops::transpose::Transpose;
use regraft_ir::{Graph, NewNode, NodeId, Op, Patch, PatchValue, TensorType, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::engine::{Engine, Move};

/// What edits of this kind are called.
pub const CAUSE: &str = "layout";

/// A change of layout as transposes, made once for all readers.
type Spelled = FxHashMap<(ValueId, LayoutId), ValueId>;

/// Spells the changes of an assignment, and leaves the engine in the state that they lead to.
/// `rule` is the rule to name for the moves. `None` if a layout is no order of axes: then nothing
/// is applied.
///
/// `kernels` are those of the engine's graph, by node id, from which the assignment chose.
pub fn spell(
    engine: &mut Engine<'_>,
    target: &LayoutTarget,
    assignment: &Assignment,
    kernels: &[Kernels],
    rule: usize,
) -> Option<Vec<Arc<Move>>> {
    let rank = |value: ValueId| engine.graph().ty(value).map(TensorType::rank);
    let is_ordered = |value: ValueId, id: LayoutId| order(target, id, rank(value)?).map(drop);
    for change in &assignment.changes {
        is_ordered(change.value, change.from)?;
        is_ordered(change.value, change.to)?;
    }
    let start = engine.graph().clone();
    let mut speller =
        Speller { target, rule, spelled: Spelled::default(), now: FxHashMap::default(), outputs: Vec::new(), moves: Vec::new() };
    let chosen = |id: NodeId| &kernels[id.0 as usize].all[assignment.kernels[id.0 as usize]];
    let changed = |value: ValueId, to: LayoutId| {
        let from = chosen(value.node).results[value.port as usize];
        assignment.changes.iter().any(|change| (change.value, change.to) == (value, to)).then_some(from)
    };
    for id in start.topological().into_iter().filter(|id| !start.node(*id).constant) {
        let wanted = start.node(id).inputs.iter().zip(&chosen(id).operands);
        let from: Vec<Option<(LayoutId, LayoutId)>> =
            wanted.map(|(value, layout)| layout.and_then(|to| Some((changed(*value, to)?, to)))).collect();
        // What reads an output that was made plain reads it as it was.
        let is_made_plain = |value: &ValueId| speller.outputs.contains(value);
        if from.iter().any(Option::is_some) || start.node(id).inputs.iter().any(is_made_plain) {
            speller.rewire(engine, &start, id, &from);
        }
        for value in (0..start.node(id).types.len() as u32).map(|port| id.port(port)).filter(|value| start.is_output(*value)) {
            if let Some(from) = changed(value, PLAIN) {
                speller.rewire_output(engine, value, from);
            }
        }
    }
    Some(speller.moves)
}

/// The order of the axes in a layout, slowest first.
fn order(target: &LayoutTarget, id: LayoutId, rank: usize) -> Option<Vec<usize>> {
    match target.layout(id) {
        None => Some((0..rank).collect()),
        Some(layout) => layout.order(rank).map(<[usize]>::to_vec),
    }
}

struct Speller<'t> {
    target: &'t LayoutTarget,
    rule: usize,
    spelled: Spelled,
    /// What values of the start graph are now, where they were made anew.
    now: FxHashMap<NodeId, NodeId>,
    /// Outputs of the start graph that were made plain.
    outputs: Vec<ValueId>,
    moves: Vec<Arc<Move>>,
}

impl Speller<'_> {
    /// The value that a value of the start graph is now.
    fn now(&self, value: ValueId) -> ValueId {
        self.now.get(&value.node).map_or(value, |node| node.port(value.port))
    }

    /// Makes a node anew, with operands in other layouts.
    fn rewire(&mut self, engine: &mut Engine<'_>, start: &Graph, id: NodeId, changes: &[Option<(LayoutId, LayoutId)>]) {
        let mut create = Vec::new();
        let mut made: Vec<((ValueId, LayoutId), u32)> = Vec::new();
        let mut inputs: SmallVec<[PatchValue; 3]> = SmallVec::new();
        for (value, change) in start.node(id).inputs.iter().zip(changes) {
            inputs.push(match change {
                None => PatchValue::Old(self.now(*value)),
                Some((from, to)) => self.relaid(engine.graph(), *value, (*from, *to), &mut create, &mut made),
            });
        }
        let here = self.now(id.out()).node;
        let node = engine.graph().node(here);
        let index = create.len() as u32;
        let replace = (0..node.types.len() as u32).map(|port| (here.port(port), PatchValue::New { index, port })).collect();
        create.push(NewNode { computation: node.computation.clone(), inputs });
        let created = self.apply(engine, here, Patch { cause: CAUSE.into(), create, replace }, &made);
        self.now.insert(id, created[index as usize]);
    }

    /// Makes an output plain. Whatever else reads the value then reads the plain one, until it is
    /// made anew in its turn.
    fn rewire_output(&mut self, engine: &mut Engine<'_>, value: ValueId, from: LayoutId) {
        let (mut create, mut made) = (Vec::new(), Vec::new());
        let plain = self.relaid(engine.graph(), value, (from, PLAIN), &mut create, &mut made);
        let here = self.now(value);
        let patch = Patch { cause: CAUSE.into(), create, replace: SmallVec::from_iter([(here, plain)]) };
        self.apply(engine, here.node, patch, &made);
        self.outputs.push(value);
    }

    fn apply(&mut self, engine: &mut Engine<'_>, node: NodeId, patch: Patch, made: &[((ValueId, LayoutId), u32)]) -> Vec<NodeId> {
        let step = Arc::new(Move::given(engine.graph(), self.rule, &[node], &patch));
        engine.apply(&step);
        self.moves.push(step);
        let created = engine.created().to_vec();
        self.spelled.extend(made.iter().map(|(change, index)| (*change, created[*index as usize].out())));
        created
    }

    /// A value in another layout.
    fn relaid(
        &self,
        graph: &Graph,
        value: ValueId,
        (from, to): (LayoutId, LayoutId),
        create: &mut Vec<NewNode>,
        made: &mut Vec<((ValueId, LayoutId), u32)>,
    ) -> PatchValue {
        if let Some(known) = self.spelled.get(&(value, to)) {
            return PatchValue::Old(*known);
        }
        if let Some((_, index)) = made.iter().find(|(change, _)| *change == (value, to)) {
            return PatchValue::New { index: *index, port: 0 };
        }
        let here = self.now(value);
        let mut last = PatchValue::Old(here);
        let Some(mut ty) = graph.ty(here).cloned() else { return last };
        let rank = ty.rank();
        let (Some(from), Some(into)) = (order(self.target, from, rank), order(self.target, to, rank)) else { return last };
        let place = |axes: &[usize], axis: usize| axes.iter().position(|one| *one == axis).unwrap_or(axis);
        let moving = into.iter().map(|axis| place(&from, *axis)).collect();
        let back = (0..rank).map(|axis| place(&into, axis)).collect();
        for perm in [from.clone(), moving, back] {
            if perm.iter().copied().eq(0..rank) {
                continue;
            }
            ty = TensorType { dtype: ty.dtype, shape: perm.iter().map(|axis| ty.shape[*axis].clone()).collect() };
            let op = Op::Transpose(Transpose { perm: perm.iter().map(|axis| *axis as i64).collect() });
            create.push(NewNode::new(op, SmallVec::from_iter([last]), SmallVec::from_iter([Some(ty.clone())])));
            last = PatchValue::New { index: create.len() as u32 - 1, port: 0 };
        }
        if let PatchValue::New { index, .. } = last {
            made.push(((value, to), index));
        }
        last
    }
}
