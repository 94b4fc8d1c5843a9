//! Lists.

use regraft_ir::ops::einsum;

use super::arguments::{UNDECIDED, count, index, int, list, told, truth, word};
use super::numbers::fold;
use super::{Builtin, MANY};
use crate::expr::Val;
use crate::truth::{all, any, equal};

/// Functions on lists.
pub(super) static TABLE: &[Builtin] = &[
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
        name: "labels",
        arity: (1, 1),
        help: "the labels of an Einsum equation, as integers: a list for each operand and one for the result",
        run: |a, _| {
            let operands = einsum::labels(word(&a[0])?).ok_or_else(|| format!("{:?} is no equation", a[0]))?;
            Ok(Val::List(
                operands.iter().map(|labels| Val::List(labels.iter().map(|label| Val::int(i64::from(*label))).collect())).collect(),
            ))
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
];

fn prepend(first: i64, items: &[Val]) -> Vec<Val> {
    std::iter::once(Val::int(first)).chain(items.iter().cloned()).collect()
}
