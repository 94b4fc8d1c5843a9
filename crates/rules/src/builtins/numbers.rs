//! Arithmetic, comparison and logic.

use std::cmp::Ordering;

use regraft_ir::Dim;

use super::arguments::{dim, float, told, truth};
use super::{Builtin, MANY};
use crate::constants;
use crate::expr::Val;
use crate::truth::{all, equal, not, order};

/// Functions on numbers, sizes and truth values.
pub(super) static TABLE: &[Builtin] = &[
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
];

/// Folds numbers from the left: as sizes if all are sizes, as floats otherwise.
pub(super) fn fold(a: &[Val], dims: impl Fn(Dim, Dim) -> Dim, floats: impl Fn(f64, f64) -> f64) -> Result<Val, String> {
    let mut total = a.first().cloned().ok_or("no operands")?;
    for next in &a[1..] {
        total = match (total, next) {
            (Val::Dim(x), Val::Dim(y)) => Val::Dim(dims(x, y.clone())),
            (x, y) => Val::Float(floats(float(&x)?, float(y)?)),
        };
    }
    Ok(total)
}

/// The present one of two optional values; absent if both are.
fn given(a: &[Val]) -> Val {
    if a[0] == Val::Absent { a[1].clone() } else { a[0].clone() }
}

/// The first of two numbers if it is in this relation to the second, else the second.
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
