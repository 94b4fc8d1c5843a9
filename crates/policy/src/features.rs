//! What the network is told of a node and of a move, in numbers around 1.
//!
//! Sizes and prices enter as logarithms and shares, so that a large model looks like a small one.
//! Nothing is told that changes far from where a move changes something.

use regraft_cost::Ns;
use regraft_ir::{Attr, NodeId, OpKind};
use regraft_search::{Engine, Move};

use crate::descriptor::{CLASSES, class};

/// Kinds of operators that can be told apart.
pub const KINDS: usize = 160;
/// Numbers of a node, besides its kind.
pub const NODE: usize = 32 + CLASSES;
/// Numbers of a move, besides its rule and its nodes.
pub const MOVE: usize = 16;
/// Numbers of a state, besides its nodes.
pub const STATE: usize = 4;
/// Changes with what the numbers mean.
pub const VERSION: u32 = 1;

/// Where the numbers of sizes begin, and how many there are: the last axes of the first result, the
/// last one first.
const SIZES: (usize, usize) = (8, 4);
/// Where the numbers of attributes begin: each adds to some of them.
const ATTRIBUTES: usize = SIZES.0 + SIZES.1;
/// Where they end: then there is a number for each class of operators.
const CLASS: usize = NODE - CLASSES;

/// The kind of operators that were not there in training.
pub const UNKNOWN: usize = KINDS - 1;

/// The first operator, in the order of [`OpKind::ALL`], that came after the shipped weights were
/// trained; the first leaf if none did. To be raised when they are trained again.
const NEW: OpKind = OpKind::Input;
/// What is no operator of the table, and comes after all of them.
const LEAVES: [OpKind; 3] = [OpKind::Input, OpKind::Constant, OpKind::Opaque];

/// Kinds that are told apart, in the order of their numbers.
pub(crate) fn known() -> impl Iterator<Item = OpKind> {
    OpKind::ALL.iter().copied().take_while(|kind| *kind != NEW).chain(LEAVES)
}

/// A node's kind, as a number below [`KINDS`].
pub fn kind(kind: OpKind) -> usize {
    let place = match LEAVES.iter().position(|leaf| *leaf == kind) {
        Some(leaf) => NEW as usize + leaf,
        None if (kind as usize) < NEW as usize => kind as usize,
        None => UNKNOWN,
    };
    place.min(UNKNOWN)
}

/// The numbers of a node.
pub fn node(engine: &Engine<'_>, id: NodeId) -> [f32; NODE] {
    let graph = engine.graph();
    let node = graph.node(id);
    let mut numbers = [0.0; NODE];
    let types = node.types.iter().flatten();
    let elements: f32 = types.filter_map(|ty| ty.known_shape()).map(|shape| shape.iter().map(|size| log(*size)).sum::<f32>()).sum();
    let fixed = [
        flag(node.constant),
        flag(graph.feeds_output(id)),
        flag(node.users.len() == 1),
        node.users.len().min(8) as f32 / 4.0,
        node.inputs.len().min(8) as f32 / 4.0,
        (1.0 + engine.price(id) as f32).ln() / 16.0,
        elements / 16.0,
        graph.ty(id.out()).map_or(0.0, |ty| ty.shape.len() as f32 / 4.0),
    ];
    numbers[..SIZES.0].copy_from_slice(&fixed);
    if let Some(ty) = graph.ty(id.out()) {
        for (number, size) in numbers[SIZES.0..][..SIZES.1].iter_mut().zip(ty.shape.iter().rev()) {
            *number = size.known().map_or(-0.5, |size| log(size) / 8.0);
        }
    }
    numbers[CLASS + class(node.op.kind())] = 1.0;
    for (name, value) in node.op.attrs() {
        let mut add = |place: usize, value: f32| numbers[ATTRIBUTES + hash(name, place) % (CLASS - ATTRIBUTES)] += value;
        let signed = |value: i64| value.signum() as f32 * log(value.abs()) / 3.0;
        match value {
            Attr::Int(value) => add(0, signed(value) + 0.3),
            Attr::Float(value) => add(0, (value.0 as f32).asinh() / 3.0),
            Attr::Bool(value) => add(0, flag(value)),
            Attr::Ints(values) => values.iter().enumerate().for_each(|(at, value)| add(at, signed(*value))),
            Attr::Str(value) => add(hash(&value, 0), 1.0),
            Attr::Dims(values) => values.iter().enumerate().for_each(|(at, size)| add(at, size.known().map_or(-0.5, signed))),
            Attr::Floats(_) | Attr::Strs(_) | Attr::DType(_) | Attr::Tensor(_) | Attr::Absent => {}
        }
    }
    numbers
}

/// What is known of a move before it is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// What it adds to the cost.
    pub delta: i64,
    /// Whether the latest move made it possible.
    pub is_new: bool,
    /// Whether that move raised the cost.
    pub after_rise: bool,
    /// How many moves of its kind there are.
    pub alike: usize,
}

/// The numbers of a move.
pub fn step(engine: &Engine<'_>, step: &Move, known: Known) -> [f32; MOVE] {
    let total = engine.cost().max(1) as f32;
    let consumed = step.nodes.iter().map(|id| engine.price(*id)).sum::<Ns>() as f32;
    let delta = known.delta as f32;
    [
        (delta / total * 1000.0).asinh() / 6.0,
        flag(known.delta < 0),
        flag(known.delta > 0),
        flag(known.delta == 0),
        (delta / consumed.max(1.0) * 10.0).asinh() / 3.0,
        (consumed / total * 100.0).asinh() / 5.0,
        step.nodes.len() as f32 / 4.0,
        step.makes() as f32 / 4.0,
        step.reused().len() as f32 / 2.0,
        flag(known.is_new),
        flag(known.after_rise),
        flag(known.is_new && known.after_rise),
        (known.alike as f32).ln_1p() / 4.0,
        flag(known.is_new && known.after_rise && known.delta < 0),
        0.0,
        0.0,
    ]
}

/// The numbers of a state with these moves.
pub fn state(engine: &Engine<'_>, moves: &[Known]) -> [f32; STATE] {
    let total = engine.cost().max(1) as f32;
    let best = moves.iter().map(|known| known.delta).min().unwrap_or(0).min(0);
    let falling: i64 = moves.iter().map(|known| known.delta.min(0)).sum();
    let share = |delta: i64| (-delta as f32 / total * 100.0).asinh() / 5.0;
    [(moves.len() as f32).ln_1p() / 5.0, share(best), share(falling), flag(moves.iter().any(|known| known.after_rise))]
}

/// 1 for what holds.
pub(crate) fn flag(set: bool) -> f32 {
    f32::from(u8::from(set))
}

/// The logarithm of a size to base 2, which is 0 for 0.
fn log(size: i64) -> f32 {
    (size.max(0) as f32 + 1.0).log2()
}

/// FNV-1a of a name and a place: the same in every build.
fn hash(name: &str, place: usize) -> usize {
    let bytes = name.bytes().chain((place as u32).to_le_bytes());
    bytes.fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_their_order_and_new_ones_are_unknown() {
        assert!(known().enumerate().all(|(at, one)| kind(one) == at));
        assert_eq!(OpKind::ALL.iter().filter(|one| kind(**one) == UNKNOWN).count(), OpKind::ALL.len() - known().count());
    }
}
