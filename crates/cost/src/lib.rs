//! What graphs cost: one honest table in integer nanoseconds.

pub mod model;
pub mod roofline;

pub use model::{CostModel, Ns};
pub use roofline::{Machine, Roofline};
