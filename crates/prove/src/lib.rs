//! Exact readings of rules: the operators' one meaning, evaluated over scalars without rounding.

#[cfg(test)]
mod agreement;
mod equal;
mod field;
mod fingerprint;
mod index;
mod judge;
mod meaning;
mod ratio;
mod value;
mod verdict;

pub use equal::{Allowance, Assumptions, equal, equal_where, equal_within};
pub use field::{Field, PRIME};
pub use fingerprint::{Fingerprint, fingerprint};
pub use judge::{Judgement, Word, judge};
pub use verdict::Verdict;
