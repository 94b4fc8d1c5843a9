//! The functions of the expression language.

use std::cmp::Ordering;

use regraft_ir::{Dim, Op, OpKind, PatchValue, TensorType};

use crate::constants;
use crate::cook_toom::cook_toom;
use crate::expr::{Scope, Val};
use crate::truth::{Truth, all, any, equal, equal_sizes, not, order, same_operator};

/// A function of the expression language.
pub struct Builtin {
    /// Name in rule files.
    pub name: &'static str,
    /// Smallest and largest number of arguments.
    pub arity: (usize, usize),
    /// One line for the rule author.
    pub help: &'static str,
    /// The function.
    pub run: fn(&[Val], &dyn Scope) -> Result<Val, String>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The function of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    TABLE.iter().find(|b| b.name == name)
}

const MANY: usize = usize::MAX;

/// All functions.
pub static TABLE: &[Builtin] = &[
    Builtin { name: "+", arity: (1, MANY), help: "sum of numbers or sizes", run: |a, _| fold(a, |x, y| x + y, |x, y| x + y) },
    Builtin { name: "*", arity: (1, MANY), help: "product of numbers or sizes", run: |a, _| fold(a, |x, y| x * y, |x, y| x * y) },
    Builtin {
        name: "-",
        arity: (1, MANY),
        help: "difference, or the negative of one number",
        run: |a, _| {
            if a.len() == 1 { fold(&[Val::int(0), a[0].clone()], |x, y| x - y, |x, y| x - y) } else { fold(a, |x, y| x - y, |x, y| x - y) }
        },
    },
    Builtin {
        name: "/",
        arity: (2, 2),
        help: "floor division of sizes, or division of floats",
        run: |a, _| fold(a, |x, y| x.floor_div(&y), |x, y| x / y),
    },
    Builtin {
        name: "ceil-div",
        arity: (2, 2),
        help: "division of sizes rounded up",
        run: |a, _| Ok(Val::Dim(dim(&a[0])?.ceil_div(&dim(&a[1])?))),
    },
    Builtin {
        name: "mod",
        arity: (2, 2),
        help: "remainder of sizes",
        run: |a, _| {
            let (x, y) = (dim(&a[0])?, dim(&a[1])?);
            Ok(Val::Dim(x.clone() - x.floor_div(&y) * y))
        },
    },
    Builtin { name: "pow", arity: (2, 2), help: "power of floats", run: |a, _| Ok(Val::Float(float(&a[0])?.powf(float(&a[1])?))) },
    Builtin { name: "sqrt", arity: (1, 1), help: "square root", run: |a, _| Ok(Val::Float(float(&a[0])?.sqrt())) },
    Builtin { name: "float", arity: (1, 1), help: "a number as a float", run: |a, _| Ok(Val::Float(float(&a[0])?)) },
    Builtin { name: "min", arity: (2, 2), help: "smaller known number", run: |a, _| pick(a, |x, y| x < y) },
    Builtin { name: "max", arity: (2, 2), help: "larger known number", run: |a, _| pick(a, |x, y| x > y) },
    Builtin {
        name: "tighter-min",
        arity: (2, 2),
        help: "the larger of two lower bounds, either of which may be absent",
        run: |a, _| if a[0] == Val::Absent || a[1] == Val::Absent { Ok(given(a)) } else { pick(a, |x, y| x > y) },
    },
    Builtin {
        name: "tighter-max",
        arity: (2, 2),
        help: "the smaller of two upper bounds, either of which may be absent",
        run: |a, _| if a[0] == Val::Absent || a[1] == Val::Absent { Ok(given(a)) } else { pick(a, |x, y| x < y) },
    },
    Builtin {
        name: "=",
        arity: (2, MANY),
        help: "all equal; sizes with symbols for all their values",
        run: |a, _| told(all(a.windows(2).map(|w| equal(&w[0], &w[1])))),
    },
    Builtin {
        name: "!=",
        arity: (2, 2),
        help: "different; sizes with symbols for all their values",
        run: |a, _| told(not(equal(&a[0], &a[1]))),
    },
    Builtin { name: "<", arity: (2, 2), help: "less", run: |a, _| compare(a, Ordering::is_lt) },
    Builtin { name: "<=", arity: (2, 2), help: "less or equal", run: |a, _| compare(a, Ordering::is_le) },
    Builtin { name: ">", arity: (2, 2), help: "greater", run: |a, _| compare(a, Ordering::is_gt) },
    Builtin { name: ">=", arity: (2, 2), help: "greater or equal", run: |a, _| compare(a, Ordering::is_ge) },
    Builtin {
        name: "near",
        arity: (2, 2),
        help: "floats equal to six digits",
        run: |a, _| Ok(Val::Bool(constants::near(float(&a[0])?, float(&a[1])?))),
    },
    Builtin { name: "not", arity: (1, 1), help: "negation", run: |a, _| told(not(Some(truth(&a[0])?))) },
    Builtin {
        name: "given",
        arity: (1, 1),
        help: "an optional operand or attribute is there",
        run: |a, _| Ok(Val::Bool(a[0] != Val::Absent)),
    },
    // Lists.
    Builtin { name: "list", arity: (0, MANY), help: "a list", run: |a, _| Ok(Val::List(a.to_vec())) },
    Builtin { name: "len", arity: (1, 1), help: "number of items", run: |a, _| Ok(Val::int(list(&a[0])?.len() as i64)) },
    Builtin {
        name: "nth",
        arity: (2, 2),
        help: "item at an index; negative counts from the end",
        run: |a, _| Ok(list(&a[0])?[index(&a[1], list(&a[0])?.len())?].clone()),
    },
    Builtin {
        name: "append",
        arity: (0, MANY),
        help: "lists one after the other",
        run: |a, _| Ok(Val::List(a.iter().map(list).collect::<Result<Vec<_>, _>>()?.concat())),
    },
    Builtin {
        name: "slice",
        arity: (3, 3),
        help: "items from an index up to another (exclusive)",
        run: |a, _| {
            let items = list(&a[0])?;
            let (from, to) = (int(&a[1])?, int(&a[2])?);
            let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
            items
                .get(from..to.max(from))
                .map(|s| Val::List(s.to_vec()))
                .ok_or_else(|| format!("no items {from}..{to} in a list of {}", items.len()))
        },
    },
    Builtin {
        name: "set",
        arity: (3, 3),
        help: "a list with one item replaced",
        run: |a, _| {
            let mut items = list(&a[0])?.to_vec();
            let at = index(&a[1], items.len())?;
            items[at] = a[2].clone();
            Ok(Val::List(items))
        },
    },
    Builtin { name: "repeat", arity: (2, 2), help: "an item so many times", run: |a, _| Ok(Val::List(vec![a[0].clone(); count(&a[1])?])) },
    Builtin {
        name: "range",
        arity: (2, 2),
        help: "integers from one up to another (exclusive)",
        run: |a, _| Ok(Val::List((int(&a[0])?..int(&a[1])?).map(Val::int).collect())),
    },
    Builtin { name: "sum", arity: (1, 1), help: "sum of a list", run: |a, _| fold(&prepend(0, list(&a[0])?), |x, y| x + y, |x, y| x + y) },
    Builtin {
        name: "product",
        arity: (1, 1),
        help: "product of a list",
        run: |a, _| fold(&prepend(1, list(&a[0])?), |x, y| x * y, |x, y| x * y),
    },
    Builtin {
        name: "all-equal",
        arity: (2, 2),
        help: "every item of a list equals a value",
        run: |a, _| told(all(list(&a[0])?.iter().map(|v| equal(v, &a[1])))),
    },
    Builtin {
        name: "uniform",
        arity: (1, 1),
        help: "all items of a list are equal",
        run: |a, _| told(all(list(&a[0])?.windows(2).map(|w| equal(&w[0], &w[1])))),
    },
    Builtin {
        name: "every",
        arity: (1, 1),
        help: "all items of a list are true",
        run: |a, _| {
            let items = list(&a[0])?.iter().map(truth).collect::<Result<Vec<_>, _>>()?;
            Ok(Val::Bool(items.into_iter().all(|item| item)))
        },
    },
    Builtin {
        name: "member",
        arity: (2, 2),
        help: "a list contains a value",
        run: |a, _| told(any(list(&a[1])?.iter().map(|v| equal(v, &a[0])))),
    },
    Builtin {
        name: "reverse",
        arity: (1, 1),
        help: "a list from its end",
        run: |a, _| Ok(Val::List(list(&a[0])?.iter().rev().cloned().collect())),
    },
    Builtin {
        name: "permute",
        arity: (2, 2),
        help: "items of a list in the order of a permutation: result[i] = list[perm[i]]",
        run: |a, _| {
            let items = list(&a[0])?;
            Ok(Val::List(list(&a[1])?.iter().map(|p| index(p, items.len()).map(|i| items[i].clone())).collect::<Result<_, _>>()?))
        },
    },
    Builtin {
        name: "index-of",
        arity: (2, 2),
        help: "(index-of v list): where a list has a value first",
        run: |a, _| {
            for (at, item) in list(&a[1])?.iter().enumerate() {
                if equal(item, &a[0]).ok_or(UNDECIDED)? {
                    return Ok(Val::int(at as i64));
                }
            }
            Err("the list does not have the value".into())
        },
    },
    Builtin {
        name: "without",
        arity: (2, 2),
        help: "(without list items): a list less the items of another",
        run: |a, _| {
            let gone = list(&a[1])?;
            let mut left = Vec::new();
            for item in list(&a[0])? {
                if !any(gone.iter().map(|g| equal(g, item))).ok_or(UNDECIDED)? {
                    left.push(item.clone());
                }
            }
            Ok(Val::List(left))
        },
    },
    Builtin {
        name: "ranks",
        arity: (1, 1),
        help: "the place of each integer of a list in ascending order",
        run: |a, _| {
            let items = list(&a[0])?.iter().map(int).collect::<Result<Vec<_>, _>>()?;
            Ok(Val::List(items.iter().map(|v| Val::int(items.iter().filter(|w| *w < v).count() as i64)).collect()))
        },
    },
    Builtin {
        name: "sort",
        arity: (1, 1),
        help: "integers in ascending order",
        run: |a, _| {
            let mut items = list(&a[0])?.iter().map(int).collect::<Result<Vec<_>, _>>()?;
            items.sort_unstable();
            Ok(Val::List(items.into_iter().map(Val::int).collect()))
        },
    },
    Builtin {
        name: "inverse",
        arity: (1, 1),
        help: "the inverse of a permutation",
        run: |a, _| {
            let perm = list(&a[0])?;
            let mut inverse = vec![Val::int(0); perm.len()];
            for (i, p) in perm.iter().enumerate() {
                inverse[index(p, perm.len())?] = Val::int(i as i64);
            }
            Ok(Val::List(inverse))
        },
    },
    // Types and shapes.
    Builtin {
        name: "shape",
        arity: (1, 1),
        help: "sizes of a tensor",
        run: |a, s| Ok(Val::List(ty(&a[0], s)?.shape.iter().cloned().map(Val::Dim).collect())),
    },
    Builtin {
        name: "dim",
        arity: (2, 2),
        help: "one size of a tensor; negative counts from the end",
        run: |a, s| {
            let t = ty(&a[0], s)?;
            Ok(Val::Dim(t.shape[index(&a[1], t.rank())?].clone()))
        },
    },
    Builtin { name: "rank", arity: (1, 1), help: "number of dimensions", run: |a, s| Ok(Val::int(ty(&a[0], s)?.rank() as i64)) },
    Builtin { name: "elements", arity: (1, 1), help: "number of elements", run: |a, s| Ok(Val::Dim(ty(&a[0], s)?.elements())) },
    Builtin { name: "dtype", arity: (1, 1), help: "element type", run: |a, s| Ok(Val::DType(ty(&a[0], s)?.dtype)) },
    Builtin {
        name: "float-type",
        arity: (1, 1),
        help: "the elements are floats",
        run: |a, s| Ok(Val::Bool(ty(&a[0], s)?.dtype.is_float())),
    },
    Builtin {
        name: "embeds",
        arity: (2, 2),
        help: "(embeds a b): every number of element type a is one of type b",
        run: |a, _| match (&a[0], &a[1]) {
            (Val::DType(x), Val::DType(y)) => Ok(Val::Bool(x.embeds(*y))),
            _ => Err("not element types".into()),
        },
    },
    Builtin {
        name: "same-shape",
        arity: (2, MANY),
        help: "shapes shown to be equal: no broadcasting",
        run: |a, s| {
            let types = a.iter().map(|v| ty(v, s)).collect::<Result<Vec<_>, _>>()?;
            told(all(types.windows(2).map(|w| same_shape(&w[0].shape, &w[1].shape))))
        },
    },
    Builtin { name: "known", arity: (1, 1), help: "a size that is a number", run: |a, _| Ok(Val::Bool(known(&a[0]))) },
    Builtin {
        name: "known-shape",
        arity: (1, 1),
        help: "no symbolic size",
        run: |a, s| Ok(Val::Bool(ty(&a[0], s)?.known_shape().is_some())),
    },
    Builtin {
        name: "broadcasts-into",
        arity: (2, 2),
        help: "the first tensor, which can be broadcast with the second, keeps the second's shape then",
        run: |a, s| {
            let (x, y) = (ty(&a[0], s)?, ty(&a[1], s)?);
            let Some(offset) = y.rank().checked_sub(x.rank()) else { return Ok(Val::Bool(false)) };
            told(all(x.shape.iter().zip(&y.shape[offset..]).map(|(d, e)| broadcasts_into(d, e))))
        },
    },
    Builtin {
        name: "along",
        arity: (3, 3),
        help: "(along ?c axis rank): aligned to the right of `rank` dimensions, ?c varies along `axis` only",
        run: |a, s| {
            let t = ty(&a[0], s)?;
            let (axis, rank) = (int(&a[1])?, int(&a[2])?);
            let offset = rank - t.rank() as i64;
            let others = t.shape.iter().enumerate().filter(|(i, _)| *i as i64 + offset != axis);
            told(if offset < 0 { Some(false) } else { all(others.map(|(_, d)| is_one(d))) })
        },
    },
    // Constness and values.
    Builtin { name: "const", arity: (1, 1), help: "depends on constants only", run: |a, s| Ok(Val::Bool(s.constant(value(&a[0])?))) },
    Builtin { name: "scalar", arity: (1, 1), help: "one element", run: |a, s| told(is_one(&ty(&a[0], s)?.elements())) },
    Builtin {
        name: "splat",
        arity: (1, 1),
        help: "a constant all of whose elements are equal",
        run: |a, s| {
            let value = value(&a[0])?;
            let seen = s.old(value).and_then(|v| constants::splat(s.graph(), v)).is_some();
            // What depends on constants and is not evaluated here may have equal elements all the same.
            let unseen = s.constant(value) && !matches!(s.op(value), Some(Op::Constant(_)));
            told(if seen { Some(true) } else { (!unseen).then_some(false) })
        },
    },
    Builtin {
        name: "value",
        arity: (1, 1),
        help: "the common value of a splat constant",
        run: |a, s| {
            s.old(value(&a[0])?).and_then(|v| constants::splat(s.graph(), v)).map(Val::Float).ok_or_else(|| "not a splat constant".into())
        },
    },
    Builtin {
        name: "values",
        arity: (1, 1),
        help: "all elements of a small constant, row by row",
        run: |a, s| {
            let v = s.old(value(&a[0])?).ok_or("not a constant of the graph")?;
            let c = constants::small(s.graph(), v).ok_or("not a small constant")?;
            Ok(Val::List(c.to_f64().ok_or("not numbers")?.into_iter().map(Val::Float).collect()))
        },
    },
    Builtin {
        name: "positive",
        arity: (1, 1),
        help: "a small constant all of whose elements are > 0",
        run: |a, s| all_elements(&a[0], s, |x| x > 0.0),
    },
    Builtin {
        name: "nonzero",
        arity: (1, 1),
        help: "a small constant none of whose elements is 0",
        run: |a, s| all_elements(&a[0], s, |x| x != 0.0),
    },
    // Graph.
    Builtin {
        name: "users",
        arity: (1, 1),
        help: "number of readers of a tensor",
        run: |a, s| Ok(Val::int(s.old(value(&a[0])?).map_or(0, |v| s.graph().users(v).count() as i64))),
    },
    Builtin {
        name: "output",
        arity: (1, 1),
        help: "a declared graph output",
        run: |a, s| Ok(Val::Bool(s.old(value(&a[0])?).is_some_and(|v| s.graph().is_output(v)))),
    },
    Builtin {
        name: "read-only-by",
        arity: (2, 2),
        help: "(read-only-by ?x op): every reader of ?x is this operator, and it is no output",
        run: |a, s| {
            let kind = op_kind(&a[1])?;
            let v = s.old(value(&a[0])?).ok_or("not a value of the graph")?;
            Ok(Val::Bool(!s.graph().is_output(v) && s.graph().users(v).all(|(n, _)| s.graph().node(n).op.kind() == kind)))
        },
    },
    Builtin {
        name: "computed-by",
        arity: (2, 2),
        help: "(computed-by ?x op): ?x is the result of this operator",
        run: |a, s| Ok(Val::Bool(s.op(value(&a[0])?).map(Op::kind) == Some(op_kind(&a[1])?))),
    },
    Builtin {
        name: "same-op",
        arity: (1, MANY),
        help: "tensors, or lists of them, are results of one operator with the same attributes",
        run: |a, s| {
            let values = a.iter().flat_map(|v| v.as_list().unwrap_or(std::slice::from_ref(v)));
            let ops = values.map(|v| s.op(value(v)?).ok_or_else(|| "not an operator".to_string())).collect::<Result<Vec<_>, _>>()?;
            told(all(ops.windows(2).map(|w| same_operator(w[0], w[1]))))
        },
    },
    Builtin {
        name: "before",
        arity: (2, 2),
        help: "(before ?y ?z): an arbitrary but fixed order, so that a symmetric source is matched one way only",
        run: |a, s| {
            let node = |v: &Val| value(v).and_then(|v| s.old(v).map(|v| v.node).ok_or_else(|| "not a value of the graph".to_string()));
            Ok(Val::Bool(node(&a[0])? < node(&a[1])?))
        },
    },
    // Constant data.
    Builtin {
        name: "transpose-matrix",
        arity: (2, 2),
        help: "(transpose-matrix rows data): a flat matrix, transposed",
        run: |a, _| {
            let (rows, data) = (count(&a[0])?.max(1), list(&a[1])?);
            let columns = data.len() / rows;
            Ok(Val::List((0..columns).flat_map(|c| (0..rows).map(move |r| (r, c))).map(|(r, c)| data[r * columns + c].clone()).collect()))
        },
    },
    Builtin {
        name: "kronecker",
        arity: (4, 4),
        help: "(kronecker rowsA A rowsB B): the Kronecker product of flat matrices",
        run: |a, _| {
            let (ra, x, rb, y) = (count(&a[0])?.max(1), floats(&a[1])?, count(&a[2])?.max(1), floats(&a[3])?);
            let (ca, cb) = (x.len() / ra, y.len() / rb);
            let mut data = Vec::with_capacity(x.len() * y.len());
            for i in 0..ra {
                for k in 0..rb {
                    for j in 0..ca {
                        for l in 0..cb {
                            data.push(Val::Float(x[i * ca + j] * y[k * cb + l]));
                        }
                    }
                }
            }
            Ok(Val::List(data))
        },
    },
    Builtin {
        name: "cook-toom",
        arity: (3, 3),
        help: "(cook-toom at|g|bt m r): a flat matrix of the fast correlation F(m, r), y = AT ((G g / s) * (BT d)); at has m rows, g and bt m + r - 1; (cook-toom s m r) is the number s",
        run: |a, _| {
            let part = word(&a[0])?;
            let transform = cook_toom(count(&a[1])?, count(&a[2])?)?;
            let data = match part {
                "at" => transform.output,
                "g" => transform.kernel,
                "s" => return Ok(Val::Float(transform.divisor)),
                "bt" => transform.input,
                other => return Err(format!("`cook-toom` has no part `{other}`")),
            };
            Ok(Val::List(data.into_iter().map(Val::Float).collect()))
        },
    },
    Builtin {
        name: "eye",
        arity: (1, 1),
        help: "the identity matrix, flat",
        run: |a, _| {
            let n = count(&a[0])?;
            Ok(Val::List((0..n * n).map(|i| Val::Float(if i / n == i % n { 1.0 } else { 0.0 })).collect()))
        },
    },
    Builtin {
        name: "band",
        arity: (4, 4),
        help: "(band n below above v): n x n matrix with v where -below <= column - row <= above, flat",
        run: |a, _| {
            let (n, below, above, v) = (int(&a[0])?, int(&a[1])?, int(&a[2])?, float(&a[3])?);
            Ok(Val::List(
                (0..n * n)
                    .map(|i| {
                        let d = i % n - i / n;
                        Val::Float(if (-below..=above).contains(&d) { v } else { 0.0 })
                    })
                    .collect(),
            ))
        },
    },
];

