//! The graph: an arena of nodes with stable ids, explicit inputs and outputs.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::constant::Const;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::node_set::NodeSet;
use crate::op::{Op, OpKind};
use crate::ops::{Constant, Input};
use crate::ty::TensorType;

/// A node's stable index in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// One result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId {
    /// The node that computes it.
    pub node: NodeId,
    /// Which of its results.
    pub port: u32,
}

impl NodeId {
    /// The first result.
    #[inline]
    pub fn out(self) -> ValueId {
        self.port(0)
    }
    /// The result at `port`.
    #[inline]
    pub fn port(self, port: u32) -> ValueId {
        ValueId { node: self, port }
    }
}

/// What a node computes of its operands; the copies of a node share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// The operator.
    pub op: Op,
    /// Result types; `None` if unknown (only below opaque nodes).
    pub types: SmallVec<[Option<TensorType>; 1]>,
}

/// An operator applied to values.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operator and the result types, which a node also has as fields.
    pub computation: Arc<Computation>,
    /// Operands, in order.
    pub inputs: SmallVec<[ValueId; 3]>,
    /// Names of the results in the model, if any.
    pub names: SmallVec<[Option<Arc<str>>; 1]>,
    /// Index of the original node that this one is, unchanged, for writers that keep it verbatim.
    pub origin: Option<u32>,
    /// Depends on constants only, by operators that [fold](crate::op::Operator::FOLDS).
    pub constant: bool,
    /// Readers of the results: `(reader, operand slot)`, ascending; a reader of two operands occurs
    /// twice.
    pub users: SmallVec<[(NodeId, u32); 4]>,
    /// At least that of each operand.
    pub(crate) level: u32,
}

impl Deref for Node {
    type Target = Computation;

    #[inline]
    fn deref(&self) -> &Computation {
        &self.computation
    }
}

/// An axis that tells a symbol: its size is `factor * symbol + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The value.
    pub value: ValueId,
    /// Its axis.
    pub axis: usize,
    /// At least 1.
    pub factor: i64,
    /// Any number.
    pub offset: i64,
}

/// A named graph output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Declared name.
    pub name: Arc<str>,
    /// The value it returns.
    pub value: ValueId,
}

