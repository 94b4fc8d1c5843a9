//! `Space`: a graph that only grows, and which of its values are equal.

use std::fmt;
use std::hash::{Hash, Hasher};

use regraft_ir::key::op_key;
use regraft_ir::{Graph, NewNode, NodeId, Op, OpKind, Patch, PatchValue, TensorType, ValueId};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::{SmallVec, smallvec};

use crate::forest::{Forest, Reason};

/// The number of a class: that of the value which stands for it.
pub type Class = u32;

/// Constants of the input with more elements are equal to themselves alone: their content is not
/// read.
const CONTENT: usize = 1 << 12;

/// A rule set two values of different types equal: the rule is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule `{rule}` makes {left} equal to {right}")]
pub struct TypeClash {
    /// The rule, or what else set them equal.
    pub rule: String,
    /// Type of one value.
    pub left: String,
    /// Type of the other.
    pub right: String,
}

/// An e-graph over one growing graph.
///
/// An *e-node* is a node of the graph; two with the same operator on equal operands are one. Every
/// e-node has operands in the graph that are older than itself: types, constness, sizes and values
/// are those of the graph, by the operator table. A *class* is a set of values that are equal.
#[derive(Clone)]
pub struct Space {
    graph: Graph,
    /// Number of each node's first result; nodes that were no part of the input have none.
    first: Vec<u32>,
    values: Vec<ValueId>,
    /// A value of the same class, or itself.
    parent: Vec<u32>,
    /// Values of each class, by the number of the class; empty for others.
    members: Vec<SmallVec<[u32; 2]>>,
    /// Who reads a value of each class.
    readers: Vec<SmallVec<[(NodeId, u32); 2]>>,
    /// Operator keys, by node.
    keys: Vec<u128>,
    /// The e-node of an operator and the classes of its operands.
    table: FxHashMap<Key, NodeId>,
    /// E-nodes that equal another one, by node.
    absorbed: Vec<bool>,
    /// How many nodes there are that do not.
    live: usize,
    /// Classes whose readers' keys are out of date.
    stale: Vec<Class>,
    /// Classes that have changed since [`Space::take_changed`].
    changed: Vec<Class>,
    forest: Forest,
    /// Number of nodes of the input, in ids.
    original: usize,
}

/// The e-nodes that the new nodes of an edit are.
pub(crate) type Made = SmallVec<[NodeId; 4]>;

type Key = (u128, SmallVec<[Class; 4]>);

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Space of {} e-nodes in {} classes", self.len(), self.classes())
    }
}

impl Space {
    /// The e-graph of a graph in normal form: every value is a class of its own.
    pub fn new(graph: Graph) -> Space {
        let original = graph.capacity();
        let order: Vec<NodeId> = graph.topological();
        let mut space = Space {
            graph,
            first: Vec::new(),
            values: Vec::new(),
            parent: Vec::new(),
            members: Vec::new(),
            readers: Vec::new(),
            keys: Vec::new(),
            table: FxHashMap::default(),
            absorbed: Vec::new(),
            live: 0,
            stale: Vec::new(),
            changed: Vec::new(),
            forest: Forest::default(),
            original,
        };
        space.first.resize(original, u32::MAX);
        space.keys.resize(original, 0);
        space.absorbed.resize(original, true);
        for id in order {
            space.admit(id);
        }
        space
    }