fn prepend(first: i64, items: &[Val]) -> Vec<Val> {
    std::iter::once(Val::int(first)).chain(items.iter().cloned()).collect()
}

/// Whether all elements of a small constant are as asked.
fn all_elements(a: &Val, s: &dyn Scope, holds: fn(f64) -> bool) -> Result<Val, String> {
    let v = s.old(value(a)?).ok_or("not a constant of the graph")?;
    if let Some(x) = constants::splat(s.graph(), v) {
        return Ok(Val::Bool(holds(x)));
    }
    let c = constants::small(s.graph(), v).ok_or("not a small constant")?;
    Ok(Val::Bool(c.to_f64().is_some_and(|x| x.into_iter().all(holds))))
}

fn fold(a: &[Val], dims: impl Fn(Dim, Dim) -> Dim, floats: impl Fn(f64, f64) -> f64) -> Result<Val, String> {
    let mut total = a.first().cloned().ok_or("no operands")?;
    for next in &a[1..] {
        total = match (total, next) {
            (Val::Dim(x), Val::Dim(y)) => Val::Dim(dims(x, y.clone())),
            (x, y) => Val::Float(floats(float(&x)?, float(y)?)),
        };
    }
    Ok(total)
}

/// The given one of two optional values; absent if none is.
fn given(a: &[Val]) -> Val {
    if a[0] == Val::Absent { a[1].clone() } else { a[0].clone() }
}

