//! A 128-bit key of a graph's structure: equal for graphs that differ only in names and node order.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use xxhash_rust::xxh3::Xxh3;

use crate::graph::{Graph, NodeId, ValueId};
use crate::op::Op;

/// The key of a graph: of what its outputs compute, in order, from inputs identified by position.
///
/// Every node that an output depends on has a *down-hash* of its operator, attributes, constants by
/// content, and operands in order (sorted for the two operands of commutative operators). The key
/// is the sum over all distinct down-hashes, each mixed with the number of nodes that share it,
/// plus the outputs; so a value computed twice and a shared one have different keys. Names, node
/// ids and all other nodes do not count.
///
/// The same on every run and on every little-endian platform; a change of the operator table
/// changes it.
pub fn canonical_key(graph: &Graph) -> u128 {
    let mut values = ValueKeys::of(graph);
    let mut copies: FxHashMap<u128, u64> = FxHashMap::default();
    let mut key = 0u128;
    for (at, output) in graph.outputs().iter().enumerate() {
        let own = values.visit(output.value, |node| *copies.entry(node).or_insert(0) += 1);
        key = key.wrapping_add(output_key(at as u32, own));
    }
    for (own, count) in &copies {
        key = key.wrapping_add(copies_key(*own, *count));
    }
    key
}

/// The [`result_key`]s of a graph's values, computed when they are asked for.
pub struct ValueKeys<'g> {
    graph: &'g Graph,
    /// Positions of the declared inputs.
    position: FxHashMap<NodeId, u32>,
    /// Down-hashes of nodes, as far as they are known.
    down: Vec<Option<u128>>,
}

impl<'g> ValueKeys<'g> {
    /// None yet.
    pub fn of(graph: &'g Graph) -> ValueKeys<'g> {
        let position = graph.inputs().iter().enumerate().map(|(at, id)| (*id, at as u32)).collect();
        ValueKeys { graph, position, down: vec![None; graph.capacity()] }
    }

    /// The key of a value.
    pub fn key(&mut self, value: ValueId) -> u128 {
        self.visit(value, |_| ())
    }

    /// The same; `each` is told the down-hash of every node that was not visited before.
    fn visit(&mut self, value: ValueId, mut each: impl FnMut(u128)) -> u128 {
        let mut stack = vec![(value.node, 0)];
        while let Some((id, slot)) = stack.pop() {
            if self.down[id.0 as usize].is_some() {
                continue;
            }
            let node = self.graph.node(id);
            if let Some(operand) = node.inputs.get(slot) {
                stack.push((id, slot + 1));
                stack.push((operand.node, 0));
                continue;
            }
            let own = match self.position.get(&id) {
                Some(at) => input_key(*at, &node.op),
                None => node_key(op_key(&node.op), node.op.kind().commutative(), node.inputs.iter().map(|v| self.known(*v))),
            };
            self.down[id.0 as usize] = Some(own);
            each(own);
        }
        self.known(value)
    }

    fn known(&self, value: ValueId) -> u128 {
        self.down[value.node.0 as usize].map_or(0, |key| result_key(key, value.port))
    }
}

/// Hash of an operator with its attributes; a constant counts by type and content.
pub fn op_key(op: &Op) -> u128 {
    let mut hasher = Stable(Xxh3::with_seed(1));
    op.hash(&mut hasher);
    hasher.0.digest128()
}

/// Down-hash of the declared input at `position`.
pub fn input_key(position: u32, op: &Op) -> u128 {
    let mut hasher = Stable(Xxh3::with_seed(2));
    position.hash(&mut hasher);
    if let Op::Input(input) = op {
        input.ty.hash(&mut hasher);
    }
    hasher.0.digest128()
}

/// Down-hash of a node from its [`op_key`] and the [`result_key`]s of its operands.
pub fn node_key(op: u128, commutative: bool, operands: impl Iterator<Item = u128>) -> u128 {
    let mut operands: SmallVec<[u128; 4]> = operands.collect();
    if commutative && operands.len() == 2 {
        operands.sort_unstable();
    }
    let mut words: SmallVec<[u128; 5]> = SmallVec::from_slice(&[op]);
    words.extend_from_slice(&operands);
    words_key(3, &words)
}

/// Hash of result `port` of the node with this down-hash.
pub fn result_key(node: u128, port: u32) -> u128 {
    if port == 0 { node } else { words_key(4, &[node, u128::from(port)]) }
}

/// What `count` nodes with one down-hash contribute to a graph's key.
pub fn copies_key(node: u128, count: u64) -> u128 {
    words_key(5, &[node, u128::from(count)])
}

/// What the declared output at `position` contributes to a graph's key, by the [`result_key`] of
/// its value.
pub fn output_key(position: u32, value: u128) -> u128 {
    words_key(6, &[u128::from(position), value])
}

fn words_key(seed: u64, words: &[u128]) -> u128 {
    let mut bytes: SmallVec<[u8; 96]> = SmallVec::new();
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    xxhash_rust::xxh3::xxh3_128_with_seed(&bytes, seed)
}

/// A hasher whose digest does not depend on the width of `usize`.
struct Stable(Xxh3);

impl Hasher for Stable {
    fn finish(&self) -> u64 {
        self.0.digest()
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn write_usize(&mut self, value: usize) {
        self.0.update(&(value as u64).to_le_bytes());
    }
    fn write_isize(&mut self, value: isize) {
        self.0.update(&(value as i64).to_le_bytes());
    }
}
