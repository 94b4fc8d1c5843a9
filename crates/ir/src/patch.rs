//! The only way to edit a graph: a patch with an audit trail, applied and undone exactly.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::graph::{Computation, Graph, Node, NodeId, ValueId};
use crate::op::{Op, OpKind};
use crate::ty::TensorType;

/// A value that a patch reads or produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchValue {
    /// A value of the graph.
    Old(ValueId),
    /// Result `port` of the patch's new node at `index`.
    New {
        /// Index in [`Patch::create`].
        index: u32,
        /// Which result.
        port: u32,
    },
}

/// A node that a patch creates.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNode {
    /// The operator and the result types, which a new node also has as fields.
    pub computation: Arc<Computation>,
    /// Operands: old values and results of earlier new nodes.
    pub inputs: SmallVec<[PatchValue; 3]>,
}

impl NewNode {
    /// An operator, applied to these operands, with results of these types.
    pub fn new(op: Op, inputs: SmallVec<[PatchValue; 3]>, types: SmallVec<[Option<TensorType>; 1]>) -> NewNode {
        NewNode { computation: Arc::new(Computation { op, types }), inputs }
    }
}

impl Deref for NewNode {
    type Target = Computation;

    #[inline]
    fn deref(&self) -> &Computation {
        &self.computation
    }
}

/// An edit: create nodes, then replace some values by others, then drop whatever is no longer read.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// Its origin: the name of a rule or a normal form.
    pub cause: Arc<str>,
    /// New nodes; later ones may read earlier ones.
    pub create: Vec<NewNode>,
    /// Values and their replacements. Types must be equal.
    pub replace: SmallVec<[(ValueId, PatchValue); 2]>,
}

impl Patch {
    /// Values of the graph that the patch reads or uses as replacements.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> + '_ {
        let operands = self.create.iter().flat_map(|n| n.inputs.iter());
        operands.chain(self.replace.iter().map(|(_, new)| new)).filter_map(|v| match v {
            PatchValue::Old(value) => Some(*value),
            PatchValue::New { .. } => None,
        })
    }
}

/// What a patch changed; hand it to [`Graph::undo`] to restore the graph bit-exactly.
#[derive(Debug)]
pub struct Applied {
    /// Ids of the new nodes, ascending.
    pub created: SmallVec<[NodeId; 8]>,
    /// Nodes removed because nothing reads them any more, in order of removal.
    pub removed: Vec<(NodeId, Node)>,
    /// Operand slots that now read another value: `(reader, slot, previous value)`.
    pub rewired: SmallVec<[(NodeId, u32, ValueId); 8]>,
    /// Declared outputs that now return another value: `(index, previous value)`.
    pub outputs: SmallVec<[(usize, ValueId); 2]>,
    /// Nodes that are further below the inputs since: `(node, previous level)`, in the order of
    /// change.
    raised: Vec<(NodeId, u32)>,
}

impl Graph {
    /// Applies a patch. The caller has checked types and acyclicity (see `regraft-rules`).
    ///
    /// Patches are undone in reverse order of application; ids of new nodes are the next free ones,
    /// so runs repeat exactly. A new value inherits the name of the value that it replaces,
    /// unless it is constant.
    pub fn apply(&mut self, patch: &Patch) -> Applied {
        self.apply_at(patch, |id| id)
    }

    /// Applies a patch whose nodes stand for those that `here` names.
    pub fn apply_at(&mut self, patch: &Patch, here: impl Fn(NodeId) -> NodeId) -> Applied {
        let mut applied = Applied {
            created: SmallVec::new(),
            removed: Vec::new(),
            rewired: SmallVec::new(),
            outputs: SmallVec::new(),
            raised: Vec::new(),
        };
        let base = self.nodes.len() as u32;
        let resolve = |value: PatchValue| match value {
            PatchValue::Old(v) => here(v.node).port(v.port),
            PatchValue::New { index, port } => NodeId(base + index).port(port),
        };
        for new in &patch.create {
            let created = self.push_shared(new.computation.clone(), new.inputs.iter().map(|v| resolve(*v)));
            // What it replaces has at least the level of what both read, and so have the readers.
            let level = &mut self.node_mut(created).level;
            *level = level.saturating_sub(1);
            applied.created.push(created);
        }
        let mut doubtful: SmallVec<[NodeId; 8]> = SmallVec::new();
        for (old, new) in &patch.replace {
            let (old, new) = (here(old.node).port(old.port), resolve(*new));
            // A value computed from weights is not a weight of the model.
            if new.node.0 >= base && !self.node(new.node).constant {
                self.inherit_name(old, new);
            }
            self.redirect(old, new, base, &mut applied);
            doubtful.push(old.node);
        }
        while let Some(id) = doubtful.pop() {
            let dead = self.get(id).is_some_and(|n| n.users.is_empty() && !matches!(n.op.kind(), OpKind::Input)) && !self.feeds_output(id);
            if dead {
                let node = self.detach(id);
                doubtful.extend(node.inputs.iter().map(|v| v.node));
                applied.removed.push((id, node));
            }
        }
        self.raise_readers(&mut applied);
        applied
    }