/// The first of two numbers if it stands in this relation to the second, else the second.
fn pick(a: &[Val], first: impl Fn(f64, f64) -> bool) -> Result<Val, String> {
    let (x, y) = (float(&a[0])?, float(&a[1])?);
    Ok(if first(x, y) { a[0].clone() } else { a[1].clone() })
}

fn compare(a: &[Val], f: impl Fn(Ordering) -> bool) -> Result<Val, String> {
    if let (Val::Dim(x), Val::Dim(y)) = (&a[0], &a[1]) {
        return told(order(x, y).map(f));
    }
    Ok(Val::Bool(float(&a[0])?.partial_cmp(&float(&a[1])?).is_some_and(f)))
}

/// Why a condition has no value that depends on symbols.
const UNDECIDED: &str = "undecided: it depends on what symbols stand for";

/// A condition's value; one that is undecided has none.
fn told(truth: Truth) -> Result<Val, String> {
    truth.map(Val::Bool).ok_or_else(|| UNDECIDED.into())
}

fn truth(v: &Val) -> Result<bool, String> {
    match v {
        Val::Bool(truth) => Ok(*truth),
        other => Err(format!("{other:?} is not a truth value")),
    }
}

fn is_one(size: &Dim) -> Truth {
    equal_sizes(size, &Dim::from(1))
}

