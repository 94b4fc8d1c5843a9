//! What instances of a rule have in common and where they differ: which aspects were general, and
//! which were particular numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regraft_ir::{Attr, Const, DType, Graph, NodeId, Op, OpKind, PatchValue, TensorType, ValueId};

use crate::expr::Val;
use crate::matcher::{Found, matches_at};
use crate::rule::{Operand, Rule};

/// Sizes of one axis over all instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// True if it was a symbol: the instance holds for all sizes.
    pub any: bool,
    /// The numbers it was.
    pub numbers: BTreeSet<i64>,
}

/// One operand over all instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandCoverage {
    /// Element types.
    pub types: BTreeSet<DType>,
    /// Sizes of every axis, by rank.
    pub ranks: BTreeMap<usize, Vec<Sizes>>,
    /// Whether it was present or omitted.
    pub given: BTreeSet<bool>,
}

/// What instances of a rule cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Operands, by the names of their variables.
    pub operands: BTreeMap<String, OperandCoverage>,
    /// Values of attributes, by operator and name: `conv.group`.
    pub attributes: BTreeMap<String, BTreeSet<String>>,
    /// In some instance, a leading axis stands for any number of axes.
    pub any_rank: bool,
}

impl Coverage {
    /// Adds the features of an instance with source `before`. Adds nothing if the rule does not
    /// match.
    pub fn add(&mut self, rule: &Rule, before: &Graph) {
        let roots: Vec<ValueId> = before.outputs().iter().map(|o| o.value).collect();
        let Some(root) = roots.first() else { return };
        // Instances are small, and a rule need not pay on them.
        let found = matches_at(before, &rule.anywhere(), 0, root.node).into_iter().find(|f| f.roots.iter().all(|r| roots.contains(r)));
        if let Some(found) = found {
            self.note(rule, before, &found);
        }
    }

    /// True if some size was a symbol.
    pub fn has_symbols(&self) -> bool {
        self.operands.values().flat_map(|operand| operand.ranks.values().flatten()).any(|size| size.any)
    }

    /// Adds one match.
    fn note(&mut self, rule: &Rule, graph: &Graph, found: &Found) {
        for (name, tensors) in operands(rule, found) {
            let operand = self.operands.entry(name).or_default();
            operand.given.insert(!tensors.is_empty());
            for ty in tensors.iter().filter_map(|v| graph.ty(*v)) {
                operand.note(ty);
            }
        }
        for (name, value) in attributes(graph, &found.nodes) {
            self.attributes.entry(name).or_default().insert(value);
        }
    }

    /// What sets a match apart from everything covered: each rank, attribute, type or size that no
    /// instance has.
    pub fn lacks(&self, rule: &Rule, graph: &Graph, found: &Found) -> Option<String> {
        for (name, tensors) in operands(rule, found) {
            let covered = self.operands.get(&name);
            if !covered.is_some_and(|c| c.given.contains(&!tensors.is_empty())) {
                return Some(format!("{name} is {}", if tensors.is_empty() { "left out" } else { "given" }));
            }
            for ty in tensors.iter().filter_map(|v| graph.ty(*v)) {
                if let Some(why) = covered.and_then(|c| c.lacks(ty, self.any_rank)) {
                    return Some(format!("{name} {why}"));
                }
            }
        }
        let attribute = attributes(graph, &found.nodes).into_iter().find(|(name, value)| {
            let covered = self.attributes.get(name);
            !covered.is_some_and(|values| values.contains(value))
        });
        attribute.map(|(name, value)| format!("{name} is {value}"))
    }
}

/// Maximum number of attribute values to print.
const SHOWN: usize = 6;

/// Values as `1|2`; if there are many, the first ones and their number.
fn alternatives<T: ToString>(values: impl ExactSizeIterator<Item = T>) -> String {
    let count = values.len();
    let shown: Vec<String> = values.take(SHOWN).map(|value| value.to_string()).collect();
    if count > SHOWN { format!("{}|.. ({count})", shown.join("|")) } else { shown.join("|") }
}

impl OperandCoverage {
    fn note(&mut self, ty: &TensorType) {
        self.types.insert(ty.dtype);
        let axes = self.ranks.entry(ty.rank()).or_insert_with(|| vec![Sizes::default(); ty.rank()]);
        for (axis, size) in axes.iter_mut().zip(&ty.shape) {
            match size.known() {
                Some(number) => drop(axis.numbers.insert(number)),
                None => axis.any = true,
            }
        }
    }

    fn lacks(&self, ty: &TensorType, any_rank: bool) -> Option<String> {
        // Instances are exact: a double covers every float type.
        let covered = |t: &DType| *t == ty.dtype || (t.is_float() && ty.dtype.is_float());
        if !self.types.iter().any(covered) {
            return Some(format!("is of {}", ty.dtype));
        }
        let least = self.ranks.keys().next().copied().unwrap_or(0);
        let covered = self.ranks.contains_key(&ty.rank()) || (any_rank && ty.rank() >= least);
        if !covered {
            return Some(format!("has rank {}", ty.rank()));
        }
        let axes = self.ranks.get(&ty.rank())?;
        let size = axes.iter().zip(&ty.shape).position(|(axis, size)| !axis.any && size.known().is_none_or(|n| !axis.numbers.contains(&n)));
        size.map(|axis| format!("has size {} at axis {axis}", ty.shape[axis]))
    }
}