/// A tensor graph. Edited only by appending nodes and by [`Patch`](crate::patch::Patch)es.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Declared name.
    pub name: String,
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) inputs: Vec<NodeId>,
    pub(crate) outputs: Vec<Output>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// Declares an input.
    pub fn add_input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let id = self.push(Op::Input(Input { name: name.into(), ty: ty.clone() }), SmallVec::new(), SmallVec::from_iter([Some(ty)]));
        self.node_mut(id).names[0] = Some(name.into());
        self.inputs.push(id);
        id.out()
    }

    /// Declares an input that is the same in every run: a weight of any size whose elements are not
    /// given.
    pub fn add_parameter(&mut self, name: &str, ty: TensorType) -> ValueId {
        let value = self.add_input(name, ty);
        self.node_mut(value.node).constant = true;
        value
    }

    /// Adds a constant.
    pub fn add_const(&mut self, value: Const) -> ValueId {
        let ty = value.ty();
        self.push(Op::Constant(Constant { value }), SmallVec::new(), SmallVec::from_iter([Some(ty)])).out()
    }

    /// Adds an operator, inferring its result types.
    pub fn add(&mut self, op: Op, inputs: &[ValueId]) -> Result<NodeId, TypeError> {
        let types = self.infer(&op, inputs)?;
        Ok(self.push(op, SmallVec::from_slice(inputs), types.into_iter().map(Some).collect()))
    }

    /// Adds an operator whose result types are given (opaque operators).
    pub fn add_typed(&mut self, op: Op, inputs: &[ValueId], types: Vec<Option<TensorType>>) -> NodeId {
        self.push(op, SmallVec::from_slice(inputs), types.into())
    }

    /// The result types that `op` would have on `inputs`.
    pub fn infer(&self, op: &Op, inputs: &[ValueId]) -> Result<Vec<TensorType>, TypeError> {
        let types: Option<Vec<TensorType>> = inputs.iter().map(|v| self.ty(*v).cloned()).collect();
        op.infer(&types.ok_or_else(|| TypeError::undecided(format!("an operand of `{}` has no known type", op.kind().name())))?)
    }

    /// Declares an output.
    pub fn add_output(&mut self, name: &str, value: ValueId) {
        self.outputs.push(Output { name: name.into(), value });
    }

    fn push(&mut self, op: Op, inputs: SmallVec<[ValueId; 3]>, types: SmallVec<[Option<TensorType>; 1]>) -> NodeId {
        self.push_shared(Arc::new(Computation { op, types }), inputs.into_iter())
    }

    /// Appends a node that shares what it computes.
    pub(crate) fn push_shared(&mut self, computation: Arc<Computation>, operands: impl Iterator<Item = ValueId>) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let (mut level, mut is_known) = (0, true);
        let mut inputs = SmallVec::new();
        for (slot, value) in (0..).zip(operands) {
            let operand = self.node_mut(value.node);
            level = level.max(operand.level + 1);
            is_known &= operand.constant;
            operand.users.push((id, slot));
            inputs.push(value);
        }
        let Computation { op, types } = &*computation;
        let constant = match op.kind() {
            OpKind::Constant => true,
            kind if !kind.folds() => false,
            // A constant expanded to a symbolic size can differ between runs.
            _ => is_known && types.iter().all(|ty| ty.as_ref().is_some_and(|ty| ty.shape.iter().all(|d| d.known().is_some()))),
        };
        let names = if types.len() == 1 { SmallVec::from_buf([None]) } else { SmallVec::from_elem(None, types.len()) };
        self.nodes.push(Some(Node { computation, inputs, names, origin: None, constant, users: SmallVec::new(), level }));
        id
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If the node was removed: ids of removed nodes must not be kept.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes[id.0 as usize].as_ref().expect("the node is alive")
    }

    /// The node with this id, if it is alive.
    #[inline]
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0 as usize].as_mut().expect("the node is alive")
    }

    /// Names a result, for writers and reports.
    pub fn set_name(&mut self, value: ValueId, name: &str) {
        self.node_mut(value.node).names[value.port as usize] = Some(name.into());
    }

    /// Marks a node as the unchanged original at `origin`.
    pub fn set_origin(&mut self, id: NodeId, origin: u32) {
        self.node_mut(id).origin = Some(origin);
    }

    /// The type of a value, if known.
    #[inline]
    pub fn ty(&self, value: ValueId) -> Option<&TensorType> {
        self.node(value.node).types[value.port as usize].as_ref()
    }

    /// The constant behind a value, if it is a constant node (not a cone).
    pub fn constant(&self, value: ValueId) -> Option<&Const> {
        match &self.node(value.node).op {
            Op::Constant(c) => Some(&c.value),
            _ => None,
        }
    }

    /// True if a value depends on constants only.
    #[inline]
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.node(value.node).constant
    }

    /// Ids of all live nodes, ascending.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().enumerate().filter(|(_, n)| n.is_some()).map(|(i, _)| NodeId(i as u32))
    }

    /// One more than the largest id in use: the size for id-indexed tables.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Number of live nodes.
    pub fn len(&self) -> usize {
        self.nodes.iter().filter(|n| n.is_some()).count()
    }

    /// True if there are no live nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Declared inputs, in order.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// Where a symbol's number can be read from: an input, or otherwise a result of an opaque node
    /// that has just this size.
    pub fn carrier(&self, symbol: &str) -> Option<Carrier> {
        let told = |size: &Dim| size.linear().filter(|(_, name, _)| *name == symbol).map(|(factor, _, offset)| (factor, offset));
        let opaque = self.ids().filter(|id| matches!(self.node(*id).op, Op::Opaque(_)));
        let found = self.axis(self.inputs.iter().copied(), told);
        let ((factor, offset), value, axis) = found.or_else(|| self.axis(opaque, |size| told(size).filter(|told| *told == (1, 0))))?;
        Some(Carrier { value, axis, factor, offset })
    }

    /// The input and the axis that have exactly this size.
    pub fn bearer(&self, size: &Dim) -> Option<(ValueId, usize)> {
        self.axis(self.inputs.iter().copied(), |own| (own == size).then_some(())).map(|((), value, axis)| (value, axis))
    }

    /// The first axis of a result of these nodes that `tell` tells something about.
    fn axis<T>(&self, mut nodes: impl Iterator<Item = NodeId>, tell: impl Fn(&Dim) -> Option<T>) -> Option<(T, ValueId, usize)> {
        nodes.find_map(|id| {
            let results = (0..).zip(&self.node(id).types).filter_map(|(port, ty)| Some((port, ty.as_ref()?)));
            let mut axes = results.flat_map(|(port, ty)| ty.shape.iter().enumerate().map(move |(axis, size)| (port, axis, size)));
            axes.find_map(|(port, axis, size)| Some((tell(size)?, id.port(port), axis)))
        })
    }

    /// Declared outputs, in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// True if a declared output returns this value.
    #[inline]
    pub fn is_output(&self, value: ValueId) -> bool {
        self.outputs.iter().any(|o| o.value == value)
    }

    /// True if a declared output returns any result of this node.
    #[inline]
    pub fn feeds_output(&self, id: NodeId) -> bool {
        self.outputs.iter().any(|o| o.value.node == id)
    }

    /// The value behind any identities.
    pub fn named(&self, mut value: ValueId) -> ValueId {
        while let Op::Identity(_) = &self.node(value.node).op
            && let [operand] = self.node(value.node).inputs[..]
        {
            value = operand;
        }
        value
    }

    /// Readers of one value: `(reader, operand slot)`.
    pub fn users(&self, value: ValueId) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        self.node(value.node).users.iter().copied().filter(move |(user, slot)| self.node(*user).inputs[*slot as usize] == value)
    }

    /// All live nodes, operands before readers; ties by id. Nodes on a cycle (never present in a
    /// valid graph) are left out.
    pub fn topological(&self) -> Vec<NodeId> {
        let mut waiting: Vec<u32> = self.nodes.iter().map(|n| n.as_ref().map_or(0, |n| n.inputs.len() as u32)).collect();
        let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<NodeId>> =
            self.ids().filter(|id| waiting[id.0 as usize] == 0).map(std::cmp::Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(std::cmp::Reverse(id)) = ready.pop() {
            order.push(id);
            for (user, _) in &self.node(id).users {
                let left = &mut waiting[user.0 as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(std::cmp::Reverse(*user));
                }
            }
        }
        order
    }

    /// Finds out anew how far below the inputs each node is, so that [`depends`](Graph::depends) is
    /// fast again after many patches. None of these may be undone any more.
    pub fn renew_levels(&mut self) {
        for id in self.topological() {
            self.node_mut(id).level = self.level_below(&self.node(id).inputs);
        }
    }

    /// The least level above those of all operands.
    fn level_below(&self, operands: &[ValueId]) -> u32 {
        operands.iter().map(|value| self.node(value.node).level + 1).max().unwrap_or(0)
    }

    /// Whether one of some nodes is, or is computed from, one of others.
    pub fn depends(&self, from: impl IntoIterator<Item = NodeId>, on: &[NodeId]) -> bool {
        self.walk(from, on, &mut 0)
    }

    /// The same, counting the nodes that are visited.
    pub(crate) fn walk(&self, from: impl IntoIterator<Item = NodeId>, on: &[NodeId], visited: &mut usize) -> bool {
        let mut stack: SmallVec<[NodeId; 16]> = from.into_iter().collect();
        if stack.is_empty() {
            return false;
        }
        // What is computed from a node has no lower level.
        let lowest = on.iter().map(|id| self.node(*id).level).min().unwrap_or(u32::MAX);
        let mut seen = NodeSet::of(self, std::iter::empty());
        while let Some(id) = stack.pop() {
            *visited += 1;
            if on.contains(&id) {
                return true;
            }
            if self.node(id).level >= lowest && seen.insert(id) {
                stack.extend(self.node(id).inputs.iter().map(|value| value.node));
            }
        }
        false
    }

    /// A number per node, by id, smaller than those of all nodes that depend on it.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.capacity()];
        for (rank, id) in (0..).zip(self.topological()) {
            ranks[id.0 as usize] = rank;
        }
        ranks
    }
}
