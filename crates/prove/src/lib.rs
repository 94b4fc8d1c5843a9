//! Exact readings of rules: the operators' one meaning, evaluated over scalars without rounding.

mod field;
mod fingerprint;

pub use field::{Field, PRIME};
pub use fingerprint::{Fingerprint, fingerprint};