/// Variables that stand for operands, and the tensors that they stand for.
fn operands(rule: &Rule, found: &Found) -> Vec<(String, Vec<ValueId>)> {
    let old = |value: &Val| if let Val::Value(PatchValue::Old(v)) = value { Some(*v) } else { None };
    let mut all = Vec::new();
    for (var, operand) in &rule.instance.operands {
        let tensors = match found.env.get(*var).and_then(Option::as_ref) {
            Some(Val::List(items)) => items.iter().filter_map(old).collect(),
            Some(value @ Val::Value(_)) => old(value).into_iter().collect(),
            Some(Val::Absent) if matches!(operand, Operand::Optional(_)) => Vec::new(),
            _ => continue,
        };
        all.push((format!("?{}", rule.variables[*var]), tensors));
    }
    all
}

/// A feature of a match that others may lack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Feature {
    /// The element type of an operand.
    Type(String, DType),
    /// Any other feature.
    Other(String),
}

/// The features of a match: element types, ranks, omitted operands, axes of size 1 and of equal
/// size, numbers that are 0 or 1, and attributes.
pub(crate) fn features(rule: &Rule, graph: &Graph, found: &Found) -> Vec<Feature> {
    let mut all = Vec::new();
    for (name, tensors) in operands(rule, found) {
        all.push(Feature::Other(format!("{name}: {} operands", tensors.len())));
        for value in tensors {
            let Some(ty) = graph.ty(value) else { continue };
            let ones: Vec<usize> = (0..ty.rank()).filter(|axis| ty.shape[*axis].is(1)).collect();
            all.push(Feature::Type(name.clone(), ty.dtype));
            all.push(Feature::Other(format!("{name}: rank {} ones {ones:?}", ty.rank())));
            let mut others = ty.shape.iter().filter(|size| !size.is(1));
            if let Some(first) = others.next()
                && ones.len() + 1 < ty.rank()
                && others.all(|size| size == first)
            {
                all.push(Feature::Other(format!("{name}: all sizes alike")));
            }
            if let Some(number) = graph.constant(value).and_then(Const::splat).filter(|n| [0.0, 1.0, -1.0].contains(n)) {
                all.push(Feature::Other(format!("{name}: {number}")));
            }
        }
    }
    all.extend(attributes(graph, &found.nodes).into_iter().map(|(name, value)| Feature::Other(format!("{name} {value}"))));
    all.sort();
    all.dedup();
    all
}

/// Attributes of the matched operators: those that decide how their axes are read.
fn attributes(graph: &Graph, nodes: &[NodeId]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for op in nodes.iter().map(|id| &graph.node(*id).op).filter(|op| !matches!(op, Op::Input(_) | Op::Constant(_))) {
        for (name, value) in op.attrs() {
            let shown = match &value {
                Attr::Ints(_) | Attr::Int(_) | Attr::Bool(_) | Attr::Str(_) | Attr::DType(_) => value.to_string(),
                // Numbers enter formulas as they are, and sizes are given by the operands.
                _ => continue,
            };
            if !(name == "shape" && matches!(op.kind(), OpKind::Reshape | OpKind::Expand)) {
                all.push((format!("{}.{name}", op.kind().name().to_lowercase()), shown));
            }
        }
    }
    all
}

impl fmt::Display for Coverage {
    /// On one line: `?x rank 4, sizes any any 5 6; ?w rank 4, sizes any any 1|3 1|2; conv.group
    /// 1|2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.operands.iter().map(|(name, operand)| format!("{name} {operand}")).collect();
        parts.extend(self.attributes.iter().map(|(name, values)| format!("{name} {}", alternatives(values.iter()))));
        if self.any_rank {
            parts.push("any leading axes".into());
        }
        f.write_str(&parts.join("; "))
    }
}

impl fmt::Display for OperandCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let types: Vec<String> = self.types.iter().map(|t| if t.is_float() { "real".into() } else { t.to_string() }).collect();
        if types != ["real"] && !types.is_empty() {
            parts.push(types.join("|"));
        }
        for axes in self.ranks.values() {
            parts.push(format!("[{}]", axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")));
        }
        if self.given.contains(&false) {
            parts.push(if self.given.contains(&true) { "or absent".into() } else { "absent".into() });
        }
        f.write_str(&parts.join(" "))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.any {
            return f.write_str("any");
        }
        f.write_str(&alternatives(self.numbers.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::sample::{self, draw_sized};

    #[test]
    fn what_was_a_symbol_is_any_and_what_was_a_number_is_that_number() {
        let text = "(rule r (relu (as ?y (conv ?x ?w ?b?))) => (conv ?x ?w ?b? :like ?y) (numeric exact)
            (instance (n 1 2) (?x n 2 4 4) (?w const 3 2 1 1) (?b optional const 3) (:strides (list 1 1)) (:dilations (list 1 1)) (:pads (list 0 0 0 0))))";
        let rule = &parse("t", text).unwrap()[0];
        let mut coverage = Coverage::default();
        for seed in 0..20 {
            for sizes in [sample::Sizes::Some, sample::Sizes::Known] {
                if let Ok(instance) = draw_sized(rule, seed, sizes) {
                    coverage.add(rule, &instance.before);
                }
            }
        }
        let shown = coverage.to_string();
        assert!(
            shown.starts_with("?b [any] or absent; ?w [any, any, 1, 1]; ?x [any, any, any, any]; conv.dilations [1, 1]; conv.group 1;"),
            "{shown}"
        );
        let instance = draw_sized(rule, 1, sample::Sizes::Known).unwrap();
        let found = &matches_at(&instance.before, rule, 0, instance.before.outputs()[0].value.node)[0];
        assert_eq!(coverage.lacks(rule, &instance.before, found), None);
        coverage.attributes.clear();
        assert!(coverage.lacks(rule, &instance.before, found).unwrap().starts_with("conv."));
    }
}
