//! Opaque operators.

use regraft_ir::{NodeId, ValueId};

/// Which of the two graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first one.
    A,
    /// The second one.
    B,
}

/// What an opaque operator computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// A name that two operators share only if they give the same results on the same operands.
    pub name: Vec<u8>,
    /// The operands, by index among the node's, in the order that the name stands for.
    pub operands: Vec<usize>,
}

/// Identifies opaque operators of both graphs.
pub trait Opaques {
    /// What the opaque node `id` computes; in `operands`, equal operands have equal ids. `None` if
    /// the result may differ from run to run or is unknown: the operator then equals no other.
    fn function(&mut self, side: Side, id: NodeId, operands: &[ValueId]) -> Option<Function>;
}

/// Identifies none.
pub struct NoOpaques;

impl Opaques for NoOpaques {
    fn function(&mut self, _: Side, _: NodeId, _: &[ValueId]) -> Option<Function> {
        None
    }
}
