//! Whether two tensor graphs are equal, whoever made them.
//!
//! Nothing is known of how one was made from the other. So both are put into one graph, in which
//! equal operators on equal operands are one value; values that look alike on random inputs are cut
//! out with what both depend on, and the prover is asked whether they are equal for all inputs and
//! sizes (the sweeping of equivalence checkers of circuits: Kuehlmann and Krohm, DAC 1997;
//! Mishchenko et al., "FRAIGs", 2005). A constant that was computed ahead of time may be the
//! rounded value of a constant expression, also of one that only appears after rules have been
//! applied: such an answer is bounded, and no proof.
//!
//! ```
//! use regraft_equate::{Effort, NoOpaques, equate};
//! use regraft_ir::Trust;
//! use regraft_ir::text::parse;
//! use regraft_rules::Library;
//!
//! let a = parse("graph (x: f32[N,4]) { t = Transpose(Transpose(x, perm=[1, 0]), perm=[1, 0])\n y = Relu(t)\n output y }")?;
//! let b = parse("graph (x: f32[N,4]) { y = Relu(x)\n output y }")?;
//! let found = equate(&a, &b, &mut NoOpaques, &Library::default(), &Effort::default());
//! assert_eq!(found.trust(), Trust::Proved);
//! # Ok::<(), regraft_ir::text::ParseError>(())
//! ```

mod equivalence;
mod joint;
mod opaque;
mod question;
mod region;
mod rewrite;
mod rounded;
mod sample;
mod sweep;
mod symbols;

pub use equivalence::{Equivalence, Gap};
pub use opaque::{Function, NoOpaques, Opaques, Side};
pub use sweep::{Effort, equate, equate_over};
