//! Elements of tensors as sums of products under index variables.

mod algebra;
mod canonical;
mod cases;
mod contract;
mod number;
mod roots;
mod scope;
mod sign;
mod simplify;
mod sum;
mod window;

pub(crate) use algebra::{Trouble, apply, over, power, product, rational_power};
pub(crate) use canonical::canonical;
pub(crate) use cases::vanishes;
pub(crate) use contract::contracted;
pub(crate) use number::{number_of, whole};
pub(crate) use sign::Signs;
pub(crate) use simplify::{Simplifier, open_condition};
pub(crate) use sum::{Factor, Fold, Function, Sum};
