//! Truth of conditions: shown, refuted, or undecided because a size is a symbol.

use std::cmp::Ordering;

use regraft_ir::{Dim, Op};

use crate::expr::Val;

/// `None` is undecided: it holds for some values of the symbols, or is unknown.
pub type Truth = Option<bool>;

/// False if any is false, otherwise undecided if any is undecided, otherwise true.
pub fn all(truths: impl IntoIterator<Item = Truth>) -> Truth {
    let mut result = Some(true);
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            Some(true) => {}
            None => result = None,
        }
    }
    result
}

/// True if any is true, otherwise undecided if any is undecided, otherwise false.
pub fn any(truths: impl IntoIterator<Item = Truth>) -> Truth {
    all(truths.into_iter().map(not)).map(|none| !none)
}

/// The opposite; undecided stays undecided.
pub fn not(truth: Truth) -> Truth {
    truth.map(|t| !t)
}

/// Whether two values are equal: numbers by value, flags as 0 and 1, lists item by item, tensors by
/// identity.
pub fn equal(a: &Val, b: &Val) -> Truth {
    match (a, b) {
        (Val::Dim(x), Val::Dim(y)) => equal_sizes(x, y),
        (Val::Float(_), Val::Dim(d)) | (Val::Dim(d), Val::Float(_)) if d.known().is_none() => None,
        (Val::Float(x), y) | (y, Val::Float(x)) => Some(y.as_f64() == Some(*x)),
        // A flag may be written 0 or 1.
        (Val::Bool(x), Val::Dim(d)) | (Val::Dim(d), Val::Bool(x)) => d.known().map(|d| d == i64::from(*x)),
        (Val::List(x), Val::List(y)) if x.len() == y.len() => all(x.iter().zip(y).map(|(a, b)| equal(a, b))),
        _ => Some(a == b),
    }
}

/// Whether two sizes are equal for all values of their symbols, or for none.
pub fn equal_sizes(x: &Dim, y: &Dim) -> Truth {
    order(x, y).map(|order| order == Ordering::Equal)
}

/// How two sizes compare, if that is the same for all values of their symbols, which are at least 1.
pub fn order(x: &Dim, y: &Dim) -> Option<Ordering> {
    if let (Some(x), Some(y)) = (x.known(), y.known()) {
        return Some(x.cmp(&y));
    }
    if x == y {
        return Some(Ordering::Equal);
    }
    if (x.clone() - y.clone()).at_least(1) {
        return Some(Ordering::Greater);
    }
    (y.clone() - x.clone()).at_least(1).then_some(Ordering::Less)
}

/// Whether two operators do the same to the same operands, by kind and attributes.
pub fn same_operator(x: &Op, y: &Op) -> Truth {
    if x == y {
        return Some(true);
    }
    if x.kind() != y.kind() {
        return Some(false);
    }
    let (mine, others) = (x.attrs(), y.attrs());
    let attributes = mine.iter().zip(&others).map(|((_, a), (_, b))| equal(&Val::from_attr(a), &Val::from_attr(b)));
    // Operators that differ beyond their attributes, as constants do, are different.
    all(attributes).filter(|same| !same).or_else(|| (mine == others).then_some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(name: &str) -> Val {
        Val::Dim(Dim::symbol(name))
    }

    fn plus(name: &str, number: i64) -> Val {
        Val::Dim(Dim::symbol(name) + Dim::from(number))
    }

    #[test]
    fn symbols_are_equal_where_that_is_shown_and_different_where_that_is() {
        let list = |items: &[Val]| Val::List(items.to_vec());
        let cases = [
            (size("n"), size("n"), Some(true)),
            (size("n"), size("m"), None),
            (size("n"), Val::int(1), None),
            (size("n"), Val::Float(1.0), None),
            (size("n"), Val::Bool(true), None),
            (size("n"), plus("n", 1), Some(false)),
            (size("n"), Val::int(0), Some(false)),
            (plus("n", 1), Val::int(1), Some(false)),
            (plus("n", 1), Val::int(2), None),
            (Val::int(2), Val::Float(2.0), Some(true)),
            (Val::int(1), Val::Bool(true), Some(true)),
            (list(&[size("n"), Val::int(2)]), list(&[size("m"), Val::int(3)]), Some(false)),
            (list(&[size("n"), Val::int(2)]), list(&[size("m"), Val::int(2)]), None),
            (list(&[size("n")]), list(&[size("n"), size("n")]), Some(false)),
        ];
        for (a, b, truth) in cases {
            assert_eq!((equal(&a, &b), equal(&b, &a)), (truth, truth), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_is_undecided_stays_so_unless_the_rest_decides() {
        assert_eq!(all([Some(true), None]), None);
        assert_eq!(all([None, Some(false)]), Some(false));
        assert_eq!(any([None, Some(true)]), Some(true));
        assert_eq!(any([Some(false), None]), None);
        assert_eq!((any([]), all([])), (Some(false), Some(true)));
        assert_eq!(not(None), None);
    }
}
