//! Types and shapes of tensors.

use regraft_ir::Dim;

use super::arguments::{index, int, told, ty};
use super::{Builtin, MANY};
use crate::expr::Val;
use crate::truth::{Truth, all, any, equal_sizes, not};

/// Functions on types and shapes.
pub(super) static TABLE: &[Builtin] = &[
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
];

/// Whether a size is shown to be 1.
pub(super) fn is_one(size: &Dim) -> Truth {
    equal_sizes(size, &Dim::from(1))
}

/// Whether `x` and `y`, one of which is 1 if they differ, broadcast to `y`.
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
