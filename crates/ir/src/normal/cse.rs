//! Common subexpression elimination.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::constant::Const;
use crate::graph::{Graph, NodeId, ValueId};
use crate::normal::{Step, removed};
use crate::op::{Op, OpKind};
use crate::patch::{Patch, PatchValue};

/// The cause recorded in patches of [`cse`].
pub const CSE: &str = "normal-form: common subexpression";

/// Bytes at each end of a constant that determine, with its type, which constants are compared in
/// full.
const PEEK: usize = 64;

/// Merges nodes with the same operator, attributes and operands, and constants of equal content.
/// Returns how many nodes were removed.
///
/// The two operands of a commutative operator may be swapped. Graph inputs and opaque nodes, with
/// or without effects, are never merged. Of two equal nodes the one that feeds a declared output
/// stays, else the one unchanged from the model, else the earlier one; two outputs may then return
/// the same value.
pub fn cse(graph: &mut Graph) -> usize {
    removed(&cse_steps(graph))
}

/// [`cse`] with its trail: one patch per merged node.
pub fn cse_steps(graph: &mut Graph) -> Vec<Step> {
    let mut steps = Vec::new();
    // Operands come first, so the operands of equal nodes are already merged, unless one is
    // replaced by a later node: what reads it was looked at before.
    while pass(graph, &mut steps) {}
    steps
}

/// Merges equal nodes, operands first; whether an earlier node gave way to a later one.
fn pass(graph: &mut Graph, steps: &mut Vec<Step>) -> bool {
    let mut feeds_output = vec![false; graph.capacity()];
    for output in graph.outputs() {
        feeds_output[output.value.node.0 as usize] = true;
    }
    let mut seen: FxHashMap<u64, SmallVec<[NodeId; 1]>> = FxHashMap::default();
    let mut gave_way = false;
    for id in graph.topological() {
        if matches!(graph.node(id).op.kind(), OpKind::Input | OpKind::Opaque) {
            continue;
        }
        let bucket = seen.entry(bucket(graph, id)).or_default();
        let Some(at) = bucket.iter().position(|other| equal(graph, *other, id)) else {
            bucket.push(id);
            continue;
        };
        let rank = |id: NodeId| (feeds_output[id.0 as usize], graph.node(id).origin.is_some());
        let (keep, merge) = if rank(id) > rank(bucket[at]) { (id, bucket[at]) } else { (bucket[at], id) };
        bucket[at] = keep;
        gave_way |= keep == id;
        let results = 0..graph.node(merge).types.len() as u32;
        let replace = results.map(|port| (merge.port(port), PatchValue::Old(keep.port(port)))).collect();
        steps.push(Step::take(graph, Patch { cause: CSE.into(), create: Vec::new(), replace }));
    }
    gave_way
}

/// The operands, in an order that does not depend on how a commutative operator was written.
fn operands(graph: &Graph, id: NodeId) -> SmallVec<[ValueId; 3]> {
    let node = graph.node(id);
    let mut operands = node.inputs.clone();
    if operands.len() == 2 && node.op.kind().commutative() {
        operands.sort_unstable();
    }
    operands
}

fn equal(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let (x, y) = (graph.node(a), graph.node(b));
    x.types == y.types && x.op == y.op && operands(graph, a) == operands(graph, b)
}

/// A hash shared by equal nodes. It reads only the ends of constants, so that large weights are
/// read only when two look alike.
fn bucket(graph: &Graph, id: NodeId) -> u64 {
    let mut hasher = FxHasher::default();
    match &graph.node(id).op {
        Op::Constant(constant) => peek(&constant.value, &mut hasher),
        op => op.hash(&mut hasher),
    }
    operands(graph, id).hash(&mut hasher);
    hasher.finish()
}

fn peek(constant: &Const, hasher: &mut FxHasher) {
    let bytes = constant.bytes();
    constant.dtype().hash(hasher);
    constant.shape().hash(hasher);
    bytes[..bytes.len().min(PEEK)].hash(hasher);
    bytes[bytes.len().saturating_sub(PEEK)..].hash(hasher);
}
