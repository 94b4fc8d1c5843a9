//! Is a rule true? Rules, judged by the prover, on exact numbers, and on every small instance.
//!
//! | question | answer |
//! |---|---|
//! | is the rule proved for all sizes? | [`judge`], [`generate`] for generated instances; [`replay`] repeats a kept proof |
//! | what does its proof cover, and what not? | [`coverage`], [`coverage_document`] |
//! | may all sizes of its data be open? | [`applies_when_open`], [`open_sizes_document`] |
//! | does it hold in a prime field? | [`fingerprint`] |
//! | does it hold on every instance with small sizes? | [`validate`] |
//! | do laws of functions hold between given bounds? | [`identities`], [`enclose`] |
//!
//! ```
//! use regraft_audit::judge;
//! use regraft_ir::Trust;
//!
//! let rules = regraft_rules::parse("my.rules", "
//! ;; max(max(x, 0), 0) = max(x, 0)
//! (rule relu-relu (relu (relu ?x)) => (relu ?x) (numeric exact) (doc \"Once is enough.\") (instance (n 2 3) (?x n 3)))
//! ")?;
//! assert_eq!(judge(&rules[0], 2, 0).trust(), Trust::Proved);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coverage;
mod fingerprint;
mod interval;
mod judge;
mod open_sizes;
mod validate;

pub use coverage::{coverage, coverage_document};
pub use fingerprint::{Fingerprint, fingerprint};
pub use interval::{Enclosure, IDENTITIES, Identity, enclose, identities};
pub use judge::{Generated, Judgement, any_rank, generate, judge, replay};
pub use open_sizes::{applies_when_open, open_sizes_document};
pub use validate::{Tally, validate};
