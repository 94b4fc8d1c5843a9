//! Attributes of a source's operators: those it names, and choices for the others.

use regraft_ir::{Attr, Dim, OpKind, TensorType};

use super::sampler::Sampler;
use crate::expr::{Expr, Val};
use crate::rule::NodePattern;

impl Sampler<'_> {
    /// All attributes of an operator of the source, on operands of these types.
    pub(super) fn attributes(&mut self, pattern: &NodePattern, types: &[TensorType]) -> Result<Vec<(String, Attr)>, String> {
        let mut attrs: Vec<(String, Attr)> = Vec::new();
        for (name, expr) in &pattern.attrs {
            let value = match expr {
                Expr::Var(var) if self.env[*var].is_none() => {
                    let spec = self.rule.instance.operands.iter().find(|(v, _)| v == var).map(|(_, o)| o.clone());
                    let value = match spec {
                        Some(spec) => self.operand(&spec)?,
                        None => self.open(pattern.kind, name, types)?,
                    };
                    let value = self.sizes(pattern.kind, name, value);
                    self.env[*var] = Some(value.clone());
                    value
                }
                other => self.eval(other)?,
            };
            attrs.push((name.clone(), value.to_attr().ok_or("not an attribute")?));
        }
        for name in pattern.kind.attr_names() {
            if !attrs.iter().any(|(n, _)| n == name) {
                let value = self.open(pattern.kind, name, types)?;
                let value = self.sizes(pattern.kind, name, value);
                attrs.push((name.to_string(), value.to_attr().ok_or("not an attribute")?));
            }
        }
        Ok(attrs)
    }

    /// A value for an attribute that the source leaves open.
    fn open(&mut self, kind: OpKind, name: &str, types: &[TensorType]) -> Result<Val, String> {
        let qualified = format!("{}.{name}", kind.name().to_lowercase());
        let listed = self.rule.instance.attrs.iter().find(|(n, _)| *n == qualified || *n == name).map(|(_, c)| c.clone());
        if let Some(choices) = listed {
            return self.pick(&choices);
        }
        let rank = types.first().map_or(0, TensorType::rank);
        let spatial = rank.saturating_sub(2);
        let known = |t: usize, axis: usize| types.get(t).and_then(|t| t.shape.get(axis)).and_then(Dim::known);
        let mut ints = |n: usize, low: u64, high: u64| {
            Val::List((0..n).map(|_| Val::int((low + self.choices.below(high - low + 1)) as i64)).collect())
        };
        Ok(match name {
            "strides" | "dilations" => match ints(1, 0, 2).as_list().and_then(|l| l[0].as_int()) {
                Some(0) => ints(spatial, 1, 2),
                Some(1) => ints(spatial, 2, 2),
                _ => ints(spatial, 1, 1),
            },
            "kernel" => ints(spatial, 1, 3),
            "pads" if kind == OpKind::Pad => ints(2 * rank, 0, 2),
            "pads" => match ints(1, 0, 1).as_list().and_then(|l| l[0].as_int()) {
                Some(0) => ints(2 * spatial, 0, 0),
                _ => ints(2 * spatial, 0, 1),
            },
            "group" => {
                let (channels, per_group) = (known(0, 1).unwrap_or(1), known(1, 1).unwrap_or(1).max(1));
                Val::int((channels / per_group).max(1))
            }
            "axis" => Val::int(self.choices.below(rank.max(1) as u64) as i64),
            "axes" => Val::List(vec![Val::int(self.choices.below(rank.max(1) as u64) as i64)]),
            "perm" => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                for i in (1..perm.len()).rev() {
                    perm.swap(i, self.choices.below(i as u64 + 1) as usize);
                }
                Val::List(perm.into_iter().map(Val::int).collect())
            }
            "epsilon" => Val::Float(1e-3),
            "ceil_mode" | "count_include_pad" | "keepdims" | "trans_a" | "trans_b" => Val::Bool(self.choices.below(2) == 0),
            "alpha" | "beta" | "gamma" | "bias" | "value" => Val::Float(0.25 + self.choices.unit()),
            "min" => Val::Float(-self.choices.unit()),
            "max" => Val::Float(0.5 + self.choices.unit()),
            "mode" => Val::Str(if kind == OpKind::Pad { "constant" } else { "DCR" }.into()),
            "approximate" => Val::Str("none".into()),
            "repeats" => ints(rank, 1, 2),
            "scales" => Val::List((0..rank).map(|axis| Val::int(if axis < 2 { 1 } else { 1 + (axis as i64 + 1) % 3 })).collect()),
            _ => return Err(format!("the instance clause must give choices for `:{qualified}`")),
        })
    }

    /// A shape attribute gets symbols for the same numbers.
    fn sizes(&self, kind: OpKind, name: &str, value: Val) -> Val {
        match value {
            Val::List(items) if name == "shape" && matches!(kind, OpKind::Reshape | OpKind::Expand) => {
                let size = |item: &Val| match item {
                    Val::Dim(dim) => Val::Dim(dim.known().map_or_else(|| dim.clone(), |number| self.spelling.size(number))),
                    other => other.clone(),
                };
                Val::List(items.iter().map(size).collect())
            }
            other => other,
        }
    }
}
