//! `Sampler`: builds the source of a rule as a graph, choice by choice.

use regraft_ir::{Const, DType, Dim, Graph, NodeId, OpKind, PatchValue, TensorType, ValueId};

use super::draw::Sizes;
use crate::expr::{Expr, GraphScope, Val};
use crate::operator::operator;
use crate::path::Choices;
use crate::rule::{NodePattern, Operand, Pattern, Rule, Var};
use crate::spelling::Spelling;

/// Why choices yield no instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Other choices yield the same instance, or sizes exceed the bound.
    Repeated,
    /// Swapping two axes that the rule treats alike gives an instance that other choices yield.
    Mirrored,
    /// The source is not well typed: why.
    Untyped(String),
    /// The guards do not hold.
    Guarded,
    /// The target cannot be built, though the guards hold: why.
    Wrong(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Untyped(why)
    }
}

impl From<&str> for Stop {
    fn from(why: &str) -> Stop {
        Stop::Untyped(why.into())
    }
}

/// The source as a graph with its roots as outputs, and the remaining choices.
pub(super) type Sampled = (Result<(Graph, Vec<ValueId>), Stop>, Choices);

/// Values of the first parameters on the previous path, each with the forks passed up to it.
pub(crate) type Known = Vec<(usize, Val)>;

/// Builds the source of `rule` from these choices.
pub(super) fn source(rule: &Rule, choices: Choices, open: Sizes, spelling: Spelling, bound: Option<i64>, known: &mut Known) -> Sampled {
    let mut sampler = Sampler { rule, choices, graph: Graph::new("instance"), env: rule.environment(), inputs: 0, open, spelling, bound };
    let roots = sampler.roots(known);
    (roots.map(|roots| (sampler.graph, roots)), sampler.choices)
}

/// The source of a rule, as far as it is built.
pub(super) struct Sampler<'a> {
    /// The rule whose source is built.
    pub(super) rule: &'a Rule,
    /// Where choices come from.
    pub(super) choices: Choices,
    /// What is built so far.
    pub(super) graph: Graph,
    /// Values of the rule's variables so far.
    pub(super) env: Vec<Option<Val>>,
    /// Number of inputs so far; used in their names.
    pub(super) inputs: usize,
    /// Which sizes become symbols.
    open: Sizes,
    /// What sizes written as numbers become.
    pub(super) spelling: Spelling,
    /// The largest size, when enumerating all choices.
    pub(super) bound: Option<i64>,
}

