//! Operands: inputs and constants as described by an instance clause, and their elements.

use regraft_ir::{Class, Const, DType, Dim, Graph, PatchValue, TensorType};

use super::sampler::Sampler;
use crate::expr::{Expr, GraphScope, Val};
use crate::path::Choices;
use crate::rule::{Operand, Values, Var};

impl Sampler<'_> {
    /// The value of a variable that the source reads: an input, a constant, a list, or nothing.
    pub(super) fn leaf(&mut self, var: Var) -> Result<Val, String> {
        let rule = self.rule;
        let spec = rule.instance.operands.iter().find(|(v, _)| *v == var).map(|(_, o)| o);
        let spec = spec.ok_or_else(|| format!("the instance clause does not say what ?{} is", rule.variables[var]))?;
        self.operand(spec)
    }

    /// Builds the operand that the instance clause describes for a variable.
    pub(super) fn operand(&mut self, spec: &Operand) -> Result<Val, String> {
        match spec {
            Operand::Choice(choices) => self.pick(choices),
            Operand::Optional(inner) => {
                if self.choices.below(2) == 0 {
                    Ok(Val::Absent)
                } else {
                    self.operand(inner)
                }
            }
            Operand::Same(inner) => self.operand(inner),
            Operand::List(count, inner) => {
                let n = self.eval(count)?.as_int().ok_or("a list needs a length")?;
                Ok(Val::List((0..n).map(|_| self.operand(inner)).collect::<Result<_, _>>()?))
            }
            Operand::Tensor { constant, shape, values, dtype } => {
                let mut dims = Vec::new();
                for e in shape {
                    match self.eval(e)? {
                        Val::List(items) => {
                            for item in &items {
                                dims.push(self.size(e, item)?);
                            }
                        }
                        other => dims.push(self.size(e, &other)?),
                    }
                }
                let known: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
                if let Some(sizes) = known.as_ref().filter(|sizes| sizes.iter().any(|s| *s < 1 || *s > 4096)) {
                    return Err(format!("shape {sizes:?} is out of range"));
                }
                // Instances are exact: reals are doubles, but where a rule is about halves.
                let dtype = if matches!(dtype, DType::F32) { DType::F64 } else { *dtype };
                let given = matches!(values, Values::Splat(_) | Values::Data(_));
                if let (Some(_), Some(sizes), false) = (self.bound, &known, given) {
                    if dtype.class() != Class::Real {
                        let value = self.listed(dtype, sizes, values)?;
                        return Ok(Val::Value(PatchValue::Old(self.graph.add_const(value))));
                    }
                } else if let (true, Some(sizes)) = (*constant, &known) {
                    let env = self.env.clone();
                    let value = data(&mut self.choices, dtype, sizes, values, &env, &self.graph)?;
                    return Ok(Val::Value(PatchValue::Old(self.graph.add_const(value))));
                }
                let tag = match values {
                    Values::Positive => "positive".to_string(),
                    Values::Index(e) => format!("index_{}", self.eval(e)?.as_int().ok_or("an index needs a bound")?),
                    Values::Splat(_) | Values::Data(_) => return Err("only constants can have given elements".into()),
                    Values::Normal => "normal".to_string(),
                };
                self.inputs += 1;
                let name = format!("x{}_{tag}", self.inputs);
                let ty = TensorType::new(dtype, dims);
                let value = if *constant { self.graph.add_parameter(&name, ty) } else { self.graph.add_input(&name, ty) };
                Ok(Val::Value(PatchValue::Old(value)))
            }
        }
    }

    /// A size as written, or symbols for it. Sizes computed from parameters follow the parameters'
    /// symbols.
    fn size(&self, expr: &Expr, value: &Val) -> Result<Dim, String> {
        let Val::Dim(dim) = value else { return Err("a size is not a number".into()) };
        let list = |var: &Var| {
            self.rule.instance.parameters.iter().any(|(p, choices)| p == var && !choices.iter().any(|c| matches!(c, Expr::Literal(_))))
        };
        let written = match expr {
            Expr::Literal(_) => true,
            Expr::Var(var) => list(var),
            _ => false,
        };
        Ok(dim.known().filter(|_| written).map_or_else(|| dim.clone(), |number| self.spelling.size(number)))
    }
}

/// Elements as described by the instance clause.
pub(super) fn data(
    rng: &mut Choices,
    dtype: DType,
    shape: &[i64],
    values: &Values,
    env: &[Option<Val>],
    graph: &Graph,
) -> Result<Const, String> {
    let n: i64 = shape.iter().product();
    let scope = GraphScope(graph);
    let elements: Vec<f64> = match values {
        Values::Splat(e) => vec![single(e.eval(env, &scope)?.as_f64().ok_or("a splat needs a number")?); n as usize],
        Values::Data(e) => {
            let list = e.eval(env, &scope)?;
            let items: Option<Vec<f64>> = list.as_list().and_then(|l| l.iter().map(Val::as_f64).collect());
            items.ok_or("data needs a list of numbers")?
        }
        // Single-precision numbers, as all attributes are.
        Values::Positive => (0..n).map(|_| single(0.5 + 1.5 * rng.unit())).collect(),
        Values::Index(e) => {
            let bound = e.eval(env, &scope)?.as_int().ok_or("an index needs a bound")?;
            (0..n).map(|_| (rng.below(bound as u64 + 2) as i64 - 1) as f64).collect()
        }
        Values::Normal if dtype.class() == Class::Real => {
            (0..n).map(|_| if rng.below(8) == 0 { 0.0 } else { single(4.0 * rng.unit() - 2.0) }).collect()
        }
        Values::Normal => (0..n).map(|_| rng.below(3) as f64).collect(),
    };
    Const::from_f64(dtype, shape, &elements).ok_or_else(|| "data does not fit".into())
}

/// The nearest single-precision number.
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}
