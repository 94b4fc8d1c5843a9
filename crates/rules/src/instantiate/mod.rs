//! From a match to a patch: new operators with inferred types, checked against what they replace.

use std::cmp::Reverse;
use std::sync::Arc;

use regraft_ir::{Ancestors, Attr, Const, DType, Dim, Graph, NewNode, NodeId, Op, OpKind, Patch, PatchValue, TensorType, ValueId, View};
use smallvec::SmallVec;

use crate::expr::{Expr, Scope, Val};
use crate::matcher::{Found, is_read, mentions_let};
use crate::operator::operator;
use crate::rule::{Rule, Target, Var};

mod combine;
mod elementwise;
mod sizes;

/// Why a matched source cannot be rewritten here. Reported in the "not done, because" list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A guard over the target does not hold: not worth a report.
    #[error("a guard does not hold")]
    Guard,
    /// The target equals the source.
    #[error("nothing would change")]
    Nothing,
    /// An expression has no value, or a type cannot be inferred.
    #[error("{0}")]
    Type(String),
    /// A replacement and the value it replaces differ in type.
    #[error("the result would be {new} instead of {old}")]
    OtherType {
        /// Type before.
        old: String,
        /// Type after.
        new: String,
    },
    /// The new node cannot be written to the model (because the operator is newer than the model's
    /// opset, say).
    #[error("{0}")]
    Unwritable(String),
    /// One root depends on the result of another: merging them would make a cycle.
    #[error("one of the merged operators depends on another")]
    Cycle,
}

/// Whether a new operator can be written to the model at hand.
pub trait Writable: Sync {
    /// The reason if not, for people.
    fn check(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), String>;
}

/// Everything can be written.
pub struct Anything;

impl Writable for Anything {
    fn check(&self, _: &Op, _: &[TensorType], _: &[TensorType]) -> Result<(), String> {
        Ok(())
    }
}

/// Everything that can be written at an opset version of the standard domain.
pub struct AtOpset(pub i64);

impl Writable for AtOpset {
    fn check(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), String> {
        if matches!(op.kind(), OpKind::Constant) {
            return Ok(());
        }
        op.spell(inputs, outputs, self.0).map(|_| ()).map_err(|e| e.to_string())
    }
}

/// The patch that applies `rule` to a match.
pub fn instantiate(graph: &Graph, rule: &Rule, found: &Found, writable: &dyn Writable) -> Result<Patch, Refusal> {
    let Edit { patch, reads_below, .. } = edit(graph, rule, found, writable)?;
    if reads_below && closes_cycle(graph, &patch) {
        return Err(Refusal::Cycle);
    }
    Ok(patch)
}

/// A patch that may close a cycle.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The edit.
    pub patch: Patch,
    /// The target may read what lies below its root: another root, or a reused operator that reads
    /// the root. Whether that closes a cycle is for [`closes_cycle`] to tell.
    pub reads_below: bool,
    /// Operators of the graph that stand for operators of the target.
    pub reused: SmallVec<[NodeId; 4]>,
}

/// The patch that applies `rule` to a match, whether it closes a cycle or not.
///
/// # Errors
///
/// All but [`Refusal::Cycle`].
pub fn edit(graph: &dyn View, rule: &Rule, found: &Found, writable: &dyn Writable) -> Result<Edit, Refusal> {
    let mut builder = Builder { graph, env: found.env.clone(), create: Vec::new(), writable, reads_opaque: false, reused: SmallVec::new() };
    for (var, body) in &rule.lets {
        let value = builder.single(body)?;
        builder.env[*var] = Some(Val::Value(value));
    }
    for guard in rule.guards.iter().chain(&rule.profitable).filter(|g| mentions_let(rule, g)) {
        if !guard.holds(&builder.env, &builder).unwrap_or(false) {
            return Err(Refusal::Guard);
        }
    }
    let mut replace = SmallVec::new();
    for (target, root) in rule.target.iter().zip(&found.roots) {
        replace.extend(builder.replacement(*root, target)?);
    }
    if let Some(port) = rule.any_result() {
        let root = found.roots[0];
        let others = (0..graph.types(root.node).len() as u32).map(|port| root.node.port(port));
        for other in others.filter(|v| *v != root && is_read(graph, *v)) {
            builder.env[port] = Some(Val::int(i64::from(other.port)));
            replace.extend(builder.replacement(other, &rule.target[0])?);
        }
    }
    if replace.is_empty() {
        return Err(Refusal::Nothing);
    }
    let reads_below = found.is_merge() || builder.reads_opaque || !builder.reused.is_empty();
    let patch = prune(Patch { cause: Arc::clone(&rule.name), create: builder.create, replace });
    Ok(Edit { patch, reads_below, reused: builder.reused })
}

