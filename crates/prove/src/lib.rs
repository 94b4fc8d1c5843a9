//! Exact readings of rules: the operators' one meaning, evaluated over scalars without rounding.

mod equal;
mod field;
mod fingerprint;
mod index;
mod meaning;
mod value;
mod verdict;

pub use equal::equal;
pub use field::{Field, PRIME};
pub use fingerprint::{Fingerprint, fingerprint};
pub use verdict::Verdict;
