//! Index arithmetic: integer polynomials over sizes and index variables, and what is known about
//! their signs.

mod answers;
mod corner;
mod facts;
mod fuel;
mod poly;
mod reduce;

pub(crate) use facts::{Facts, Table};
pub(crate) use fuel::Fuel;
pub use fuel::interruptible;
pub(crate) use poly::{Atom, Poly, Source, Var, fresh};
