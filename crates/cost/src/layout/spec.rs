//! `KernelSpec`: which kernels a target says that operators have.

use regraft_ir::OpKind;
use serde::Deserialize;

use super::target::Rate;
use crate::roofline::Machine;

/// A kernel of some operators that takes or makes layouts other than the plain one. Constants are
/// brought into any layout ahead of time, and a tensor of one element is in all layouts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelSpec {
    /// Names of the operators.
    pub operators: Vec<String>,
    /// Names of layouts; for each there is a kernel of which all operands and results are in that
    /// layout.
    #[serde(default)]
    pub each: Vec<String>,
    /// Or else the layouts of the operands, `plain|nhwc` for either; the last one is that of all
    /// further ones.
    #[serde(default)]
    pub operands: Vec<String>,
    /// And those of all results.
    #[serde(default)]
    pub results: Vec<String>,
    /// The name of a layout that the kernel brings operands into, and results back from, by itself:
    /// its price is then without these changes, which are added.
    pub within: Option<String>,
    /// What must hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// Whether the target takes it at once; see [`Chooser::Target`].
    #[serde(default)]
    pub eager: bool,
    /// What it costs.
    #[serde(default)]
    pub price: KernelPrice,
}

/// What a kernel costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum KernelPrice {
    /// As much as the plain one.
    #[default]
    Same,
    /// So many times as much as the plain one.
    Times(f64),
    /// What the roofline of another machine says.
    Machine(Machine),
    /// A time by the size of its first result.
    Rate(Rate),
}

/// What must hold for an operator to have a kernel. What is not known does not hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Condition {
    /// An attribute has this value, as graphs are printed: `[0, 2, 3, 1]`.
    Attribute {
        /// Its name.
        name: String,
        /// Its value.
        is: String,
    },
    /// A size of an operand; of the first result, without an operand.
    Size {
        /// The operand, from 0.
        operand: Option<usize>,
        /// The axis.
        axis: usize,
        /// At least.
        #[serde(default)]
        at_least: usize,
        /// At most.
        #[serde(default = "unlimited")]
        at_most: usize,
        /// A multiple of.
        #[serde(default = "one")]
        multiple_of: usize,
    },
    /// This size of every operand is a multiple.
    Sizes {
        /// The axis.
        axis: usize,
        /// A multiple of.
        multiple_of: usize,
    },
    /// The first result has so many axes.
    Rank {
        /// How many.
        is: usize,
    },
    /// All operands have the shape of the first result.
    SameShapes,
}

fn unlimited() -> usize {
    usize::MAX
}

fn one() -> usize {
    1
}

impl KernelSpec {
    /// Whether it is about operators of a kind.
    pub(super) fn is_of(&self, kind: OpKind) -> bool {
        self.operators.iter().any(|name| OpKind::from_name(name) == Some(kind))
    }
}