    /// The graph of all e-nodes. Its outputs are those of the input.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Number of e-nodes.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.members.iter().filter(|members| !members.is_empty()).count()
    }

    /// All e-nodes, operands in the graph first.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.absorbed.len() as u32).map(NodeId).filter(|id| !self.absorbed[id.0 as usize])
    }

    /// Whether a node was part of the input.
    pub fn is_original(&self, id: NodeId) -> bool {
        (id.0 as usize) < self.original
    }

    /// Whether a node is an e-node: it does not equal an older one.
    pub fn is_live(&self, id: NodeId) -> bool {
        !self.absorbed[id.0 as usize]
    }

    /// The class of a value.
    pub fn class(&self, value: ValueId) -> Class {
        self.root(self.number(value))
    }

    /// Values of a class; all results of e-nodes.
    pub fn members(&self, class: Class) -> impl ExactSizeIterator<Item = ValueId> + '_ {
        self.members[class as usize].iter().map(|at| self.values[*at as usize])
    }

    /// Who reads a value of a class: `(reader, operand slot)`.
    pub(crate) fn readers(&self, class: Class) -> &[(NodeId, u32)] {
        &self.readers[class as usize]
    }

    /// More than the largest number of a class.
    pub(crate) fn numbers(&self) -> usize {
        self.values.len()
    }

    /// The operator key of a node.
    pub(crate) fn key(&self, id: NodeId) -> u128 {
        self.keys[id.0 as usize]
    }

    /// Why values are equal.
    pub(crate) fn forest(&self) -> &Forest {
        &self.forest
    }

    /// The number of a value, by which [`Forest`] knows it.
    pub(crate) fn number(&self, value: ValueId) -> u32 {
        self.first[value.node.0 as usize] + value.port
    }

    /// The value of a number.
    pub(crate) fn numbered(&self, number: u32) -> ValueId {
        self.values[number as usize]
    }

    /// Whether a graph that was made from the one that it began with is one of those that the
    /// e-graph stands for: its outputs are computed by e-nodes of the classes of the outputs.
    pub fn contains(&self, graph: &Graph) -> bool {
        let mut known: FxHashMap<NodeId, NodeId> = graph.inputs().iter().copied().zip(self.graph.inputs().iter().copied()).collect();
        for id in graph.topological() {
            let node = graph.node(id);
            if known.contains_key(&id) {
                continue;
            }
            let operands: Option<SmallVec<[ValueId; 3]>> = node.inputs.iter().map(|v| Some(known.get(&v.node)?.port(v.port))).collect();
            let key = if is_unique(&node.op) { u128::from(id.0) } else { op_key(&node.op) };
            let e_node = operands.and_then(|operands| self.table.get(&(key, self.classes_of(node.op.kind(), &operands))));
            if let Some(e_node) = e_node {
                known.insert(id, *e_node);
            }
        }
        let mut outputs = graph.outputs().iter().zip(self.graph.outputs());
        outputs.all(|(a, b)| known.get(&a.value.node).is_some_and(|e_node| self.class(e_node.port(a.value.port)) == self.class(b.value)))
    }

    /// A digest of all e-nodes and classes: equal for spaces that were grown in the same way.
    pub fn digest(&self) -> u128 {
        self.ids().fold(0u128, |sum, id| {
            let mut word = self.keys[id.0 as usize];
            for value in &self.graph.node(id).inputs {
                word = word.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) ^ u128::from(self.class(*value));
            }
            let own = self.class(id.out());
            sum.wrapping_add((word ^ u128::from(own).rotate_left(64)).wrapping_mul(0xda94_2042_e4dd_58b5_0000_0000_0000_0001))
        })
    }

    /// Classes that have gained or lost something since the last call, as they are called now.
    pub(crate) fn take_changed(&mut self) -> Vec<Class> {
        let mut changed: Vec<Class> = std::mem::take(&mut self.changed).into_iter().map(|class| self.root(class)).collect();
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// What a rewrite would add or set equal, as a number that two rewrites have in common if they
    /// would do the same; `None` if all of it is there already.
    pub(crate) fn meaning(&self, patch: &Patch) -> Option<u64> {
        let (mut hashes, mut known): (SmallVec<[u64; 8]>, SmallVec<[Option<NodeId>; 8]>) = Default::default();
        for new in &patch.create {
            let key = op_key(&new.op);
            let mut hasher = FxHasher::default();
            key.hash(&mut hasher);
            new.inputs.iter().for_each(|value| self.hash(*value, &hashes, &mut hasher));
            hashes.push(hasher.finish());
            let there = |value: &PatchValue| match value {
                PatchValue::Old(value) => Some(*value),
                PatchValue::New { index, port } => known[*index as usize].map(|id| id.port(*port)),
            };
            let inputs: Option<SmallVec<[ValueId; 3]>> = new.inputs.iter().map(there).collect();
            let twin = inputs.and_then(|inputs| self.table.get(&(key, self.classes_of(new.op.kind(), &inputs))).copied());
            known.push(twin.filter(|twin| self.is_live(*twin)));
        }
        let mut is_there = known.iter().all(Option::is_some);
        let mut hasher = FxHasher::default();
        for (old, new) in &patch.replace {
            self.class(*old).hash(&mut hasher);
            self.hash(*new, &hashes, &mut hasher);
            let new = match new {
                PatchValue::Old(new) => Some(*new),
                PatchValue::New { index, port } => known[*index as usize].map(|id| id.port(*port)),
            };
            is_there &= new.is_some_and(|new| self.class(new) == self.class(*old));
        }
        (!is_there).then(|| hasher.finish())
    }

    fn hash(&self, value: PatchValue, hashes: &[u64], hasher: &mut FxHasher) {
        match value {
            PatchValue::Old(value) => (0, self.class(value)).hash(hasher),
            PatchValue::New { index, port } => (1, hashes[index as usize], port).hash(hasher),
        }
    }

    /// Adds what a rewrite makes, and sets equal what it replaces. `reason` says why. The e-nodes
    /// that its new nodes are, if anything was added or set equal that was not so before.
    ///
    /// # Errors
    ///
    /// Values of different types.
    pub(crate) fn add(&mut self, patch: &Patch, reason: u32) -> Result<Option<Made>, TypeClash> {
        let (nodes, mut merged) = (self.graph.capacity(), false);
        let mut created = Made::new();
        for new in &patch.create {
            let id = self.node(new, &created);
            created.push(id);
        }
        for (old, new) in &patch.replace {
            merged |= self.merge(*old, resolve(*new, &created), Reason::Rule(reason), &patch.cause)?;
        }
        Ok((merged || self.graph.capacity() > nodes).then_some(created))
    }

    /// Restores congruence: the same operator on equal operands gives equal results.
    ///
    /// # Errors
    ///
    /// Results of different types.
    pub(crate) fn rebuild(&mut self) -> Result<(), TypeClash> {
        while let Some(class) = self.stale.pop() {
            let class = self.root(class);
            let mut readers = std::mem::take(&mut self.readers[class as usize]);
            readers.retain(|(reader, _)| !self.absorbed[reader.0 as usize]);
            readers.sort_unstable();
            readers.dedup();
            for (reader, _) in readers.clone() {
                if self.absorbed[reader.0 as usize] {
                    continue;
                }
                let key = self.key_of(reader);
                match self.table.get(&key) {
                    Some(twin) if *twin != reader && !self.absorbed[twin.0 as usize] => {
                        let (older, younger) = if *twin < reader { (*twin, reader) } else { (reader, *twin) };
                        self.table.insert(key, older);
                        self.absorb(older, younger)?;
                    }
                    _ => drop(self.table.insert(key, reader)),
                }
            }
            // What was merged meanwhile has readers of its own by now.
            let class = self.root(class);
            self.readers[class as usize].extend(readers);
        }
        Ok(())
    }

    /// The e-node of an operator on these operands, made if there is none.
    fn node(&mut self, new: &NewNode, created: &[NodeId]) -> NodeId {
        let inputs: SmallVec<[ValueId; 3]> = new.inputs.iter().map(|value| resolve(*value, created)).collect();
        let key = (op_key(&new.op), self.classes_of(new.op.kind(), &inputs));
        if let Some(known) = self.table.get(&key)
            && !self.absorbed[known.0 as usize]
        {
            return *known;
        }
        let id = match &new.op {
            Op::Constant(constant) => self.graph.add_const(constant.value.clone()).node,
            op => self.graph.add_typed(op.clone(), &inputs, new.types.to_vec()),
        };
        self.first.push(u32::MAX);
        self.keys.push(key.0);
        self.absorbed.push(true);
        self.admit(id);
        id
    }

    /// Takes in a node of the graph.
    fn admit(&mut self, id: NodeId) {
        let (at, node) = (id.0 as usize, self.graph.node(id));
        self.first[at] = self.values.len() as u32;
        let is_unique = is_unique(&node.op);
        let inputs = node.inputs.clone();
        for port in 0..node.types.len() as u32 {
            let class = self.values.len() as u32;
            self.values.push(id.port(port));
            self.parent.push(class);
            self.members.push(smallvec![class]);
            self.readers.push(SmallVec::new());
            self.changed.push(class);
            self.forest.grow();
        }
        for (slot, value) in inputs.iter().enumerate() {
            let class = self.class(*value);
            self.readers[class as usize].push((id, slot as u32));
        }
        self.absorbed[at] = false;
        self.live += 1;
        self.keys[at] = if is_unique { u128::from(id.0) } else { op_key(&self.graph.node(id).op) };
        let key = self.key_of(id);
        self.table.entry(key).or_insert(id);
    }

    /// Sets two values equal; false if they were.
    fn merge(&mut self, a: ValueId, b: ValueId, reason: Reason, cause: &str) -> Result<bool, TypeClash> {
        let (x, y) = (self.number(a), self.number(b));
        let (left, right) = (self.root(x), self.root(y));
        if left == right {
            return Ok(false);
        }
        // What is congruent has the same type, known or not.
        let is_known = matches!(reason, Reason::Congruent(..)) || self.graph.ty(a).is_some();
        if !is_known || self.graph.ty(a) != self.graph.ty(b) {
            let show = |ty: Option<&TensorType>| ty.map_or_else(|| "an unknown type".into(), ToString::to_string);
            return Err(TypeClash { rule: cause.into(), left: show(self.graph.ty(a)), right: show(self.graph.ty(b)) });
        }
        self.forest.join(x, y, reason);
        // The class keeps the name of its oldest value.
        let (keep, lose) = (left.min(right), left.max(right));
        self.parent[lose as usize] = keep;
        let moved = std::mem::take(&mut self.members[lose as usize]);
        self.members[keep as usize].extend(moved);
        self.members[keep as usize].sort_unstable();
        let moved = std::mem::take(&mut self.readers[lose as usize]);
        self.readers[keep as usize].extend(moved);
        self.stale.push(keep);
        self.changed.push(keep);
        Ok(true)
    }

    /// Sets all results of two nodes equal whose operators and operands are; the younger one is no
    /// e-node any more.
    fn absorb(&mut self, older: NodeId, younger: NodeId) -> Result<(), TypeClash> {
        for port in 0..self.graph.node(older).types.len() as u32 {
            let cause = self.graph.node(older).op.kind().name();
            self.merge(older.port(port), younger.port(port), Reason::Congruent(older, younger), cause)?;
        }
        self.absorbed[younger.0 as usize] = true;
        self.live -= 1;
        for port in 0..self.graph.node(younger).types.len() as u32 {
            let (number, class) = (self.number(younger.port(port)), self.class(younger.port(port)));
            self.members[class as usize].retain(|member| *member != number);
        }
        Ok(())
    }

    fn key_of(&self, id: NodeId) -> Key {
        let node = self.graph.node(id);
        (self.keys[id.0 as usize], self.classes_of(node.op.kind(), &node.inputs))
    }

    /// The classes of operands, sorted where their order does not matter.
    fn classes_of(&self, kind: OpKind, inputs: &[ValueId]) -> SmallVec<[Class; 4]> {
        let mut classes: SmallVec<[Class; 4]> = inputs.iter().map(|value| self.class(*value)).collect();
        if kind.commutative() && classes.len() == 2 {
            classes.sort_unstable();
        }
        classes
    }

    fn root(&self, mut at: u32) -> Class {
        while self.parent[at as usize] != at {
            at = self.parent[at as usize];
        }
        at
    }
}

