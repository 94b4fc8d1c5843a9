//! The surroundings of a tensor in the graph: its producer and its readers.

use super::arguments::{op_kind, told, value};
use super::{Builtin, MANY};
use crate::elementwise::Region;
use crate::expr::Val;
use crate::truth::{all, same_operator};

/// Functions on the graph around a tensor.
pub(super) static TABLE: &[Builtin] = &[
    Builtin {
        name: "users",
        arity: (1, 1),
        help: "number of readers of a tensor",
        run: |a, s| Ok(Val::int(s.old(value(&a[0])?).map_or(0, |v| s.graph().users(v).len() as i64))),
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
            Ok(Val::Bool(!s.graph().is_output(v) && s.graph().users(v).iter().all(|(n, _)| s.graph().kind(*n) == kind)))
        },
    },
    Builtin {
        name: "computed-by",
        arity: (2, 2),
        help: "(computed-by ?x op): ?x is the result of this operator",
        run: |a, s| Ok(Val::Bool(s.kind(value(&a[0])?) == Some(op_kind(&a[1])?))),
    },
    Builtin {
        name: "shifts",
        arity: (1, 1),
        help: "(shifts ?f): the function of an `elementwise` first adds a constant that varies along its axis",
        run: |a, s| Ok(Val::Bool(Region::of(s.graph(), &a[0]).is_some_and(|region| region.shift(s.graph()).is_some()))),
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
            Ok(Val::Bool(s.graph().is_before(node(&a[0])?, node(&a[1])?)))
        },
    },
];
