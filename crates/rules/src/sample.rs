//! Random instances of a rule, and its exercise on the reference executor.
//!
//! An instance is the source pattern built as a graph from the rule's `instance` clause, in `f64`, so that a true rule agrees to about
//! 1e-12 and a false one does not. Attributes that the source leaves open are drawn from adversarial defaults.

use std::collections::HashMap;
use std::fmt;

use regraft_ir::{Attr, Class, Const, DType, Dim, Graph, NodeId, Op, OpKind, Patch, PatchValue, TensorType, Value, ValueId, eval};

use crate::expr::{Expr, GraphScope, Val};
use crate::instantiate::{Anything, Refusal, instantiate};
use crate::matcher::matches_at;
use crate::operator::operator;
use crate::path::{Choices, Path, Rng};
use crate::rule::{NodePattern, Numeric, Operand, Pattern, Rule, Values, Var};
use crate::spelling::Spelling;

/// Relative difference, in double precision, above which the two sides of a rule disagree.
pub const TOLERANCE: f64 = 1e-8;

/// What exercising a rule showed.
#[derive(Clone, Debug, Default)]
pub struct Exercise {
    /// Instances on which both sides were computed and compared.
    pub instances: usize,
    /// Random draws, including those that did not satisfy the guards.
    pub draws: usize,
    /// Largest relative difference seen.
    pub worst: f64,
    /// The first counterexample.
    pub counterexample: Option<Counterexample>,
    /// The most recent reason why a draw gave no instance, for the rule's author.
    pub last_miss: String,
}

/// An instance whose sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The seed that reproduces it; see [`graph`].
    pub seed: u64,
    /// What differs, and where.
    pub why: String,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.why)
    }
}

/// Compares both sides of `rule` on `wanted` random instances, drawing at most `limit` times. Deterministic in `seed`.
pub fn exercise(rule: &Rule, wanted: usize, limit: usize, seed: u64) -> Exercise {
    let mut result = Exercise::default();
    while result.instances < wanted && result.draws < limit && result.counterexample.is_none() {
        let seed = seed.wrapping_add((result.draws as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let wrong = |why| Some(Counterexample { seed, why });
        result.draws += 1;
        match compared(rule, seed) {
            Ok(difference) if difference <= tolerance(rule) => {
                result.instances += 1;
                result.worst = result.worst.max(difference);
            }
            Ok(difference) => result.counterexample = wrong(format!("the sides differ by {difference:e} relative")),
            Err(Miss::Wrong(why)) => result.counterexample = wrong(why),
            Err(Miss::Draw(why)) => result.last_miss = why,
        }
    }
    result
}

/// Which sizes of an instance are symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sizes {
    /// None: all are numbers.
    Known,
    /// Those that parameters of the instance clause stand for, each with even odds.
    Some,
    /// All that parameters stand for, and all that are written as numbers above 1.
    Open,
}

/// The source of `rule` as a random graph, its roots being the outputs; the reason why this draw is no instance otherwise.
pub fn graph(rule: &Rule, seed: u64) -> Result<(Graph, Vec<ValueId>), String> {
    sized_graph(rule, seed, Sizes::Known)
}

fn sized_graph(rule: &Rule, seed: u64, open: Sizes) -> Result<(Graph, Vec<ValueId>), String> {
    let mut rng = Rng::new(seed | 1);
    let spelling = Spelling::draw(open, &mut |n| rng.below(n));
    let (sampled, _) = source(rule, Choices::Random(rng), open, spelling, None, &mut Known::default());
    sampled.map_err(|stop| match stop {
        Stop::Untyped(why) => why,
        _ => "out of the domain".to_string(),
    })
}

/// Why choices give no instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Other choices give the same, or sizes above the bound.
    Repeated,
    /// Exchanging two axes that the rule treats alike gives an instance that other choices give.
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

/// The source as a graph, its roots being the outputs, and what is left of the choices.
type Sampled = (Result<(Graph, Vec<ValueId>), Stop>, Choices);

/// Values of the first parameters on the way before, each with the forks passed up to it.
pub(crate) type Known = Vec<(usize, Val)>;

fn source(rule: &Rule, choices: Choices, open: Sizes, spelling: Spelling, bound: Option<i64>, known: &mut Known) -> Sampled {
    let mut sampler = Sampler { rule, choices, graph: Graph::new("instance"), env: rule.environment(), inputs: 0, open, spelling, bound };
    let roots = sampler.roots(known);
    (roots.map(|roots| (sampler.graph, roots)), sampler.choices)
}

/// The instance at the end of a path, with sizes up to `bound`; the path comes back with the forks that it passed.
pub(crate) fn instance_on(rule: &Rule, path: Path, bound: i64, known: &mut Known) -> (Result<Instance, Stop>, Path) {
    let (sampled, choices) = source(rule, Choices::Path(path), Sizes::Known, Spelling::Numbers, Some(bound), known);
    let instance = sampled.and_then(|(before, roots)| {
        let patch = patch(rule, &before, &roots).map_err(|miss| match miss {
            Miss::Draw(_) => Stop::Guarded,
            Miss::Wrong(why) => Stop::Wrong(why),
        })?;
        let mut after = before.clone();
        after.apply(&patch);
        if after.topological().len() != after.len() {
            return Err(Stop::Wrong("the target makes a cycle".into()));
        }
        Ok(Instance { before, after, feeds: HashMap::new() })
    });
    let path = match choices {
        Choices::Path(path) => path,
        Choices::Random(_) => Path::default(),
    };
    (instance, path)
}

/// Why a draw says nothing for the rule, or something against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The draw is no instance of the rule.
    Draw(String),
    /// It is one, and the rule misbehaves on it.
    Wrong(String),
}

