//! `LayoutTarget`: which layouts a target has, what a change of layout costs, and which layouts
//! each operator can take, as data.

use std::path::Path;

use regraft_ir::OpKind;
use serde::Deserialize;

use super::spec::{KernelPrice, KernelSpec};
use crate::roofline::Machine;

/// The layout that a model is written in: elements in the order of their indices, the last axis
/// fastest.
pub const PLAIN: LayoutId = 0;

/// A layout by its number: 0 is [`PLAIN`], others are those of [`LayoutTarget::layouts`] in order,
/// from 1.
pub type LayoutId = u8;

/// Most layouts of a target besides the plain one: sets of them are kept as bits.
const MOST: usize = 15;

/// The targets that are shipped: name and description.
const SHIPPED: &[(&str, &str)] =
    &[("onnxruntime-cpu", include_str!("../../targets/onnxruntime-cpu.json")), ("gpu-model", include_str!("../../targets/gpu-model.json"))];

/// Why there is no such target. Always the description's fault.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No shipped target has the name, and no file.
    #[error("`{name}` is neither a file nor one of {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// It cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        why: std::io::Error,
    },
    /// It is not a description of a target.
    #[error("{name}: {why}")]
    Malformed {
        /// The target or its file.
        name: String,
        /// Why.
        why: String,
    },
}

/// The names of the shipped targets.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// Who chooses the layouts of a model's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chooser {
    /// We do: the cheapest choice is taken.
    #[default]
    Search,
    /// The target does, from the operands to the results: an operator takes the first of its
    /// kernels that is `eager`, or else the first whose operands are there in its layouts, or else
    /// the plain one.
    Target,
}

/// A target's layouts. `docs/guide/layouts.md` says how one is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LayoutTarget {
    /// Its name.
    pub name: String,
    /// What it stands for, and where the numbers come from.
    pub about: String,
    /// Who chooses.
    #[serde(default)]
    pub chosen_by: Chooser,
    /// Speeds by which operators are priced where there is no price list.
    pub machine: Option<Machine>,
    /// Whether price lists already charge a node for changes of layout towards neighbours that
    /// never have, or always have, another layout than the node.
    #[serde(default)]
    pub lists_include_changes: bool,
    /// Whether a transpose that only renames the axes of what is stored costs nothing.
    #[serde(default)]
    pub views: bool,
    /// Layouts besides the plain one.
    pub layouts: Vec<Layout>,
    /// Changes of layout; the first that fits counts.
    pub changes: Vec<Change>,
    /// Kernels besides the plain ones.
    pub kernels: Vec<KernelSpec>,
}

/// How the elements of a tensor are stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// Names of the element types that can be stored like this; any, if empty.
    #[serde(default)]
    pub types: Vec<String>,
    /// Orders in which the axes are stored, slowest first; at most one of each rank.
    #[serde(default)]
    pub orders: Vec<Vec<usize>>,
    /// Or else the axis that is divided into blocks.
    pub block: Option<Block>,
}

/// An axis that is stored in blocks: the places in a block become the fastest axis, and the last
/// block is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Block {
    /// Rank of the tensor.
    pub rank: usize,
    /// The axis.
    pub axis: usize,
    /// Places in a block.
    pub size: usize,
}

/// What changing the layout of a tensor costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Change {
    /// Name of the layout before; any, if absent.
    pub from: Option<String>,
    /// Name of the layout after; any, if absent.
    pub to: Option<String>,
    /// How much it costs.
    #[serde(flatten)]
    pub rate: Rate,
}

/// A time that grows with the size of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rate {
    /// Of any tensor, ns.
    pub ns: f64,
    /// And for each of its bytes, ns.
    pub ns_per_byte: f64,
}