struct Builder<'a> {
    graph: &'a dyn View,
    env: Vec<Option<Val>>,
    create: Vec<NewNode>,
    writable: &'a dyn Writable,
    /// Whether an opaque operator is read, which may lie below what is replaced.
    reads_opaque: bool,
    /// See [`Edit::reused`].
    reused: SmallVec<[NodeId; 4]>,
}

impl Scope for Builder<'_> {
    fn ty(&self, value: PatchValue) -> Option<&TensorType> {
        match value {
            PatchValue::Old(v) => self.graph.ty(v),
            PatchValue::New { index, port } => self.create.get(index as usize)?.types.get(port as usize)?.as_ref(),
        }
    }
    fn op(&self, value: PatchValue) -> Option<&Op> {
        match value {
            PatchValue::Old(v) => Some(self.graph.op(v.node)),
            PatchValue::New { index, .. } => self.create.get(index as usize).map(|n| &n.op),
        }
    }
    fn graph(&self) -> &dyn View {
        self.graph
    }
    fn constant(&self, value: PatchValue) -> bool {
        match value {
            PatchValue::Old(v) => self.graph.is_constant(v),
            PatchValue::New { index, .. } => self.create.get(index as usize).is_some_and(|n| match n.op.kind() {
                OpKind::Constant => true,
                OpKind::Input | OpKind::Opaque => false,
                _ => n.inputs.iter().all(|v| self.constant(*v)),
            }),
        }
    }
}

