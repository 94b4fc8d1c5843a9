//! Does this rule follow from the rules that we have? Derives equations of tensor graphs from
//! rules: chains of steps, each applying a rule in one of its directions.
//!
//! Whether a rule follows from others is a separate question: a rule can be true and proved, and
//! still add nothing that a search with the others could not find. A [`Derivation`] is the answer
//! as an object: the graphs on the way and the law that leads from each to the next.
//! [`Derivation::replay`] trusts none of it: it applies every law again, and has the prover show
//! for all sizes that the graphs are equal.
//!
//! ```
//! use regraft_derive::{Laws, Limits, derive};
//! use regraft_ir::text;
//!
//! let rules = regraft_rules::parse("my.rules", "
//!   (rule factor (add (mul ?a ?b) (mul ?a ?c)) => (mul ?a (add ?b ?c))
//!     (when (same-shape ?b ?c)) (numeric reassociates) (instance (?a 2) (?b 2) (?c 2)))
//!   (rule associate (mul (mul ?a ?b) ?c) => (mul ?a (mul ?b ?c))
//!     (numeric reassociates) (instance (?a 2) (?b 2) (?c 2)))")?;
//! let laws = Laws::new(rules)?;
//! let before = text::parse("graph (a: f64[N], b: f64[N], c: f64[N]) { output Mul(Mul(a, b), Add(b, c)) as y }")?;
//! let after = text::parse("graph (a: f64[N], b: f64[N], c: f64[N]) { output Mul(a, Add(Mul(b, b), Mul(b, c))) as y }")?;
//! let derivation = derive(&before, &after, &laws, &Limits::default())?;
//! assert_eq!(derivation.names(), ["associate", "factor'"]);
//! derivation.replay(&before, &after, &laws)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pure: no I/O, no clock, no printing.

mod derivation;
mod difference;
mod laws;
mod moves;
mod numbering;
mod redundancy;
mod reverse;
mod search;
mod surroundings;
mod walk;

pub use derivation::{Derivation, DerivationError, Flaw, Link};
pub use laws::Laws;
pub use redundancy::redundant;
pub use reverse::reverse;
pub use search::{Limits, Open, derive, derive_by_all};
pub use walk::{Consistency, Walk, consistency, walk};
