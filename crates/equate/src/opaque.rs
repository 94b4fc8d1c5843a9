//! Operators that are not looked into.

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
    /// The operands, by their places among the node's, in the order that the name stands for.
    pub operands: Vec<usize>,
}

/// Knows opaque operators of both graphs.
pub trait Opaques {
    /// What the opaque node `id` computes; its operands are `operands`, where equal ones are the
    /// same. `None` if that may differ from run to run or is not known: then it is equal to
    /// nothing.
    fn function(&mut self, side: Side, id: NodeId, operands: &[ValueId]) -> Option<Function>;
}

/// Knows none.
pub struct NoOpaques;

impl Opaques for NoOpaques {
    fn function(&mut self, _: Side, _: NodeId, _: &[ValueId]) -> Option<Function> {
        None
    }
}