impl LayoutTarget {
    /// A shipped target by its name, or one described in a file.
    ///
    /// # Errors
    ///
    /// There is none, or it is not described properly.
    pub fn read(name_or_path: &str) -> Result<LayoutTarget, TargetError> {
        if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return LayoutTarget::parse(name, text);
        }
        if !Path::new(name_or_path).exists() {
            return Err(TargetError::Unknown { name: name_or_path.into() });
        }
        let unreadable = |why| TargetError::Unreadable { path: name_or_path.into(), why };
        LayoutTarget::parse(name_or_path, &std::fs::read_to_string(name_or_path).map_err(unreadable)?)
    }

    /// Reads a description; `name` is for errors.
    ///
    /// # Errors
    ///
    /// It is not JSON of the right form, or speaks of layouts or operators that are not there.
    pub fn parse(name: &str, text: &str) -> Result<LayoutTarget, TargetError> {
        let malformed = |why: String| TargetError::Malformed { name: name.into(), why };
        let target: LayoutTarget = serde_json::from_str(text).map_err(|why| malformed(why.to_string()))?;
        target.check().map_err(malformed)?;
        Ok(target)
    }

    /// The number of a layout.
    pub fn id(&self, name: &str) -> Option<LayoutId> {
        if name == "plain" {
            return Some(PLAIN);
        }
        self.layouts.iter().position(|layout| layout.name == name).map(|at| at as LayoutId + 1)
    }

    /// The name of a layout.
    pub fn name_of(&self, id: LayoutId) -> &str {
        let layout = usize::from(id).checked_sub(1).and_then(|at| self.layouts.get(at));
        layout.map_or("plain", |layout| &layout.name)
    }

    /// A layout other than the plain one.
    pub fn layout(&self, id: LayoutId) -> Option<&Layout> {
        self.layouts.get(usize::from(id).checked_sub(1)?)
    }

    /// Whether all changes of a value cost the same.
    pub(super) fn is_uniform(&self) -> bool {
        matches!(self.changes.first(), Some(Change { from: None, to: None, .. }))
            && self.layouts.iter().all(|layout| layout.block.is_none())
    }

    /// Numbers of the alternatives in `plain|nhwc`.
    pub(super) fn alternatives(&self, text: &str) -> Vec<LayoutId> {
        text.split('|').filter_map(|name| self.id(name)).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.layouts.len() > MOST {
            return Err(format!("it has {} layouts; there can be {MOST}", self.layouts.len()));
        }
        for (at, layout) in self.layouts.iter().enumerate() {
            layout.check().map_err(|why| format!("layout `{}` {why}", layout.name))?;
            if layout.name == "plain" || self.layouts[..at].iter().any(|other| other.name == layout.name) {
                return Err(format!("there are two layouts `{}`", layout.name));
            }
        }
        let known = |name: &str| self.id(name).map(drop).ok_or(format!("there is no layout `{name}`"));
        for change in &self.changes {
            change.from.iter().chain(&change.to).try_for_each(|name| known(name))?;
            change.rate.check()?;
        }
        for spec in &self.kernels {
            for name in &spec.operators {
                OpKind::from_name(name).ok_or(format!("there is no operator `{name}`"))?;
            }
            spec.each
                .iter()
                .chain(&spec.operands)
                .chain(&spec.results)
                .chain(&spec.within)
                .flat_map(|names| names.split('|'))
                .try_for_each(known)?;
            if spec.each.is_empty() == (spec.operands.is_empty() || spec.results.is_empty()) {
                return Err(format!("a kernel of {} needs either `each`, or `operands` and `results`", spec.operators.join(", ")));
            }
            match spec.price {
                KernelPrice::Times(factor) if !(factor.is_finite() && factor >= 0.0) => {
                    return Err(format!("{factor} times a price is none"));
                }
                KernelPrice::Rate(rate) => rate.check()?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Rate {
    /// What a tensor of so many bytes costs, ns.
    pub fn of(&self, bytes: f64) -> u64 {
        (self.ns + self.ns_per_byte * bytes).round() as u64
    }

    fn check(&self) -> Result<(), String> {
        let is_time = |time: f64| time.is_finite() && time >= 0.0;
        if is_time(self.ns) && is_time(self.ns_per_byte) { Ok(()) } else { Err(format!("{self:?} is no time")) }
    }
}

impl Layout {
    fn check(&self) -> Result<(), &'static str> {
        if self.orders.is_empty() == self.block.is_none() {
            return Err("has neither orders of axes nor a block, or both");
        }
        if self.block.is_some_and(|block| block.axis >= block.rank || block.size < 2) {
            return Err("has a block that is none");
        }
        for (at, order) in self.orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..order.len()) {
                return Err("has an order that is no permutation");
            }
            if order.iter().copied().eq(0..order.len()) {
                return Err("has the plain order");
            }
            if self.orders[..at].iter().any(|other| other.len() == order.len()) {
                return Err("has two orders of one rank");
            }
        }
        Ok(())
    }

    /// The order in which it stores the axes of a tensor of this rank, slowest first.
    pub fn order(&self, rank: usize) -> Option<&[usize]> {
        self.orders.iter().find(|order| order.len() == rank).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_targets_are_read() {
        for name in names() {
            let target = LayoutTarget::read(name).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(target.name, name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_description_is_said() {
        let plain = r#"{"name": "t", "about": "", "layouts": LAYOUTS, "changes": [], "kernels": KERNELS}"#;
        let nhwc = r#"[{"name": "nhwc", "orders": [[0, 2, 3, 1]]}]"#;
        let cases = [
            ("[", "[]", "expected"),
            (r#"[{"name": "a", "orders": [[0, 2]]}]"#, "[]", "no permutation"),
            (r#"[{"name": "a", "orders": [[0, 1]]}]"#, "[]", "the plain order"),
            (r#"[{"name": "a"}]"#, "[]", "neither"),
            (r#"[{"name": "a", "block": {"rank": 4, "axis": 4, "size": 8}}]"#, "[]", "is none"),
            (r#"[{"name": "plain", "orders": [[1, 0]]}]"#, "[]", "two layouts"),
            (nhwc, r#"[{"operators": ["Konv"], "each": ["nhwc"]}]"#, "no operator `Konv`"),
            (nhwc, r#"[{"operators": ["Conv"], "each": ["nchw8c"]}]"#, "no layout `nchw8c`"),
            (nhwc, r#"[{"operators": ["Conv"], "operands": ["nhwc"]}]"#, "needs either"),
            (nhwc, r#"[{"operators": ["Conv"], "each": ["nhwc"], "price": {"times": -1}}]"#, "is none"),
            (nhwc, r#"[{"operators": ["Conv"], "each": ["nhwc"], "color": 1}]"#, "color"),
        ];
        for (layouts, kernels, expected) in cases {
            let text = plain.replace("LAYOUTS", layouts).replace("KERNELS", kernels);
            let why = LayoutTarget::parse("it", &text).expect_err("it is wrong").to_string();
            assert!(why.contains(expected), "{why}\n{text}");
        }
        let why = LayoutTarget::read("no-such-target").expect_err("there is none").to_string();
        assert!(why.contains("onnxruntime-cpu"), "{why}");
    }
}
