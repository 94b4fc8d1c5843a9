//! Whether two tensor graphs are equal, wherever they come from.
//!
//! Nothing is known about how one was derived from the other. So both are merged into one graph, in
//! which equal operators on equal operands are one value; values that look alike on random inputs
//! are cut out together with their common inputs, and the prover is asked whether they are equal
//! for all inputs and sizes (as in the sweeping of combinational equivalence checkers: Kuehlmann
//! and Krohm, DAC 1997; Mishchenko et al., "FRAIGs", 2005). A folded constant may be the rounded
//! value of a constant expression, even of one that only appears after rules have been applied:
//! such an answer is bounded, not proved.
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
