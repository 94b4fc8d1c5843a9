//! Elements of tensors as sums of products under index variables.

mod algebra;
mod canonical;
mod cases;
mod contract;
mod domain;
mod fold;
mod function;
mod mask;
mod maxima;
mod number;
mod obligation;
mod reading;
mod roots;
mod scope;
mod sign;
mod simplify;
mod sum;
mod window;

pub(crate) use algebra::{Trouble, power, product};
pub(crate) use canonical::canonical;
pub(crate) use cases::vanishes;
pub(crate) use contract::contracted;
pub(crate) use domain::{fits, is_below, wrapped};
pub(crate) use function::apply;
pub(crate) use maxima::over;
pub(crate) use number::{Number, whole};
pub(crate) use obligation::{Claim, Failures, Obligation};
pub(crate) use reading::{Reading, Root, Rounded, elements, may_be_rounded, meant, stored};
pub(crate) use roots::rational_power;
pub(crate) use sign::Signs;
pub(crate) use simplify::{Simplifier, open_condition};
pub(crate) use sum::{Factor, Fold, Function, Sum};
