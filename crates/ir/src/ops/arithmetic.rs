//! Element-wise arithmetic with NumPy broadcasting, on reals and on integers.

use crate::error::EvalError;
use crate::ops::elementwise::binary;

binary! {
    /// `a + b`.
    Add, true, |x, y| Ok(x.add(y)), |i, j| Ok(i.wrapping_add(j));
    /// `a - b`.
    Sub, false, |x, y| Ok(x.sub(y)), |i, j| Ok(i.wrapping_sub(j));
    /// `a * b`.
    Mul, true, |x, y| Ok(x.mul(y)), |i, j| Ok(i.wrapping_mul(j));
    /// `a / b`; integers truncate towards zero.
    Div, false, |x, y| Ok(x.div(y)?), |i, j| i.checked_div(j).ok_or_else(|| EvalError::value("integer division by zero"));
}