/// A random instance of a rule.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The source as a graph, its roots being the outputs.
    pub before: Graph,
    /// The same graph, rewritten.
    pub after: Graph,
    /// Values of the inputs, by name.
    pub feeds: HashMap<String, Const>,
}

/// Draws an instance of `rule`. Deterministic in `seed`.
pub fn draw(rule: &Rule, seed: u64) -> Result<Instance, Miss> {
    draw_sized(rule, seed, Sizes::Known)
}

/// Draws an instance of `rule` some of whose sizes are symbols. Constants of such sizes are parameters of the graph, without elements. Whether it would
/// pay there is not asked: that depends on numbers.
pub fn draw_sized(rule: &Rule, seed: u64, sizes: Sizes) -> Result<Instance, Miss> {
    let anywhere;
    let rule = if sizes == Sizes::Known {
        rule
    } else {
        anywhere = rule.anywhere();
        &anywhere
    };
    let (before, roots) = sized_graph(rule, seed, sizes).map_err(Miss::Draw)?;
    let instance = rewritten(rule, before, &roots)?;
    let feeds = feeds(&instance.before, seed);
    Ok(Instance { feeds, ..instance })
}

/// The instance whose source is this graph, without values of its inputs.
pub(crate) fn rewritten(rule: &Rule, before: Graph, roots: &[ValueId]) -> Result<Instance, Miss> {
    let patch = patch(rule, &before, roots)?;
    let mut after = before.clone();
    after.apply(&patch);
    if after.topological().len() != after.len() {
        return Err(Miss::Wrong("the target makes a cycle".into()));
    }
    Ok(Instance { before, after, feeds: HashMap::new() })
}

/// The patch of the first match at these roots that changes something.
fn patch(rule: &Rule, before: &Graph, roots: &[ValueId]) -> Result<Patch, Miss> {
    let mut why = Miss::Draw("the guards do not hold".into());
    for found in matches_at(before, rule, 0, roots[0].node) {
        if !found.roots.iter().all(|r| roots.contains(r)) {
            continue;
        }
        match instantiate(before, rule, &found, &Anything) {
            Ok(patch) => return Ok(patch),
            // The other way round, operands of a commutative operator may be those of the target already.
            Err(Refusal::Nothing) => why = Miss::Draw("refused".into()),
            Err(Refusal::Guard | Refusal::Cycle) => return Err(Miss::Draw("refused".into())),
            // A target that fails on an accepted source is a defect of the rule: some guard is missing.
            Err(why) => return Err(Miss::Wrong(format!("the target cannot be built: {why}"))),
        }
    }
    Err(why)
}

