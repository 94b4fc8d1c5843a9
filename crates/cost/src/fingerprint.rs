//! Identity of a whole graph as far as its run time is concerned.

use regraft_ir::{Bindings, Graph, Op};

use crate::signature::Signature;

/// A digest of a graph's operators, their types under concrete sizes, and its wiring; values of
/// constants do not count. 32 hexadecimal digits; independent of node ids as long as their order is
/// unchanged.
pub fn fingerprint(graph: &Graph, bindings: &Bindings) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut place = vec![0u32; graph.capacity()];
    let mut next = 0u32;
    for id in graph.topological() {
        let node = graph.node(id);
        // Constant cones are folded when a model is loaded.
        if node.constant {
            continue;
        }
        next += 1;
        place[id.0 as usize] = next;
        let signature = Signature::of(graph, bindings, id);
        hasher.update(signature.core.as_bytes());
        if matches!(node.op, Op::Input(_)) || !signature.is_complete() {
            for ty in node.types.iter().flatten() {
                hasher.update(format!(" {} {:?}", ty.dtype, ty.bind(bindings)).as_bytes());
            }
        }
        for value in &node.inputs {
            hasher.update(&place[value.node.0 as usize].to_le_bytes());
            hasher.update(&value.port.to_le_bytes());
        }
    }
    for output in graph.outputs() {
        hasher.update(&place[output.value.node.0 as usize].to_le_bytes());
        hasher.update(&output.value.port.to_le_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
