//! Exact readings of rules: the operators' one meaning, evaluated over scalars without rounding.

#[cfg(test)]
mod agreement;
mod coverage;
mod equal;
mod exact;
mod field;
mod fingerprint;
mod index;
mod interval;
mod judge;
mod leading;
mod meaning;
mod numbers;
mod premises;
mod ratio;
mod rebuild;
mod validate;
mod value;
mod verdict;
mod whole;

pub use coverage::{coverage, coverage_document};
pub use equal::{Allowance, Assumptions, equal, equal_where, equal_within};
pub use exact::{Exactness, exact_equal};
pub use field::{Field, PRIME};
pub use fingerprint::{Fingerprint, fingerprint};
pub use index::interruptible;
pub use interval::{Enclosure, IDENTITIES, Identity, enclose, identities};
pub use judge::{Generated, Judgement, Word, any_rank, generate, judge, replay};
pub use leading::{leading_axes, with_leading_axes};
pub use numbers::settled;
pub use premises::Premises;
pub use validate::{Tally, validate};
pub use verdict::{Rounding, Verdict};