/// Whether `x` and `y`, one of which is 1 if they differ, are broadcast to `y`.
fn broadcasts_into(x: &Dim, y: &Dim) -> Truth {
    let both = any([equal_sizes(x, y), is_one(x)]);
    if x.known().is_none() { both.or_else(|| not(is_one(y)).filter(|other| *other)) } else { both }
}

fn same_shape(x: &[Dim], y: &[Dim]) -> Truth {
    if x.len() == y.len() { all(x.iter().zip(y).map(|(a, b)| equal_sizes(a, b))) } else { Some(false) }
}

fn known(v: &Val) -> bool {
    match v {
        Val::Dim(d) => d.known().is_some(),
        Val::List(items) => items.iter().all(known),
        _ => true,
    }
}

/// True where equality as the language sees it (numbers by value, flags as 0 and 1) is shown.
pub fn same(a: &Val, b: &Val) -> bool {
    equal(a, b) == Some(true)
}

fn dim(v: &Val) -> Result<Dim, String> {
    match v {
        Val::Dim(d) => Ok(d.clone()),
        other => Err(format!("{other:?} is not a size")),
    }
}

fn int(v: &Val) -> Result<i64, String> {
    v.as_int().ok_or_else(|| format!("{v:?} is not a known integer"))
}

fn count(v: &Val) -> Result<usize, String> {
    int(v).and_then(|n| usize::try_from(n).map_err(|_| format!("{n} is negative")))
}

