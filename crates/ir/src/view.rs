//! `View`: what may be asked of a graph, one node at a time.

use smallvec::SmallVec;

use crate::constant::Const;
use crate::dim::Dim;
use crate::error::EvalError;
use crate::eval;
use crate::graph::{Carrier, Graph, NodeId, ValueId};
use crate::op::{Op, OpKind};
use crate::ty::TensorType;

/// What may be asked of a graph, one node at a time, so that whoever answers can keep account of
/// what an answer depends on.
pub trait View {
    /// The kind of a node's operator.
    fn kind(&self, id: NodeId) -> OpKind;
    /// A node's operator, with its attributes; that of a constant holds its elements.
    fn op(&self, id: NodeId) -> &Op;
    /// Operands, in order.
    fn inputs(&self, id: NodeId) -> &[ValueId];
    /// Result types; `None` where unknown.
    fn types(&self, id: NodeId) -> &[Option<TensorType>];
    /// Whether a node depends on constants only.
    fn depends_on_constants_only(&self, id: NodeId) -> bool;
    /// Readers of a node's results: `(reader, operand slot)`, ascending in a graph.
    fn readers(&self, id: NodeId) -> &[(NodeId, u32)];
    /// Readers of a node's results that apply this operator to operands of these types, each once.
    fn readers_alike(&self, id: NodeId, op: &Op, operands: &[Option<&TensorType>]) -> SmallVec<[NodeId; 2]> {
        let ty = |value: &ValueId| self.types(value.node)[value.port as usize].as_ref();
        let is_alike = |reader: NodeId| {
            self.kind(reader) == op.kind() && self.op(reader) == op && self.inputs(reader).iter().map(ty).eq(operands.iter().copied())
        };
        let mut alike = SmallVec::new();
        for (reader, _) in self.readers(id) {
            if !alike.contains(reader) && is_alike(*reader) {
                alike.push(*reader);
            }
        }
        alike
    }
    /// Whether a declared output returns this value.
    fn is_output(&self, value: ValueId) -> bool;
    /// An arbitrary but fixed order of nodes.
    fn is_before(&self, a: NodeId, b: NodeId) -> bool;
    /// See [`Graph::carrier`].
    fn carrier(&self, symbol: &str) -> Option<Carrier>;
    /// See [`Graph::bearer`].
    fn bearer(&self, size: &Dim) -> Option<(ValueId, usize)>;
    /// The common value of all elements of a constant node, if there is one.
    fn splat(&self, id: NodeId) -> Option<f64>;
    /// The value of a cone of constants; see [`eval::constant_value`].
    ///
    /// # Errors
    ///
    /// Constants that runtimes may compute differently.
    fn evaluate(&self, value: ValueId) -> Result<Const, EvalError>;
}

impl dyn View + '_ {
    /// The type of a value, if known.
    pub fn ty(&self, value: ValueId) -> Option<&TensorType> {
        self.types(value.node)[value.port as usize].as_ref()
    }

    /// Whether a value depends on constants only.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.depends_on_constants_only(value.node)
    }

    /// Readers of one value: `(reader, operand slot)`.
    pub fn users(&self, value: ValueId) -> SmallVec<[(NodeId, u32); 4]> {
        let readers = self.readers(value.node);
        if self.types(value.node).len() == 1 {
            return SmallVec::from_slice(readers);
        }
        readers.iter().copied().filter(|(user, slot)| self.inputs(*user)[*slot as usize] == value).collect()
    }
}

impl View for Graph {
    #[inline]
    fn kind(&self, id: NodeId) -> OpKind {
        self.node(id).op.kind()
    }

    #[inline]
    fn op(&self, id: NodeId) -> &Op {
        &self.node(id).op
    }

    #[inline]
    fn inputs(&self, id: NodeId) -> &[ValueId] {
        &self.node(id).inputs
    }

    #[inline]
    fn types(&self, id: NodeId) -> &[Option<TensorType>] {
        &self.node(id).types
    }

    #[inline]
    fn depends_on_constants_only(&self, id: NodeId) -> bool {
        self.node(id).constant
    }

    #[inline]
    fn readers(&self, id: NodeId) -> &[(NodeId, u32)] {
        &self.node(id).users
    }

    #[inline]
    fn is_output(&self, value: ValueId) -> bool {
        Graph::is_output(self, value)
    }

    #[inline]
    fn is_before(&self, a: NodeId, b: NodeId) -> bool {
        a < b
    }

    fn carrier(&self, symbol: &str) -> Option<Carrier> {
        Graph::carrier(self, symbol)
    }

    fn bearer(&self, size: &Dim) -> Option<(ValueId, usize)> {
        Graph::bearer(self, size)
    }

    fn splat(&self, id: NodeId) -> Option<f64> {
        if let Op::Constant(constant) = &self.node(id).op { constant.value.splat() } else { None }
    }

    fn evaluate(&self, value: ValueId) -> Result<Const, EvalError> {
        eval::constant_value(self, value)
    }
}
