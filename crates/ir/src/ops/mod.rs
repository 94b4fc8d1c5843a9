//! All operators: one definition each, one line each in the table below.

pub mod activation;
pub mod arithmetic;
pub(crate) mod elementwise;
mod leaf;
pub mod matmul;

pub mod concat;
pub mod constant_of_shape;
pub mod expand;
pub mod flatten;
pub mod gather;
pub(crate) mod movement;
pub mod one_hot;
pub mod pad;
pub mod range;
pub mod reshape;
pub mod shape;
pub mod size;
pub mod slice;
pub mod split;
pub mod squeeze;
pub mod tile;
pub mod transpose;
pub mod unsqueeze;

pub use leaf::{Constant, Input, OpaqueOp};

crate::operators! {
    matmul::MatMul,
    arithmetic::Add,
    arithmetic::Sub,
    arithmetic::Mul,
    arithmetic::Div,
    activation::Relu,
    concat::Concat,
    split::Split,
    slice::Slice,
    transpose::Transpose,
    reshape::Reshape,
    flatten::Flatten,
    squeeze::Squeeze,
    unsqueeze::Unsqueeze,
    expand::Expand,
    tile::Tile,
    pad::Pad,
    gather::Gather,
    one_hot::OneHot,
    shape::Shape,
    size::Size,
    range::Range,
    constant_of_shape::ConstantOfShape,
}
