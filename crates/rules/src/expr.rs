//! Expressions over matched shapes and attributes: guards, target attributes, instance sizes.

use regraft_ir::{Attr, DType, Dim, Float, Op, OpKind, PatchValue, TensorType, ValueId, View};

use crate::builtins;
use crate::rule::Var;

/// The value of an expression, or of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// A size or an integer.
    Dim(Dim),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A word.
    Str(String),
    /// An element type.
    DType(DType),
    /// A list.
    List(Vec<Val>),
    /// A tensor of the graph or of the patch under construction.
    Value(PatchValue),
    /// An absent optional operand or attribute.
    Absent,
}

impl Val {
    /// An integer.
    pub fn int(value: i64) -> Val {
        Val::Dim(Dim::from(value))
    }
    /// The known integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Val::Dim(d) => d.known(),
            _ => None,
        }
    }
    /// The number as a double.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Val::Float(v) => Some(*v),
            Val::Dim(d) => d.known().map(|v| v as f64),
            _ => None,
        }
    }
    /// The list's items.
    pub fn as_list(&self) -> Option<&[Val]> {
        match self {
            Val::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value as an attribute.
    pub fn to_attr(&self) -> Option<Attr> {
        Some(match self {
            Val::Dim(d) => Attr::Int(d.known()?),
            Val::Float(v) => Attr::Float(Float(*v)),
            Val::Bool(v) => Attr::Bool(*v),
            Val::Str(v) => Attr::Str(v.clone()),
            Val::DType(v) => Attr::DType(*v),
            Val::Absent => Attr::Absent,
            Val::Value(_) => return None,
            Val::List(items) => {
                if let Some(ints) = items.iter().map(Val::as_int).collect::<Option<Vec<i64>>>() {
                    return Some(Attr::Ints(ints));
                }
                let word = |item: &Val| if let Val::Str(word) = item { Some(word.clone()) } else { None };
                if let Some(words) = items.iter().map(word).collect::<Option<Vec<String>>>() {
                    return Some(Attr::Strs(words));
                }
                if items.iter().all(|v| matches!(v, Val::Dim(_))) {
                    let dims = items.iter().filter_map(|v| if let Val::Dim(d) = v { Some(d.clone()) } else { None });
                    return Some(Attr::Dims(dims.collect()));
                }
                Attr::Floats(items.iter().map(|v| v.as_f64().map(Float)).collect::<Option<_>>()?)
            }
        })
    }

    /// The value of an attribute.
    pub fn from_attr(attr: &Attr) -> Val {
        match attr {
            Attr::Int(v) => Val::int(*v),
            Attr::Float(v) => Val::Float(v.0),
            Attr::Bool(v) => Val::Bool(*v),
            Attr::Str(v) => Val::Str(v.clone()),
            Attr::Ints(v) => Val::List(v.iter().map(|x| Val::int(*x)).collect()),
            Attr::Floats(v) => Val::List(v.iter().map(|x| Val::Float(x.0)).collect()),
            Attr::Strs(v) => Val::List(v.iter().cloned().map(Val::Str).collect()),
            Attr::Dims(v) => Val::List(v.iter().cloned().map(Val::Dim).collect()),
            Attr::DType(v) => Val::DType(*v),
            Attr::Tensor(_) | Attr::Absent => Val::Absent,
        }
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A literal.
    Literal(Val),
    /// A variable.
    Var(Var),
    /// `(attr ?n name)`: an attribute of the operator that computes `?n`.
    Attr(Var, String),
    /// `(if C A B)`.
    If(Box<[Expr; 3]>),
    /// `(and ..)`: false if any part is false, otherwise undecided if any part is.
    And(Vec<Expr>),
    /// `(or ..)`: true if any part is true, otherwise undecided if any part is.
    Or(Vec<Expr>),
    /// `(shown C)`: whether `C` is shown to hold; false where it is undecided.
    Shown(Box<Expr>),
    /// `(for ?i LIST E)`: `E` for every item.
    For(Var, Box<Expr>, Box<Expr>),
    /// A function from the table in `builtins`.
    Call(&'static builtins::Builtin, Vec<Expr>),
}

/// The context of evaluation: types and constness of values, and attributes of their operators.
pub trait Scope {
    /// The type of a value.
    fn ty(&self, value: PatchValue) -> Option<&TensorType>;
    /// The operator that computes a value.
    fn op(&self, value: PatchValue) -> Option<&Op>;
    /// The kind of the operator that computes a value.
    fn kind(&self, value: PatchValue) -> Option<OpKind> {
        match value {
            PatchValue::Old(v) => Some(self.graph().kind(v.node)),
            PatchValue::New { .. } => self.op(value).map(Op::kind),
        }
    }
    /// The graph.
    fn graph(&self) -> &dyn View;
    /// True if the value depends on constants only.
    fn constant(&self, value: PatchValue) -> bool;
    /// The value in the graph, if it is not new.
    fn old(&self, value: PatchValue) -> Option<ValueId> {
        match value {
            PatchValue::Old(v) => Some(v),
            PatchValue::New { .. } => None,
        }
    }
}

/// The graph alone as a scope, for guards.
pub struct GraphScope<'a>(pub &'a dyn View);

impl Scope for GraphScope<'_> {
    fn ty(&self, value: PatchValue) -> Option<&TensorType> {
        self.0.ty(self.old(value)?)
    }
    fn op(&self, value: PatchValue) -> Option<&Op> {
        Some(self.0.op(self.old(value)?.node))
    }
    fn graph(&self) -> &dyn View {
        self.0
    }
    fn constant(&self, value: PatchValue) -> bool {
        self.old(value).is_some_and(|v| self.0.is_constant(v))
    }
}

impl Expr {
    /// Whether it reads one of these variables.
    pub(crate) fn mentions(&self, which: &dyn Fn(&Var) -> bool) -> bool {
        match self {
            Expr::Literal(_) => false,
            Expr::Var(v) | Expr::Attr(v, _) => which(v),
            Expr::If(parts) => parts.iter().any(|p| p.mentions(which)),
            Expr::And(parts) | Expr::Or(parts) | Expr::Call(_, parts) => parts.iter().any(|p| p.mentions(which)),
            Expr::Shown(condition) => condition.mentions(which),
            Expr::For(_, list, body) => list.mentions(which) || body.mentions(which),
        }
    }

    /// Whether it calls one of these functions.
    pub(crate) fn calls(&self, functions: &[&str]) -> bool {
        let any = |parts: &[Expr]| parts.iter().any(|part| part.calls(functions));
        match self {
            Expr::Literal(_) | Expr::Var(_) | Expr::Attr(..) => false,
            Expr::If(parts) => any(&parts[..]),
            Expr::And(parts) | Expr::Or(parts) => any(parts),
            Expr::Shown(condition) => condition.calls(functions),
            Expr::Call(function, parts) => functions.contains(&function.name) || any(parts),
            Expr::For(_, list, body) => list.calls(functions) || body.calls(functions),
        }
    }

    /// The value; an error says why the expression has none here (an unknown type, an index outside
    /// a list, a condition that symbols leave undecided...).
    pub fn eval(&self, env: &[Option<Val>], scope: &dyn Scope) -> Result<Val, String> {
        match self {
            Expr::Literal(v) => Ok(v.clone()),
            Expr::Var(v) => env.get(*v).cloned().flatten().ok_or_else(|| "a variable has no value yet".to_string()),
            Expr::Attr(v, name) => {
                let Some(Some(Val::Value(value))) = env.get(*v) else {
                    return Err(format!("`attr {name}` of something that is not an operator"));
                };
                let op = scope.op(*value).ok_or("the operator is not known")?;
                op.attr(name).map(|a| Val::from_attr(&a)).ok_or_else(|| format!("`{}` has no attribute `{name}`", op.kind().name()))
            }
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.holds(env, scope)? { yes.eval(env, scope) } else { no.eval(env, scope) }
            }
            Expr::And(parts) => Self::joined(parts, false, env, scope),
            Expr::Or(parts) => Self::joined(parts, true, env, scope),
            Expr::Shown(condition) => Ok(Val::Bool(condition.holds(env, scope).unwrap_or(false))),
            Expr::For(var, list, body) => {
                let Val::List(items) = list.eval(env, scope)? else { return Err("`for` needs a list".into()) };
                let mut inner = env.to_vec();
                let mut results = Vec::with_capacity(items.len());
                for item in items {
                    inner[*var] = Some(item);
                    results.push(body.eval(&inner, scope)?);
                }
                Ok(Val::List(results))
            }
            Expr::Call(builtin, args) => {
                let args: Vec<Val> = args.iter().map(|a| a.eval(env, scope)).collect::<Result<_, _>>()?;
                (builtin.run)(&args, scope)
            }
        }
    }

    /// `decisive` if any part is; otherwise no part may be undecided.
    fn joined(parts: &[Expr], decisive: bool, env: &[Option<Val>], scope: &dyn Scope) -> Result<Val, String> {
        let mut undecided = None;
        for part in parts {
            match part.holds(env, scope) {
                Ok(truth) if truth == decisive => return Ok(Val::Bool(decisive)),
                Ok(_) => {}
                Err(why) => drop(undecided.get_or_insert(why)),
            }
        }
        undecided.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    /// The truth of a condition; an error where it is undecided.
    pub fn holds(&self, env: &[Option<Val>], scope: &dyn Scope) -> Result<bool, String> {
        match self.eval(env, scope)? {
            Val::Bool(b) => Ok(b),
            other => Err(format!("a condition gave {other:?}")),
        }
    }
}