    /// Undoes the latest patch that is still applied.
    pub fn undo(&mut self, applied: Applied) {
        for (id, before) in applied.raised.into_iter().rev() {
            self.node_mut(id).level = before;
        }
        for (id, node) in applied.removed.into_iter().rev() {
            for (slot, value) in node.inputs.iter().enumerate() {
                self.add_user(value.node, id, slot as u32);
            }
            self.nodes[id.0 as usize] = Some(node);
        }
        for (index, before) in applied.outputs.into_iter().rev() {
            self.outputs[index].value = before;
        }
        for (reader, slot, before) in applied.rewired.into_iter().rev() {
            let now = std::mem::replace(&mut self.node_mut(reader).inputs[slot as usize], before);
            self.drop_user(now.node, reader, slot);
            self.add_user(before.node, reader, slot);
        }
        let Some(first) = applied.created.first() else { return };
        // What reads new nodes is new, and goes with them.
        for id in applied.created.iter().rev() {
            let inputs = std::mem::take(&mut self.node_mut(*id).inputs);
            for (slot, value) in inputs.iter().enumerate().filter(|(_, value)| value.node < *first) {
                self.drop_user(value.node, *id, slot as u32);
            }
        }
        self.nodes.truncate(first.0 as usize);
    }

    /// Gives rewired readers, and what is computed from them, at least the level of what they read.
    fn raise_readers(&mut self, applied: &mut Applied) {
        let mut stack: SmallVec<[NodeId; 8]> =
            applied.rewired.iter().map(|(reader, ..)| *reader).filter(|id| self.get(*id).is_some()).collect();
        while let Some(id) = stack.pop() {
            let node = self.node(id);
            let level = node.inputs.iter().map(|value| self.node(value.node).level).max().unwrap_or(0);
            if level > node.level {
                stack.extend(node.users.iter().map(|(reader, _)| *reader));
                applied.raised.push((id, node.level));
                self.node_mut(id).level = level;
            }
        }
    }

    /// Names a new value after the one that it replaces, unless it has a name already.
    fn inherit_name(&mut self, old: ValueId, new: ValueId) {
        let name = self.node(old.node).names.get(old.port as usize).cloned().flatten();
        if let Some(slot) = self.node_mut(new.node).names.get_mut(new.port as usize) {
            *slot = slot.take().or(name);
        }
    }

    /// Has the readers of a value read another one; `base` is the first of the new nodes.
    fn redirect(&mut self, old: ValueId, new: ValueId, base: u32, applied: &mut Applied) {
        let readers: SmallVec<[(NodeId, u32); 4]> = self.users(old).collect();
        for (reader, slot) in readers {
            // A new node that itself reads the old value keeps doing so: the patch meant it to.
            if reader.0 >= base {
                continue;
            }
            self.node_mut(reader).inputs[slot as usize] = new;
            self.drop_user(old.node, reader, slot);
            self.add_user(new.node, reader, slot);
            applied.rewired.push((reader, slot, old));
        }
        for (index, output) in self.outputs.iter_mut().enumerate() {
            if output.value == old {
                output.value = new;
                applied.outputs.push((index, old));
            }
        }
    }

    fn add_user(&mut self, node: NodeId, reader: NodeId, slot: u32) {
        let users = &mut self.node_mut(node).users;
        if let Err(at) = users.binary_search(&(reader, slot)) {
            users.insert(at, (reader, slot));
        }
    }

    fn drop_user(&mut self, node: NodeId, reader: NodeId, slot: u32) {
        let users = &mut self.node_mut(node).users;
        if users.last() == Some(&(reader, slot)) {
            users.pop();
        } else if let Ok(at) = users.binary_search(&(reader, slot)) {
            users.remove(at);
        }
    }

    /// Removes a node without readers from the arena.
    fn detach(&mut self, id: NodeId) -> Node {
        let node = self.nodes[id.0 as usize].take().expect("the node is alive");
        for (slot, value) in node.inputs.iter().enumerate() {
            if self.get(value.node).is_some() {
                self.drop_user(value.node, id, slot as u32);
            }
        }
        node
    }
}