impl Sampler<'_> {
    /// The source's roots, built.
    fn roots(&mut self, known: &mut Known) -> Result<Vec<ValueId>, Stop> {
        let rule = self.rule;
        for (at, (var, choices)) in rule.instance.parameters.iter().enumerate() {
            if let (Some(path), Some((forks, value))) = (self.choices.path(), known.get(at))
                && path.pass(*forks)
            {
                self.env[*var] = Some(value.clone());
                continue;
            }
            known.truncate(at);
            let value = match (self.symbol(*var, choices), self.bound) {
                (Some(symbol), _) => symbol,
                (None, Some(bound)) if rule.instance.sizes.contains(var) => Val::int(1 + self.choices.below(bound.max(1) as u64) as i64),
                (None, Some(_)) => self.unrepeated(choices)?,
                (None, None) => self.pick(choices)?,
            };
            self.env[*var] = Some(value);
            if let Some(bound) = self.bound {
                self.inside(bound)?;
            }
            if let (Some(path), Some(value)) = (self.choices.path(), &self.env[*var]) {
                known.push((path.passed(), value.clone()));
            }
        }
        let mut roots = Vec::new();
        for pattern in &rule.source {
            roots.push(self.build(pattern)?);
        }
        for (at, root) in roots.iter().enumerate() {
            self.graph.add_output(&format!("y{at}"), *root);
        }
        Ok(roots)
    }

    /// A symbol for a parameter whose choices are all plain numbers.
    fn symbol(&mut self, var: Var, choices: &[Expr]) -> Option<Val> {
        let plain =
            !self.rule.instance.fixed.contains(&var) && choices.iter().all(|c| matches!(c, Expr::Literal(v) if v.as_int().is_some()));
        let symbolic = match self.open {
            Sizes::Known => false,
            Sizes::Some => self.choices.below(2) == 0,
            Sizes::Open => true,
        };
        (plain && symbolic).then(|| Val::Dim(Dim::symbol(&self.rule.variables[var])))
    }

    /// The value of an expression over the choices so far.
    pub(super) fn eval(&self, e: &Expr) -> Result<Val, String> {
        e.eval(&self.env, &GraphScope(&self.graph))
    }

    /// The value of one of these expressions.
    pub(super) fn pick(&mut self, choices: &[Expr]) -> Result<Val, String> {
        let at = self.choices.below(choices.len() as u64) as usize;
        self.eval(choices.get(at).ok_or("no choices")?)
    }

    pub(super) fn build(&mut self, pattern: &Pattern) -> Result<ValueId, String> {
        match pattern {
            Pattern::Any(var) | Pattern::Constant(var) => {
                if let Some(Val::Value(PatchValue::Old(v))) = self.env[*var] {
                    return Ok(v);
                }
                let value = self.leaf(*var)?;
                let Val::Value(PatchValue::Old(v)) = value else { return Err(format!("?{} is not one tensor", self.rule.variables[*var])) };
                self.env[*var] = Some(value);
                Ok(v)
            }
            Pattern::Number(value) => {
                let shape = [&[][..], &[1], &[1, 1]][self.choices.below(3) as usize];
                let constant = Const::from_f64(DType::F64, shape, &[*value]).ok_or("a number")?;
                Ok(self.graph.add_const(constant))
            }
            Pattern::Node(node) => self.node(node),
            Pattern::Elementwise(function, axis, inner) => self.elementwise(*function, axis, inner),
            Pattern::Optional(_) | Pattern::Rest(_) | Pattern::Each(..) => Err("a list pattern outside of operands".into()),
        }
    }

    fn node(&mut self, pattern: &NodePattern) -> Result<ValueId, String> {
        let mut operands = Vec::new();
        for p in &pattern.operands {
            match p {
                Pattern::Rest(var) | Pattern::Optional(var) => {
                    if self.env[*var].is_none() {
                        self.env[*var] = Some(self.leaf(*var)?);
                    }
                    match self.env[*var].clone() {
                        Some(Val::List(items)) => operands
                            .extend(items.iter().filter_map(|v| if let Val::Value(PatchValue::Old(v)) = v { Some(*v) } else { None })),
                        Some(Val::Value(PatchValue::Old(v))) => operands.push(v),
                        _ => {}
                    }
                }
                Pattern::Each(inner, vars) => {
                    let rule = self.rule;
                    let same = |var: &Var| rule.instance.operands.iter().any(|(v, o)| v == var && matches!(o, Operand::Same(_)));
                    for item in 0..1 + self.choices.below(3) {
                        for var in vars.iter().filter(|v| item == 0 || !same(v)) {
                            self.env[*var] = None;
                        }
                        for (var, choices) in rule.instance.parameters.iter().filter(|(v, _)| rule.instance.varying.contains(v)) {
                            let value = self.pick(choices)?;
                            self.env[*var] = Some(value);
                        }
                        operands.push(self.build(inner)?);
                    }
                }
                other => operands.push(self.build(other)?),
            }
        }
        // A commutative source must match in either order.
        if self.bound.is_none() && pattern.kind.commutative() && operands.len() == 2 && self.choices.below(2) == 0 {
            operands.swap(0, 1);
        }
        let types: Vec<TensorType> = operands.iter().map(|v| self.graph.ty(*v).cloned().ok_or("unknown type")).collect::<Result<_, _>>()?;
        let attrs = self.attributes(pattern, &types)?;
        let op = if pattern.kind == OpKind::Constant {
            return Err("constants are matched by `?x` and `(const ?x)`".into());
        } else {
            operator(pattern.kind, attrs).map_err(|e| e.to_string())?
        };
        let id: NodeId = self.graph.add(op, &operands).map_err(|e| e.to_string())?;
        let port = self.eval(&pattern.port).ok().and_then(|v| v.as_int()).unwrap_or_else(|| {
            let ports = self.graph.node(id).types.len() as u64;
            self.choices.below(ports) as i64
        });
        if let Expr::Var(var) = &pattern.port {
            self.env[*var] = Some(Val::int(port));
        }
        let value = id.port(port as u32);
        if let Some(var) = pattern.bind {
            self.env[var] = Some(Val::Value(PatchValue::Old(value)));
        }
        Ok(value)
    }
}