impl Builder<'_> {
    fn eval(&self, expr: &Expr) -> Result<Val, Refusal> {
        expr.eval(&self.env, self).map_err(Refusal::Type)
    }

    /// A value and what takes its place, unless that is the value itself.
    fn replacement(&mut self, old: ValueId, target: &Target) -> Result<Option<(ValueId, PatchValue)>, Refusal> {
        let new = self.single(target)?;
        if new == PatchValue::Old(old) {
            return Ok(None);
        }
        let (old_type, new_type) = (self.graph.ty(old), self.ty(new));
        if old_type.is_none() || old_type != new_type {
            let show = |t: Option<&TensorType>| t.map_or("unknown".to_string(), ToString::to_string);
            return Err(Refusal::OtherType { old: show(old_type), new: show(new_type) });
        }
        Ok(Some((old, new)))
    }

    /// Exactly one value.
    fn single(&mut self, target: &Target) -> Result<PatchValue, Refusal> {
        match self.build(target)?.as_slice() {
            [one] => Ok(*one),
            values => Err(Refusal::Type(format!("a target gives {} values where one is needed", values.len()))),
        }
    }

    fn build(&mut self, target: &Target) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        match target {
            Target::Use(var) => match &self.env[*var] {
                Some(Val::Value(v)) => Ok(SmallVec::from_iter([*v])),
                Some(Val::Absent) => Ok(SmallVec::new()),
                Some(Val::List(items)) => items
                    .iter()
                    .map(|i| {
                        if let Val::Value(v) = i {
                            Ok(*v)
                        } else {
                            Err(Refusal::Type("a list holds something that is not a tensor".into()))
                        }
                    })
                    .collect(),
                other => Err(Refusal::Type(format!("{other:?} is not a tensor"))),
            },
            Target::Each(vars, body) => self.each(vars, body),
            Target::Repeat(var, list, body) => {
                let Val::List(items) = self.eval(list)? else { return Err(Refusal::Type("`repeat` needs a list".into())) };
                let mut results = SmallVec::new();
                for item in items {
                    self.env[*var] = Some(item);
                    results.extend(self.build(body)?);
                }
                Ok(results)
            }
            Target::With(var, value, body) => {
                let values = self.build(value)?;
                self.env[*var] = Some(match values.as_slice() {
                    [value] => Val::Value(*value),
                    values => Val::List(values.iter().copied().map(Val::Value).collect()),
                });
                self.build(body)
            }
            Target::Out(port, inner) => {
                let port = self
                    .eval(port)?
                    .as_int()
                    .and_then(|p| u32::try_from(p).ok())
                    .ok_or_else(|| Refusal::Type("a result index is a small integer".into()))?;
                let base = self.single(inner)?;
                Ok(SmallVec::from_iter([match base {
                    PatchValue::Old(v) => PatchValue::Old(v.node.port(port)),
                    PatchValue::New { index, .. } => PatchValue::New { index, port },
                }]))
            }
            Target::Apply(function, inner, part) | Target::Unshifted(function, inner, part) => {
                let operand = self.single(inner)?;
                let (part, shifted) = (self.part(part)?, matches!(target, Target::Unshifted(..)));
                Ok(SmallVec::from_iter([self.apply(*function, operand, &part, shifted)?]))
            }
            Target::Shift(function, part) => {
                let part = self.part(part)?;
                Ok(SmallVec::from_iter([self.shift(*function, &part)?]))
            }
            Target::Combine(rows, operands) => {
                let Val::List(rows) = self.eval(rows)? else { return Err(Refusal::Type("`combine` needs rows".into())) };
                let row = |row: &Val| row.as_list().and_then(|row| row.iter().map(Val::as_int).collect::<Option<Vec<i64>>>());
                let rows: Option<Vec<Vec<i64>>> = rows.iter().map(row).collect();
                let rows = rows.ok_or_else(|| Refusal::Type("coefficients are integers".into()))?;
                let mut values = SmallVec::new();
                for operand in operands {
                    values.extend(self.build(operand)?);
                }
                self.combine(&rows, values)
            }
            Target::If(condition, yes, no) => {
                let holds = condition.holds(&self.env, self).map_err(Refusal::Type)?;
                match (holds, no) {
                    (true, _) => self.build(yes),
                    (false, Some(no)) => self.build(no),
                    (false, None) => Ok(SmallVec::new()),
                }
            }
            Target::Scalar(value, like) => {
                let value = self.eval(value)?.as_f64().ok_or_else(|| Refusal::Type("a scalar needs a known number".into()))?;
                let dtype = self.dtype(*like)?;
                self.constant_node(Const::scalar(dtype, value))
            }
            Target::Tensor(shape, data, like) => {
                let shape = self.ints(shape)?;
                let data = self.eval(data)?;
                let data: Option<Vec<f64>> = data.as_list().and_then(|d| d.iter().map(Val::as_f64).collect());
                let dtype = self.dtype(*like)?;
                self.constant_node(data.and_then(|d| Const::from_f64(dtype, &shape, &d)))
            }
            Target::Vector(size, inner) => self.vector(size, inner),
            Target::Item(at, var) => {
                let at = self.eval(at)?.as_int().ok_or_else(|| Refusal::Type("an index is a known integer".into()))?;
                let Some(Val::List(items)) = &self.env[*var] else {
                    return Err(Refusal::Type("`item` of something that is not a list".into()));
                };
                let from_front = if at < 0 { at + items.len() as i64 } else { at };
                match usize::try_from(from_front).ok().and_then(|i| items.get(i)) {
                    Some(Val::Value(v)) => Ok(SmallVec::from_iter([*v])),
                    _ => Err(Refusal::Type(format!("no tensor {at} in a list of {}", items.len()))),
                }
            }
            Target::Ints(values) => {
                let values = self.dims(values)?;
                Ok(SmallVec::from_iter([self.integers(&values)?]))
            }
            Target::Counted(length) => {
                let Val::Dim(length) = self.eval(length)? else { return Err(Refusal::Type("`counted` needs a size".into())) };
                Ok(SmallVec::from_iter([self.counted(&length)?]))
            }
            Target::Fill(shape, value, like) => {
                let dims = self.dims(shape)?;
                let value = self.eval(value)?.as_f64().ok_or_else(|| Refusal::Type("a fill needs a known number".into()))?;
                let dtype = self.dtype(*like)?;
                let value = Const::from_f64(dtype, &[1], &[value]).ok_or_else(|| Refusal::Type("a fill of an exotic type".into()))?;
                self.node(Op::ConstantOfShape(regraft_ir::ops::constant_of_shape::ConstantOfShape { shape: dims, value }), SmallVec::new())
            }
            Target::Node { kind, like, attrs, operands } => {
                let mut inputs = SmallVec::new();
                for operand in operands {
                    inputs.extend(self.build(operand)?);
                }
                let op = self.operator(*kind, *like, attrs)?;
                if *kind == OpKind::Concat && inputs.len() == 1 {
                    return Ok(SmallVec::from_slice(&inputs));
                }
                self.node(op, inputs)
            }
        }
    }

    /// Two indices between which something lies.
    fn part(&self, part: &[Expr; 2]) -> Result<[Dim; 2], Refusal> {
        match (self.eval(&part[0])?, self.eval(&part[1])?) {
            (Val::Dim(from), Val::Dim(to)) => Ok([from, to]),
            _ => Err(Refusal::Type("a part lies between two sizes".into())),
        }
    }

    /// A value of `size` elements, or of one, as a vector of `size` elements.
    fn vector(&mut self, size: &Expr, inner: &Target) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        let Val::Dim(size) = self.eval(size)? else { return Err(Refusal::Type("`vector` needs a size".into())) };
        let value = self.single(inner)?;
        let Some(ty) = self.ty(value).cloned() else { return Err(Refusal::Type("a vector of something of unknown type".into())) };
        let (elements, goal) = (ty.elements(), vec![size.clone()]);
        if ty.shape.as_slice() == goal.as_slice() {
            return Ok(SmallVec::from_iter([value]));
        }
        if elements != size && !elements.is(1) {
            return Err(Refusal::Type(format!("{ty} is no vector of {size} elements")));
        }
        let mut value = value;
        if ty.rank() != 1 {
            let flat = Op::Reshape(regraft_ir::ops::reshape::Reshape { shape: vec![elements.clone()] });
            value = self.node(flat, SmallVec::from_iter([value]))?[0];
        }
        if elements == size {
            return Ok(SmallVec::from_iter([value]));
        }
        self.node(Op::Expand(regraft_ir::ops::expand::Expand { shape: goal }), SmallVec::from_iter([value]))
    }

    fn each(&mut self, vars: &[Var], body: &Target) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        let saved: Vec<Option<Val>> = vars.iter().map(|v| self.env[*v].clone()).collect();
        let lists: Option<Vec<Vec<Val>>> = saved.iter().map(|v| v.as_ref().and_then(Val::as_list).map(<[Val]>::to_vec)).collect();
        let lists = lists.ok_or_else(|| Refusal::Type("`each` needs lists".into()))?;
        let count = lists.first().map_or(0, Vec::len);
        if lists.iter().any(|l| l.len() != count) {
            return Err(Refusal::Type("`each` needs lists of one length".into()));
        }
        let mut results = SmallVec::new();
        for at in 0..count {
            for (var, list) in vars.iter().zip(&lists) {
                self.env[*var] = Some(list[at].clone());
            }
            results.extend(self.build(body)?);
        }
        for (var, value) in vars.iter().zip(saved) {
            self.env[*var] = value;
        }
        Ok(results)
    }

    fn operator(&self, kind: OpKind, like: Option<Var>, attrs: &[(String, Expr)]) -> Result<Op, Refusal> {
        let mut all: Vec<(String, Attr)> = Vec::new();
        if let Some(var) = like {
            let Some(Some(Val::Value(value))) = self.env.get(var) else {
                return Err(Refusal::Type("`:like` of something that is not an operator".into()));
            };
            let op = self.op(*value).ok_or_else(|| Refusal::Type("`:like` of an unknown operator".into()))?;
            all.extend(op.attrs().into_iter().map(|(n, a)| (n.to_string(), a)));
        }
        for (name, expr) in attrs {
            let value = self.eval(expr)?;
            let attr = value.to_attr().ok_or_else(|| Refusal::Type(format!("`{name}` of `{}` cannot be {value:?}", kind.name())))?;
            all.retain(|(n, _)| n != name);
            all.push((name.clone(), attr));
        }
        operator(kind, all).map_err(|e| Refusal::Type(e.to_string()))
    }

    fn dtype(&self, var: Var) -> Result<DType, Refusal> {
        match &self.env[var] {
            Some(Val::Value(v)) => self.ty(*v).map(|t| t.dtype).ok_or_else(|| Refusal::Type("the element type is not known".into())),
            Some(Val::List(items)) => match items.first() {
                Some(Val::Value(v)) => self.ty(*v).map(|t| t.dtype).ok_or_else(|| Refusal::Type("the element type is not known".into())),
                _ => Err(Refusal::Type("an element type of an empty list".into())),
            },
            _ => Err(Refusal::Type("an element type of something that is not a tensor".into())),
        }
    }

    fn dims(&self, expr: &Expr) -> Result<Vec<Dim>, Refusal> {
        let Val::List(items) = self.eval(expr)? else { return Err(Refusal::Type("a shape is a list".into())) };
        items.into_iter().map(|v| if let Val::Dim(d) = v { Ok(d) } else { Err(Refusal::Type("a shape holds sizes".into())) }).collect()
    }

    fn ints(&self, expr: &Expr) -> Result<Vec<i64>, Refusal> {
        self.dims(expr)?
            .iter()
            .map(|d| d.known().ok_or_else(|| Refusal::Type("cannot be shown for symbolic sizes: a constant needs known sizes".into())))
            .collect()
    }

    fn constant_node(&mut self, value: Option<Const>) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        let value = value.ok_or_else(|| Refusal::Type("constant data does not fit its shape".into()))?;
        self.node(Op::Constant(regraft_ir::ops::Constant { value }), SmallVec::new())
    }

    /// A new node, or the one that already computes the same.
    fn node(&mut self, op: Op, inputs: SmallVec<[PatchValue; 3]>) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        if let Some(at) = self.create.iter().position(|n| n.op == op && n.inputs == inputs) {
            return Ok(SmallVec::from_iter([PatchValue::New { index: at as u32, port: 0 }]));
        }
        if let Some(twin) = twin(self.graph, &op, &inputs) {
            self.reused.push(twin);
            return Ok(SmallVec::from_iter([PatchValue::Old(twin.out())]));
        }
        let types: Option<Vec<TensorType>> = inputs.iter().map(|v| self.ty(*v).cloned()).collect();
        let types = types.ok_or_else(|| Refusal::Type("an operand has no known type".into()))?;
        let results = op.infer(&types).map_err(|e| Refusal::Type(e.to_string()))?;
        self.writable.check(&op, &types, &results).map_err(Refusal::Unwritable)?;
        self.create.push(NewNode::new(op, inputs, results.into_iter().map(Some).collect()));
        Ok(SmallVec::from_iter([PatchValue::New { index: self.create.len() as u32 - 1, port: 0 }]))
    }
}