/// How far both sides may differ: attributes are kept in single precision, and rules that round constants put constants of double precision there.
pub(crate) fn tolerance(rule: &Rule) -> f64 {
    if rule.numeric == Numeric::RoundsConstants { f64::from(f32::EPSILON) } else { TOLERANCE }
}

/// Draws an instance and gives the difference of its two sides.
fn compared(rule: &Rule, seed: u64) -> Result<f64, Miss> {
    let Instance { before, after, feeds } = draw(rule, seed)?;
    let feeds: HashMap<String, Value<f64>> =
        feeds.iter().filter_map(|(name, constant)| Some((name.clone(), Value::from_const(constant)?))).collect();
    let run = |g: &Graph| eval::run::<f64>(g, &feeds, &mut eval::NoOpaque);
    let before = run(&before).map_err(|e| Miss::Draw(format!("the source cannot be computed: {e}")))?;
    let after = run(&after).map_err(|e| Miss::Wrong(format!("the target cannot be computed: {e}")))?;
    Ok(before.iter().zip(&after).map(|(a, b)| difference(a, b)).fold(0.0, f64::max))
}

/// Largest difference relative to the largest magnitude (at least 1); infinite for other shapes, kinds, integers or booleans.
pub(crate) fn difference(a: &Value<f64>, b: &Value<f64>) -> f64 {
    match (a, b) {
        (Value::Real(x), Value::Real(y)) if x.shape == y.shape => {
            let scale = x.data.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
            x.data.iter().zip(&y.data).fold(0.0, |worst, (p, q)| {
                let same = p == q || (p.is_nan() && q.is_nan());
                worst.max(if same {
                    0.0
                } else if (p - q).is_finite() {
                    (p - q).abs() / scale
                } else {
                    f64::INFINITY
                })
            })
        }
        _ if a == b => 0.0,
        _ => f64::INFINITY,
    }
}

/// Random values for the inputs of an instance.
pub(crate) fn feeds(graph: &Graph, seed: u64) -> HashMap<String, Const> {
    let mut rng = Choices::Random(Rng::new(seed.rotate_left(17) | 1));
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape: Vec<i64> = input.ty.known_shape().unwrap_or_default();
        let values = match input.name.split('_').nth(1) {
            Some("positive") => Values::Positive,
            Some("index") => {
                Values::Index(Expr::Literal(Val::int(input.name.rsplit('_').next().and_then(|n| n.parse().ok()).unwrap_or(2))))
            }
            _ => Values::Normal,
        };
        if let Ok(constant) = data(&mut rng, input.ty.dtype, &shape, &values, &[], graph) {
            feeds.insert(input.name.to_string(), constant);
        }
    }
    feeds
}

