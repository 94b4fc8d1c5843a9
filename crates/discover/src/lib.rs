//! Which rules are there that nobody has written? Enumerates all small graphs over a specification
//! of operators and variables, and pairs those that compute the same.
//!
//! The idea is that of TASO (Jia et al., SOSP 2019, section 2). Differences: operators are defined
//! by exact expressions over `regraft-ir`, elements come from a prime field, shapes are symbolic
//! and an equality must hold at several sizes, each graph is enumerated once rather than once per
//! order of its operators, and a pair is omitted only if it follows from others that are kept.
//!
//! ```
//! use regraft_discover::{Options, Settings, Shard, Spec, Tables, Unobserved, enumerate, finish};
//!
//! let spec = Spec::parse("tiny.spec", "
//!     (sizes m k)
//!     (assignment (m 4) (k 5))
//!     (assignment (m 8) (k 3))
//!     (variable (x1 x2) m k)
//!     (operator relu (?a) (is (relu ?a)))
//!     (operator transpose (?a) (is (transpose ?a :perm (1 0))))
//! ")?;
//! let work = std::env::temp_dir();
//! let settings = Settings { size: 2, threads: 1, memory: 64 << 20, seed: 0, shard: Shard::WHOLE, work: &work, checkpoint: false };
//! let tables = Tables::new(&spec, &settings, &mut Unobserved)?;
//! let found = enumerate(&spec, &tables, &settings, &mut Unobserved)?;
//! let rules = finish(&spec, &tables, &found.pairs, Options { seed: 0, threads: 1, derive: true }, &mut Unobserved)?;
//! let texts: String = rules.candidates.iter().map(|c| c.text(&spec, 0)).collect();
//! for side in ["(transpose (transpose x1))", "(relu (relu x1))", "(relu (transpose x1))"] {
//!     assert!(texts.contains(side), "{texts}");
//! }
//! # Ok::<(), regraft_discover::DiscoverError>(())
//! ```

mod candidate;
mod closure;
mod counting_filter;
mod derive;
mod enumerate;
mod error;
mod expr;
mod finish;
mod gain;
mod general;
mod heads;
mod instance;
mod journal;
mod lower;
mod observe;
mod operator;
mod pairing;
mod part;
mod pattern;
mod prune;
mod read;
mod readers;
mod record;
mod rename;
mod set;
mod sizes;
mod spec;
mod state;
mod statement;
mod terms;
mod types;
mod typing;
mod value_file;
mod values;
mod walk;

pub use candidate::{Candidate, Written};
pub use enumerate::{Enumerated, Settings, Tables, count, enumerate};
pub use error::DiscoverError;
pub use finish::{Finished, Options, finish};
pub use gain::{Rewrite, Saving};
pub use journal::Journal;
pub use lower::Constants;
pub use observe::{Observer, Unobserved};
pub use operator::Operator;
pub use pairing::{Pair, Tally};
pub use part::{Part, PartError};
pub use prune::{Fate, Pruned, Pruning, Ranked, Wanted, prune};
pub use set::{MOST_OPERATORS, TermId, TermSet};
pub use spec::{SHIPPED, Spec, Variable};
pub use state::{Identity, Shard};
pub use terms::{Term, Terms};
pub use values::Values;
pub use walk::Size;
