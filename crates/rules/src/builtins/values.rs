//! What is known about the elements of a tensor.

use regraft_ir::OpKind;

use super::Builtin;
use super::arguments::{told, ty, value};
use super::shapes::is_one;
use crate::constants;
use crate::expr::{Scope, Val};

/// Functions on constants and their elements.
pub(super) static TABLE: &[Builtin] = &[
    Builtin { name: "const", arity: (1, 1), help: "depends on constants only", run: |a, s| Ok(Val::Bool(s.constant(value(&a[0])?))) },
    Builtin { name: "scalar", arity: (1, 1), help: "one element", run: |a, s| told(is_one(&ty(&a[0], s)?.elements())) },
    Builtin {
        name: "splat",
        arity: (1, 1),
        help: "a constant all of whose elements are equal",
        run: |a, s| {
            let value = value(&a[0])?;
            let seen = s.old(value).and_then(|v| constants::splat(s.graph(), v)).is_some();
            // A constant expression that is not evaluated here may still have equal elements.
            let unseen = s.constant(value) && s.kind(value) != Some(OpKind::Constant);
            told(if seen { Some(true) } else { (!unseen).then_some(false) })
        },
    },
    Builtin {
        name: "value",
        arity: (1, 1),
        help: "the common value of a splat constant, which must be finite",
        run: |a, s| {
            // Rules are proved over the reals.
            let splat = s.old(value(&a[0])?).and_then(|v| constants::splat(s.graph(), v)).filter(|splat| splat.is_finite());
            splat.map(Val::Float).ok_or_else(|| "not a splat constant of a finite value".into())
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
];

/// Whether all elements of a small constant satisfy `holds`.
fn all_elements(a: &Val, s: &dyn Scope, holds: fn(f64) -> bool) -> Result<Val, String> {
    let v = s.old(value(a)?).ok_or("not a constant of the graph")?;
    if let Some(x) = constants::splat(s.graph(), v) {
        return Ok(Val::Bool(holds(x)));
    }
    let c = constants::small(s.graph(), v).ok_or("not a small constant")?;
    Ok(Val::Bool(c.to_f64().is_some_and(|x| x.into_iter().all(holds))))
}
