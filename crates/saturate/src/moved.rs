//! `Moved`: a value that is another one with its elements in other places.

use regraft_ir::ops::{reshape::Reshape, transpose::Transpose};
use regraft_ir::{NodeId, Op, TensorType, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::space::{Class, Space};

/// What computes a value of the graph from one that was chosen, by moving its elements.
pub(crate) struct Moved {
    /// The class of the value.
    pub(crate) class: Class,
    /// What moves the chosen one.
    pub(crate) op: Op,
    /// The e-node that tells: of the value, or of the chosen one if it is the other way round.
    pub(crate) by: NodeId,
}

/// How values of the graph that were not chosen are moved ones that were, by the classes of these:
/// the first one there is, for each value.
pub(crate) fn moved(
    space: &Space,
    chosen: &[ValueId],
    by: &FxHashMap<Class, ValueId>,
    live: &FxHashMap<Class, SmallVec<[ValueId; 1]>>,
) -> FxHashMap<Class, Vec<Moved>> {
    let graph = space.graph();
    let is_computed = |value: &ValueId| !graph.node(value.node).constant && !graph.node(value.node).inputs.is_empty();
    let operand = |id: NodeId| {
        let node = graph.node(id);
        node.inputs.first().copied().filter(|_| node.op.kind().moves_elements() && node.inputs.len() == 1)
    };
    let is_other = |class: Class| !by.contains_key(&class) && live.get(&class).is_some_and(|olds| olds.iter().all(is_computed));
    let (mut found, mut moved) = (FxHashSet::default(), FxHashMap::<Class, Vec<Moved>>::default());
    for value in chosen {
        let of = space.class(*value);
        let forth = space.readers(of).iter().filter(|(id, _)| operand(*id).is_some_and(|operand| space.class(operand) == of));
        let forth = forth.map(|(id, _)| (space.class(id.out()), Some(graph.node(*id).op.clone()), *id));
        let back = space.members(of).filter_map(|value| {
            let operand = operand(value.node)?;
            Some((space.class(operand), inverse(&graph.node(value.node).op, graph.ty(operand)?), value.node))
        });
        let mut all: Vec<(Class, Option<Op>, NodeId)> = forth.chain(back).filter(|(class, ..)| is_other(*class)).collect();
        all.sort_unstable_by_key(|(class, _, id)| (*class, *id));
        for (class, op, by) in all {
            if let Some(op) = op
                && found.insert(class)
            {
                moved.entry(of).or_default().push(Moved { class, op, by });
            }
        }
    }
    moved
}

/// What moves the elements of the result back, to a value of this type.
fn inverse(op: &Op, ty: &TensorType) -> Option<Op> {
    match op {
        Op::Transpose(transpose) => {
            let perm =
                (0..transpose.perm.len()).map(|axis| transpose.perm.iter().position(|from| *from == axis as i64).map(|at| at as i64));
            Some(Op::Transpose(Transpose { perm: perm.collect::<Option<_>>()? }))
        }
        Op::Reshape(_) | Op::Squeeze(_) | Op::Unsqueeze(_) | Op::Flatten(_) => Some(Op::Reshape(Reshape { shape: ty.shape.to_vec() })),
        _ => None,
    }
}
