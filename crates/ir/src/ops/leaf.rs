//! Nodes without operands, and nodes kept verbatim.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::constant::Const;
use crate::ty::TensorType;

/// A graph input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Declared name.
    pub name: Arc<str>,
    /// Declared type.
    pub ty: TensorType,
}

/// A constant tensor (an initializer or a `Constant` node).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    /// The value, by reference.
    pub value: Const,
}

/// An operator that Regraft does not define: kept as it is, and optimized around.
#[derive(Clone, Debug)]
pub struct OpaqueOp {
    /// Operator type.
    pub op_type: Arc<str>,
    /// Domain.
    pub domain: Arc<str>,
    /// Which of the original inputs are present, in order (`false`: left out). Operands beyond them
    /// are captured by subgraphs.
    pub given: Arc<[bool]>,
    /// Number of results.
    pub results: usize,
    /// Why it is opaque, human-readable.
    pub why: Arc<str>,
    /// True if it draws at random, is in training mode, or has a body or calls a function that
    /// contains such an operator. Then it is equal only to itself, even on equal operands;
    /// otherwise it is a function of its operands.
    pub effects: bool,
    /// Identity: two opaque operators are equal only if they are the same original node.
    pub id: u32,
}

impl PartialEq for OpaqueOp {
    fn eq(&self, other: &OpaqueOp) -> bool {
        self.id == other.id
    }
}

impl Eq for OpaqueOp {}

impl Hash for OpaqueOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}
