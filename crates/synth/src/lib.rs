//! New operators for a layer: linear operators with the input's and output's shapes of a layer, but
//! other sums and weights.
//!
//! An operator is an index expression, `y[i..] = sum over r.. of x[coordinates] * w[coordinates]`.
//! A search makes its coordinates one step at a time, from the output to the input, by the
//! primitives of Syno (Zhuo, Su and others, ASPLOS 2025). What the published system left open is
//! mended here: equality is an exact [`Key`], the distance to the input never exceeds what is
//! needed, weights need not add axes, and every kernel is compared with the [`Loops`] that define
//! it.
//!
//! ```
//! use regraft_synth::{Explorer, Filter, Operator, Spec, presets};
//!
//! let spec = presets::find("resnet-18-layer").expect("a preset").spec;
//! let mut explorer = Explorer::new(&spec, Filter::default());
//! let conv = "sum r0: C_in, r1: k_1, r2: k_1; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]";
//! let conv = Operator::parse(conv, &mut explorer.coordinates)?;
//! assert_eq!(explorer.path(&conv).expect("a path").len(), 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod canonical;
mod completions;
mod coordinate;
mod distance;
mod enumerate;
mod error;
mod explorer;
mod factored;
pub mod fit;
mod front;
mod key;
mod loops;
mod lower;
mod macs;
mod matrix;
mod operator;
mod plan;
pub mod presets;
mod sample;
mod size;
mod spec;
mod state;
mod stencil;
mod steps;
pub mod torch;
mod tree;
pub mod tvm;

pub use audit::{Audit, FormAudit, audit};
pub use canonical::Form;
pub use coordinate::{Coord, Coordinate, Coordinates, Facts, Values};
pub use distance::Distances;
pub use enumerate::{Enumerated, enumerate};
pub use error::{FormulaError, LowerError, SpecError};
pub use explorer::{Child, Explorer, Found};
pub use front::{Front, dominates};
pub use key::{Bindings, Key};
pub use loops::{Loops, Term};
pub use lower::{Dims, Lowered, Spelling, graph};
pub use macs::{Game, Volumes};
pub use operator::Operator;
pub use plan::{Plan, Stage};
pub use sample::{Draws, Sampler};
pub use size::{Size, VARIABLES};
pub use spec::{Axis, Layer, Limits, Spec, Variable};
pub use state::{Coords, Counts, State, Step};
pub use stencil::{Offset, Stencil};
pub use steps::{Filter, Sizes};
pub use tree::{Proposal, Tree};
