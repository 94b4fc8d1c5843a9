//! All operators: one definition each, one line each in the table below.

pub mod activation;
pub mod arithmetic;
pub(crate) mod elementwise;
mod leaf;
pub mod matmul;

pub use leaf::{Constant, Input, OpaqueOp};

crate::operators! {
    matmul::MatMul,
    arithmetic::Add,
    arithmetic::Sub,
    arithmetic::Mul,
    arithmetic::Div,
    activation::Relu,
}
