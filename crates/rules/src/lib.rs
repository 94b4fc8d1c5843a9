//! Rewrite rules as data: the language, the matcher, and patches from matches.
//!
//! A rule file is a list of `(rule NAME SOURCE => TARGET CLAUSE...)`; see `rules/README.md` in the repository for the laws of writing one.

pub mod builtins;
mod changes;
mod constants;
mod cook_toom;
pub mod coverage;
pub mod domain;
mod draft;
pub mod draw;
pub mod error;
pub mod expr;
mod family;
pub mod instantiate;
pub mod library;
pub mod matcher;
mod operator;
pub mod parse;
mod path;
pub mod proof;
pub mod rule;
pub mod sample;
pub mod sexp;
mod spelling;
mod truth;
pub mod variants;
pub mod vary;

pub use coverage::Coverage;
pub use domain::{Case, Domain};
pub use draw::Draw;
pub use error::RuleError;
pub use instantiate::{Anything, AtOpset, Refusal, Writable, instantiate, makes_cycle, twin};
pub use library::Library;
pub use matcher::{Found, accept, matches_at, sources_at};
pub use parse::parse;
pub use proof::{Proof, Proofs};
pub use rule::{Numeric, Rule};
