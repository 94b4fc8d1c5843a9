//! Converts arguments of functions to the kinds they must be, and conditions to values.

use regraft_ir::{Dim, OpKind, PatchValue, TensorType};

use crate::expr::{Scope, Val};
use crate::truth::Truth;

/// Why a condition that depends on symbols has no value.
pub(super) const UNDECIDED: &str = "undecided: it depends on what symbols stand for";

/// A condition's value; an undecided condition has none.
pub(super) fn told(truth: Truth) -> Result<Val, String> {
    truth.map(Val::Bool).ok_or_else(|| UNDECIDED.into())
}

/// The value of a decided condition.
pub(super) fn truth(v: &Val) -> Result<bool, String> {
    match v {
        Val::Bool(truth) => Ok(*truth),
        other => Err(format!("{other:?} is not a truth value")),
    }
}

/// A size.
pub(super) fn dim(v: &Val) -> Result<Dim, String> {
    match v {
        Val::Dim(d) => Ok(d.clone()),
        other => Err(format!("{other:?} is not a size")),
    }
}

/// A known integer.
pub(super) fn int(v: &Val) -> Result<i64, String> {
    v.as_int().ok_or_else(|| format!("{v:?} is not a known integer"))
}

/// A known integer that is not negative.
pub(super) fn count(v: &Val) -> Result<usize, String> {
    int(v).and_then(|n| usize::try_from(n).map_err(|_| format!("{n} is negative")))
}

/// A known number.
pub(super) fn float(v: &Val) -> Result<f64, String> {
    v.as_f64().ok_or_else(|| format!("{v:?} is not a known number"))
}

/// Known numbers.
pub(super) fn floats(v: &Val) -> Result<Vec<f64>, String> {
    list(v)?.iter().map(float).collect()
}

/// The items of a list.
pub(super) fn list(v: &Val) -> Result<&[Val], String> {
    v.as_list().ok_or_else(|| format!("{v:?} is not a list"))
}

/// A word.
pub(super) fn word(v: &Val) -> Result<&str, String> {
    match v {
        Val::Str(s) => Ok(s),
        other => Err(format!("{other:?} is not a word")),
    }
}

/// A tensor.
pub(super) fn value(v: &Val) -> Result<PatchValue, String> {
    match v {
        Val::Value(value) => Ok(*value),
        other => Err(format!("{other:?} is not a tensor")),
    }
}

/// An operator, by its name.
pub(super) fn op_kind(v: &Val) -> Result<OpKind, String> {
    let name = word(v)?;
    OpKind::from_name(name).ok_or_else(|| format!("no operator `{name}`"))
}

/// The type of a tensor.
pub(super) fn ty<'a>(v: &Val, scope: &'a dyn Scope) -> Result<&'a TensorType, String> {
    scope.ty(value(v)?).ok_or_else(|| "the type is not known".to_string())
}

/// An index into this many items; negative indices count from the end.
pub(super) fn index(v: &Val, len: usize) -> Result<usize, String> {
    let at = int(v)?;
    let from_front = if at < 0 { at + len as i64 } else { at };
    usize::try_from(from_front).ok().filter(|i| *i < len).ok_or_else(|| format!("index {at} is outside of {len} items"))
}
