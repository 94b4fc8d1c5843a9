//! Layouts: the orders in which a target stores tensors, and what each operator costs in them.
//!
//! | to do | use |
//! |---|---|
//! | describe a target | [`LayoutTarget`], as JSON |
//! | know in which layouts a node can be computed | [`kernels`] |
//! | find the cheapest layouts of a graph | [`LaidOut::assignment`] |
//! | search graphs by what they cost in the best layouts | [`LaidOut`], a cost model |
//!
//! A node is computed by one of its kernels, each with a layout for every operand and result. A
//! value is made in one layout; for each other one that readers want, it is changed once, from the
//! one that it was made in. Inputs and outputs of a model are plain. What all kernels and changes
//! cost is the cost of the graph (TASO, SOSP 2019, section 5, where a layout is chosen for each
//! operator while substitutions are searched).

mod assign;
mod kernel;
mod laid_out;
mod min_sum;
mod problem;
mod prune;
mod spec;
mod storage;
mod subject;
mod target;

pub use assign::{Assignment, Relaid};
pub use kernel::{Kernel, Kernels, kernels};
pub use laid_out::LaidOut;
pub use min_sum::{Labelling, MinSum};
pub use spec::{Condition, KernelPrice, KernelSpec};
pub use storage::{Storage, is_view};
pub use target::{Block, Change, Chooser, Layout, LayoutId, LayoutTarget, PLAIN, Rate, TargetError, names};