/// The node of the graph with this operator and these operands, the oldest if there are several; a
/// target reuses it.
pub fn twin(graph: &dyn View, op: &Op, inputs: &[PatchValue]) -> Option<NodeId> {
    let old = |value: &PatchValue| if let PatchValue::Old(v) = value { Some(*v) } else { None };
    // A node of the graph reads nothing new: there is no need to ask for readers.
    let inputs = inputs.iter().map(old).collect::<Option<SmallVec<[ValueId; 4]>>>()?;
    let types: SmallVec<[Option<&TensorType>; 4]> = inputs.iter().map(|value| graph.ty(*value)).collect();
    // It reads all of them. Constants are shared, and small ones most of all.
    let shared = |value: &&ValueId| (graph.is_constant(**value), Reverse(graph.ty(**value).map(TensorType::rank)));
    let rarest = inputs.iter().min_by_key(shared)?;
    let twins = graph.readers_alike(rarest.node, op, &types).into_iter().filter(|id| *graph.inputs(*id) == *inputs);
    twins.reduce(|a, b| if graph.is_before(b, a) { b } else { a })
}

/// Drops new nodes without readers (a `let` that only one branch of an `if` needed).
fn prune(mut patch: Patch) -> Patch {
    let mut used = vec![false; patch.create.len()];
    for (_, new) in &patch.replace {
        if let PatchValue::New { index, .. } = new {
            used[*index as usize] = true;
        }
    }
    for at in (0..patch.create.len()).rev() {
        if used[at] {
            for input in &patch.create[at].inputs {
                if let PatchValue::New { index, .. } = input {
                    used[*index as usize] = true;
                }
            }
        }
    }
    if used.iter().all(|u| *u) {
        return patch;
    }
    let mut places = Vec::with_capacity(used.len());
    let mut next = 0;
    for u in &used {
        places.push(next);
        next += u32::from(*u);
    }
    let mut at = 0;
    patch.create.retain(|_| {
        at += 1;
        used[at - 1]
    });
    let renumber = |v: &mut PatchValue| {
        if let PatchValue::New { index, .. } = v {
            *index = places[*index as usize];
        }
    };
    patch.create.iter_mut().flat_map(|n| n.inputs.iter_mut()).for_each(renumber);
    patch.replace.iter_mut().for_each(|(_, v)| renumber(v));
    patch
}

/// True if an old value that the patch reads depends on a value that the patch replaces.
pub fn closes_cycle(graph: &Graph, patch: &Patch) -> bool {
    let replaced: SmallVec<[NodeId; 2]> = patch.replace.iter().map(|(value, _)| value.node).collect();
    depends(&mut Ancestors::of(graph), patch.reads().map(|value| value.node), &replaced)
}

/// True if one of the nodes that a patch reads depends on one that it replaces.
///
/// A single root without a cycle cannot get one later: everything it reads stays above it.
pub fn depends(ancestors: &mut Ancestors<'_>, read: impl IntoIterator<Item = NodeId>, replaced: &[NodeId]) -> bool {
    // A new node may read the only root itself: it keeps reading what stood there.
    let only = if let [root] = *replaced { Some(root) } else { None };
    ancestors.depends(read.into_iter().filter(|id| Some(*id) != only), replaced)
}
