//! The tensor graph of Regraft: types, operators with a single definition each, graphs and the
//! patches that edit them, the reference executor.
//!
//! Pure: no I/O, no clock, no printing.
//!
//! ```
//! use std::collections::HashMap;
//! use regraft_ir::{Patch, PatchValue, Tensor, Value, eval, text};
//!
//! let text = "graph (x: f64[N]) { a = Neg(x) b = Neg(a) y = Relu(b) output y }";
//! let mut graph = text::parse(text)?;
//! let x = Value::real(Tensor::new(vec![3], vec![-1.0, 0.0, 2.5]));
//! let feeds = HashMap::from([("x".to_string(), x)]);
//! let before = eval::run::<f64>(&graph, &feeds, &mut eval::NoOpaque)?;
//! assert_eq!(before, [Value::real(Tensor::new(vec![3], vec![0.0, 0.0, 2.5]))]);
//!
//! let [x, _, b, _] = graph.topological()[..] else { unreachable!() };
//! let replace = [(b.out(), PatchValue::Old(x.out()))].into_iter().collect();
//! let applied = graph.apply(&Patch { cause: "neg-neg".into(), create: vec![], replace });
//! assert_eq!(graph.len(), 2);
//! assert_eq!(eval::run::<f64>(&graph, &feeds, &mut eval::NoOpaque)?, before);
//! graph.undo(applied);
//! assert_eq!(graph.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ancestors;
pub mod attr;
mod budget;
pub mod constant;
pub mod dim;
pub mod dtype;
pub mod error;
pub mod eval;
pub mod folded;
pub mod graph;
pub mod implied;
pub mod key;
mod node_set;
pub mod normal;
pub mod onnx;
pub mod op;
pub mod ops;
pub mod parallel;
pub mod patch;
pub mod random;
pub mod scalar;
mod subnormal;
pub mod tensor;
pub mod text;
mod trust;
pub mod ty;
mod typed;
pub mod view;

pub use ancestors::Ancestors;
pub use attr::{Attr, AttrField, Float};
pub use budget::{Budget, Steps};
pub use constant::Const;
pub use dim::{Bindings, Dim};
pub use dtype::{Class, DType};
pub use error::{AttrError, EvalError, TypeError};
pub use folded::{Folded, Misfit};
pub use graph::{Carrier, Computation, Graph, Node, NodeId, Output, ValueId};
pub use implied::{Implied, implied};
pub use key::canonical_key;
pub use node_set::NodeSet;
pub use op::{Attributes, EvalContext, Kernel, Op, OpKind, Operator, Work};
pub use patch::{Applied, NewNode, Patch, PatchValue};
pub use random::{SplitMix64, fnv1a, scramble};
pub use scalar::{Function, Scalar};
pub use tensor::{Tensor, Value};
pub use trust::Trust;
pub use ty::{PartialType, Shape, TensorType, broadcast_shapes};
pub use typed::typed;
pub use view::View;
