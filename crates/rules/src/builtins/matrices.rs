//! Matrices as flat lists, for constants that rules create.

use super::Builtin;
use super::arguments::{count, float, floats, int, list, word};
use crate::cook_toom::cook_toom;
use crate::expr::Val;

/// Functions on constant data.
pub(super) static TABLE: &[Builtin] = &[
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
