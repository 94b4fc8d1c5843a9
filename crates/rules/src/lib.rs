//! Rewrite rules as data: the language, the matcher, and patches from matches.
//!
//! A rule file is a list of `(rule NAME SOURCE => TARGET CLAUSE...)`; see `rules/README.md` in the
//! repository for the laws of writing one.
//!
//! ```
//! use regraft_ir::{canonical_key, text};
//! use regraft_rules::{Anything, instantiate, matches_at, parse};
//!
//! let rules = parse("my.rules", "
//! ;; x y + x z = x (y + z)
//! (rule factor (add (mul ?x ?y) (mul ?x ?z)) => (mul ?x (add ?y ?z))
//!   (when (same-shape ?y ?z)) (numeric reassociates) (instance (?x 2) (?y 2) (?z 2)))
//! ")?;
//! let inputs = "a: f32[N], b: f32[N], c: f32[N]";
//! let graph = |y: &str| text::parse(&format!("graph ({inputs}) {{ output {y} as y }}"));
//! let (mut before, after) = (graph("Add(Mul(a, b), Mul(a, c))")?, graph("Mul(a, Add(b, c))")?);
//! let found = matches_at(&before, &rules[0], 0, before.outputs()[0].value.node);
//! let patch = instantiate(&before, &rules[0], &found[0], &Anything)?;
//! before.apply(&patch);
//! assert_eq!(canonical_key(&before), canonical_key(&after));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod builtins;
mod changes;
mod constants;
mod cook_toom;
pub mod coverage;
pub mod domain;
mod draft;
pub mod draw;
mod elementwise;
pub mod error;
pub mod example;
pub mod expr;
mod family;
pub mod instantiate;
pub mod library;
pub mod matcher;
pub mod monotone;
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
pub use instantiate::{Anything, AtOpset, Edit, Refusal, Writable, closes_cycle, depends, edit, instantiate, twin};
pub use library::{Library, Rooted};
pub use matcher::{Found, Join, accept, joins_at, matches_at, sources_at, sources_at_both};
pub use monotone::{Reach, reaches};
pub use parse::parse;
pub use proof::{Proof, Proofs};
pub use rule::{NodePattern, Numeric, Pattern, Rule, Target};