/// Whether a node equals nothing but itself.
fn is_unique(op: &Op) -> bool {
    let is_large = matches!(op, Op::Constant(constant) if constant.value.elements() > CONTENT);
    is_large || matches!(op.kind(), OpKind::Input | OpKind::Opaque)
}

fn resolve(value: PatchValue, created: &[NodeId]) -> ValueId {
    match value {
        PatchValue::Old(value) => value,
        PatchValue::New { index, port } => created[index as usize].port(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text;

    #[test]
    fn congruent_nodes_become_one() {
        let graph = text::parse("graph (x: f32[4], y: f32[4]) { a = Neg(x) b = Neg(y) c = Relu(a) d = Relu(b) e = Add(c, d) output e }");
        let mut space = Space::new(graph.expect("a graph"));
        let [x, y, _, _, c, d, _] = space.graph().topological()[..] else { unreachable!() };
        let patch =
            Patch { cause: "test".into(), create: Vec::new(), replace: [(x.out(), PatchValue::Old(y.out()))].into_iter().collect() };
        assert_eq!((space.len(), space.classes()), (7, 7));
        assert_eq!(space.add(&patch, 0), Ok(Some(Made::new())));
        space.rebuild().expect("no clash");
        assert_eq!(space.class(c.out()), space.class(d.out()));
        assert_eq!((space.len(), space.classes()), (5, 4), "inputs stay e-nodes of one class");
        let path = space.forest().path(space.number(c.out()), space.number(d.out()));
        assert_eq!(path.len(), 1);
        assert!(matches!(path[0].1, Reason::Congruent(a, b) if a == c && b == d));
        assert_eq!(space.add(&patch, 0), Ok(None));
        let folded = text::parse("graph (x: f32[4], y: f32[4]) { a = Neg(x) c = Relu(a) e = Add(c, c) output e }").expect("a graph");
        let other = text::parse("graph (x: f32[4], y: f32[4]) { c = Relu(x) e = Add(c, c) output e }").expect("a graph");
        assert!(space.contains(&folded) && !space.contains(&other));
    }

    #[test]
    fn a_rule_that_joins_different_types_is_named() {
        let graph = text::parse("graph (x: f32[4], y: f32[5]) { a = Neg(x) b = Neg(y) output a, b }").expect("a graph");
        let mut space = Space::new(graph);
        let [x, y, ..] = space.graph().topological()[..] else { unreachable!() };
        let patch =
            Patch { cause: "stretch".into(), create: Vec::new(), replace: [(x.out(), PatchValue::Old(y.out()))].into_iter().collect() };
        let clash = space.add(&patch, 0).expect_err("different types");
        assert_eq!(clash.to_string(), "rule `stretch` makes f32[4] equal to f32[5]");
    }
}
