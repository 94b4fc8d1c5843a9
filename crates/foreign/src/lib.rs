//! Is this rule of another optimizer true, and under which guards? Reads, interprets and judges
//! such rules.
//!
//! A rule found on tensors of one size, or proved in a theory without sizes, may be false for
//! others: with groups, with broadcasting, with even windows. Here a rule is *true* only if both
//! sides are equal for all sizes that make both well-typed, as the system that ships it understands
//! its operators. Otherwise it is true under stated guards, or false, with a counterexample.
//! Tensors have up to four axes, and products are those of matrices or of stacks of matrices.
//!
//! ```
//! use regraft_foreign::{Format, MOST_PROOFS, Soundness, judge};
//! use regraft_ir::Trust;
//!
//! let rules = Format::Rules.read(b"(ewadd ?x (ewadd ?y ?z))=>(ewadd ?z (ewadd ?y ?x))\n(relu (ewadd ?x ?y))=>(ewadd (relu ?x) (relu ?y))")?;
//! let right = judge(&rules[0], MOST_PROOFS);
//! assert_eq!((right.soundness, right.trust), (Soundness::True, Trust::Proved));
//! let wrong = judge(&rules[1], MOST_PROOFS);
//! assert_eq!(wrong.algebra, "relu(a + b) => relu(a) + relu(b)");
//! assert!(wrong.soundness == Soundness::False && wrong.counterexample.is_some());
//! # Ok::<(), regraft_foreign::ImportError>(())
//! ```
//!
//! * [`Format::read`] reads a file, [`judge_all`] judges its rules.
//! * Whether a true rule is in a library or follows from one is a separate question: [`Rule`] and
//!   [`Judgement`] are the starting point for an answer.
//!
//! Pure: no I/O, no clock, no printing.

mod algebra;
mod arguments;
mod census;
mod cursor;
mod docket;
mod equations;
mod error;
mod evaluate;
mod facts;
mod family;
mod format;
mod guard;
mod infer;
mod instance;
mod judge;
mod judgement;
mod kind;
mod lower;
mod operator;
mod plan;
mod proof;
mod random;
mod reading;
mod rule;
mod shapes;
mod size;
mod taso;
mod tensat;
mod wire;

pub use algebra::algebra;
pub use docket::judge_all;
pub use error::{ImportError, Location};
pub use evaluate::Difference;
pub use format::{Format, MOST_BYTES};
pub use guard::{Guard, Guards};
pub use judge::judge;
pub use judgement::{Counterexample, Judgement, Pair, Soundness};
pub use kind::MOST_TYPINGS;
pub use operator::{Activation, Binary, Operator, Padding, Unary};
pub use proof::MOST_PROOFS;
pub use reading::Reading;
pub use rule::{MOST_NODES, MOST_OUTPUTS, MOST_VARIABLES, Node, Ref, Rule, Side};