fn data(rng: &mut Choices, dtype: DType, shape: &[i64], values: &Values, env: &[Option<Val>], graph: &Graph) -> Result<Const, String> {
    let n: i64 = shape.iter().product();
    let scope = GraphScope(graph);
    let elements: Vec<f64> = match values {
        Values::Splat(e) => vec![single(e.eval(env, &scope)?.as_f64().ok_or("a splat needs a number")?); n as usize],
        Values::Data(e) => {
            let list = e.eval(env, &scope)?;
            let items: Option<Vec<f64>> = list.as_list().and_then(|l| l.iter().map(Val::as_f64).collect());
            items.ok_or("data needs a list of numbers")?
        }
        // Numbers of single precision: attributes are of no other.
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

/// The number of single precision next to this one.
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

struct Sampler<'a> {
    rule: &'a Rule,
    choices: Choices,
    graph: Graph,
    env: Vec<Option<Val>>,
    inputs: usize,
    open: Sizes,
    spelling: Spelling,
    /// The largest size, where all choices are gone through.
    bound: Option<i64>,
}

/// Operands of integers and booleans with more elements take [`PATTERNS`] values rather than all.
const MOST_LISTED: usize = 4;
/// Patterns of values of larger operands.
const PATTERNS: u64 = 8;

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

    /// A choice whose value no earlier one has.
    fn unrepeated(&mut self, choices: &[Expr]) -> Result<Val, Stop> {
        let at = self.choices.below(choices.len() as u64) as usize;
        let value = self.eval(choices.get(at).ok_or("no choices")?)?;
        for earlier in &choices[..at] {
            if self.eval(earlier)? == value {
                return Err(Stop::Repeated);
            }
        }
        Ok(value)
    }

    /// Holds what is chosen so far against the bound and the mirrors.
    fn inside(&self, bound: i64) -> Result<(), Stop> {
        for size in &self.rule.instance.within {
            if self.eval(size).is_ok_and(|v| v.as_int().is_some_and(|n| n > bound)) {
                return Err(Stop::Repeated);
            }
        }
        for (one, other) in &self.rule.instance.mirrors {
            for (a, b) in one.iter().zip(other) {
                let number = |v: &Var| self.env[*v].as_ref().and_then(Val::as_int);
                let (Some(a), Some(b)) = (number(a), number(b)) else { break };
                if a > b {
                    return Err(Stop::Mirrored);
                }
                if a < b {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The elements of a constant of integers or booleans: all values, or a few patterns of them if there are many.
    fn listed(&mut self, dtype: DType, sizes: &[i64], values: &Values) -> Result<Const, String> {
        let count = sizes.iter().product::<i64>() as usize;
        let (low, ways) = match values {
            Values::Index(e) => (-1, self.eval(e)?.as_int().ok_or("an index needs a bound")? as u64 + 2),
            _ if dtype == DType::Bool => (0, 2),
            _ => (0, 3),
        };
        let elements: Vec<f64> = if count <= MOST_LISTED {
            (0..count).map(|_| (low + self.choices.below(ways) as i64) as f64).collect()
        } else {
            let mut pattern = Rng::new(self.choices.below(PATTERNS));
            (0..count).map(|_| (low + pattern.below(ways) as i64) as f64).collect()
        };
        Const::from_f64(dtype, sizes, &elements).ok_or_else(|| "data does not fit".into())
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

    /// A size as it is written, or symbols for it. What is computed from parameters follows from theirs.
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

    /// An attribute that is a shape has symbols for the same numbers.
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

    fn eval(&self, e: &Expr) -> Result<Val, String> {
        e.eval(&self.env, &GraphScope(&self.graph))
    }

    fn pick(&mut self, choices: &[Expr]) -> Result<Val, String> {
        let at = self.choices.below(choices.len() as u64) as usize;
        self.eval(choices.get(at).ok_or("no choices")?)
    }

    fn build(&mut self, pattern: &Pattern) -> Result<ValueId, String> {
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
        // A commutative source must be found either way round.
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

    /// The value of a variable that the source reads: an input, a constant, a list, or nothing.
    fn leaf(&mut self, var: Var) -> Result<Val, String> {
        let rule = self.rule;
        let spec = rule.instance.operands.iter().find(|(v, _)| *v == var).map(|(_, o)| o);
        let spec = spec.ok_or_else(|| format!("the instance clause does not say what ?{} is", rule.variables[var]))?;
        self.operand(spec)
    }

    fn operand(&mut self, spec: &Operand) -> Result<Val, String> {
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
                // Instances are exact: reals are doubles.
                let dtype = if dtype.is_float() { DType::F64 } else { *dtype };
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

    fn attributes(&mut self, pattern: &NodePattern, types: &[TensorType]) -> Result<Vec<(String, Attr)>, String> {
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
}