fn float(v: &Val) -> Result<f64, String> {
    v.as_f64().ok_or_else(|| format!("{v:?} is not a known number"))
}

fn floats(v: &Val) -> Result<Vec<f64>, String> {
    list(v)?.iter().map(float).collect()
}

fn list(v: &Val) -> Result<&[Val], String> {
    v.as_list().ok_or_else(|| format!("{v:?} is not a list"))
}

fn word(v: &Val) -> Result<&str, String> {
    match v {
        Val::Str(s) => Ok(s),
        other => Err(format!("{other:?} is not a word")),
    }
}

fn value(v: &Val) -> Result<PatchValue, String> {
    match v {
        Val::Value(value) => Ok(*value),
        other => Err(format!("{other:?} is not a tensor")),
    }
}

fn op_kind(v: &Val) -> Result<OpKind, String> {
    let name = word(v)?;
    OpKind::from_name(name).ok_or_else(|| format!("no operator `{name}`"))
}

fn ty<'a>(v: &Val, scope: &'a dyn Scope) -> Result<&'a TensorType, String> {
    scope.ty(value(v)?).ok_or_else(|| "the type is not known".to_string())
}

fn index(v: &Val, len: usize) -> Result<usize, String> {
    let at = int(v)?;
    let from_front = if at < 0 { at + len as i64 } else { at };
    usize::try_from(from_front).ok().filter(|i| *i < len).ok_or_else(|| format!("index {at} is outside of {len} items"))
}
