//! Are two graphs equal? Exact readings of the operators' single definition, for all sizes and
//! without rounding.
//!
//! | question | answer |
//! |---|---|
//! | are the graphs equal, whatever the sizes? | [`equal`]: a [`Verdict`], with its [`Premises`] |
//! | are they the same expressions at numeric sizes? | [`exact_equal`] |
//! | what do they compute in a prime field? | [`Field`], a scalar of the evaluator |
//! | which axes stand for any number of axes? | [`leading_axes`] |
//!
//! ```
//! let graph = |ops: &str| regraft_ir::text::parse(&format!("graph (x: f32[N, 4]) {{ {ops} output y }}"));
//! let (before, after) = (graph("a = Relu(x) y = Relu(a)")?, graph("y = Relu(x)")?);
//! assert!(regraft_prove::equal(&before, &after).is_proved());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod agreement;
mod carried;
mod equal;
mod exact;
mod field;
mod index;
mod leading;
mod meaning;
mod numbers;
mod premises;
mod ratio;
mod rational;
mod rebuild;
mod value;
mod verdict;
mod whole;
mod windows;

pub use equal::{Allowance, Assumptions, equal, equal_where, equal_within};
pub use exact::{Exactness, exact_equal};
pub use field::{Field, PRIME};
pub use index::interruptible;
pub use leading::{leading_axes, with_leading_axes};
pub use numbers::settled;
pub use premises::Premises;
pub use verdict::{Rounding, Verdict};
