pub mod error;
pub mod expr;
pub mod operator;
mod read;
pub mod set;
pub mod spec;
pub mod terms;
pub mod types;
