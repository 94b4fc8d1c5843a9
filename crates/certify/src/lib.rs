//! Replays certificates: records of how one model was derived from another, checked step by step by
//! code that took no part in the optimization.
//!
//! A [`Certificate`] holds every rewrite as data: which nodes it replaced, and with what.
//! [`Certificate::verify`] reads both models, cuts out the region before and after each step, asks
//! the prover whether the two are equal, applies the step, and finally compares the resulting graph
//! with the output model. It does not search, does not match, and knows no rules.
//!
//! Trusted: the ONNX reader, the operator definitions in `regraft-ir`, the prover in
//! `regraft-prove`, and this crate. A wrong certificate proves nothing.
//!
//! ```
//! use regraft_certify::Step;
//! use regraft_ir::{NodeId, text};
//!
//! let graph = text::parse("graph (x: f32[4]) { a = Relu(x) b = Relu(a) output b }")?;
//! let step = Step { rule: "relu-relu".into(), redirects: vec![(NodeId(2).out(), NodeId(1).out())], ..Step::default() };
//! assert_eq!(Step::of(&graph, &[], &step.patch(&graph)?), Some(step));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certificate;
mod congruence;
mod digest;
mod error;
mod finding;
mod format;
mod oracle;
mod region;
mod replay;
mod step;
mod trial;
mod verify;

pub use certificate::{Certificate, GraphPath, Trail};
pub use congruence::{Congruence, Rounding, Verbatims};
pub use digest::{FileDigest, Hash, ModelDigest};
pub use error::{Broken, CertifyError};
pub use finding::{Finding, Replay};
pub use format::is_certificate;
pub use oracle::{Oracle, Prover};
pub use region::{Region, Scope};
pub use replay::{Judged, Replayer, Stop};
pub use step::Step;
pub use trial::trial;
