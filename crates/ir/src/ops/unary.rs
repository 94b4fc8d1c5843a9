//! Functions of one number, element by element.

use crate::dtype::DType;
use crate::op::Kernel::{Elementwise, Transcendental};
use crate::ops::accepts::{Since, Types};
use crate::ops::elementwise::{int_order, pointwise};
use crate::scalar::Function;

const FLOATS: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];
const TRIGONOMETRIC: &[Since] = &[(7, Types::FLOATS), (22, Types::BF16)];
const HYPERBOLIC: &[Since] = &[(9, Types::FLOATS), (22, Types::BF16)];
const NEG: &[Since] = &[(1, Types::FLOATS), (6, Types::SIGNED_INTS), (13, Types::BF16)];
const ABS: &[Since] = &[(1, Types::FLOATS), (6, Types::INTS), (13, Types::BF16)];
const SIGN: &[Since] = &[(9, Types::FLOATS.and(Types::INTS)), (13, Types::BF16)];
const ROUND: &[Since] = &[(11, Types::FLOATS), (22, Types::BF16)];
const ERF: &[Since] = &[(9, Types::FLOATS), (13, Types::BF16)];

pointwise! {
    /// `-x`; integers wrap.
    Neg {}, NEG, Elementwise, 1.0, |_op, x| x.neg(), |_, i| i.wrapping_neg();
    /// `|x|`; integers wrap.
    Abs {}, ABS, Elementwise, 1.0, |_op, x| x.apply(Function::Abs)?, |dtype, i| if dtype == DType::U64 { i } else { i.wrapping_abs() };
    /// -1, 0 or 1.
    Sign {}, SIGN, Elementwise, 1.0, |_op, x| x.apply(Function::Sign)?, |dtype, i| int_order(dtype, i, 0) as i64;
    /// `1 / x`.
    Reciprocal {}, FLOATS, Elementwise, 1.0, |_op, x| S::one().div(x)?;
    /// The square root.
    Sqrt {}, FLOATS, Elementwise, 2.0, |_op, x| x.apply(Function::Sqrt)?;
    /// The exponential.
    Exp {}, FLOATS, Transcendental, 8.0, |_op, x| x.apply(Function::Exp)?;
    /// The natural logarithm.
    Log {}, FLOATS, Transcendental, 8.0, |_op, x| x.apply(Function::Log)?;
    /// The largest integer that is not greater.
    Floor {}, FLOATS, Elementwise, 1.0, |_op, x| x.apply(Function::Floor)?;
    /// The smallest integer that is not less.
    Ceil {}, FLOATS, Elementwise, 1.0, |_op, x| x.apply(Function::Ceil)?;
    /// The nearest integer, halves to even.
    Round {}, ROUND, Elementwise, 1.0, |_op, x| x.apply(Function::Round)?;
    /// The error function.
    Erf {}, ERF, Transcendental, 12.0, |_op, x| x.apply(Function::Erf)?;
    /// The sine.
    Sin {}, TRIGONOMETRIC, Transcendental, 12.0, |_op, x| x.apply(Function::Sin)?;
    /// The cosine.
    Cos {}, TRIGONOMETRIC, Transcendental, 12.0, |_op, x| x.apply(Function::Cos)?;
    /// The tangent.
    Tan {}, TRIGONOMETRIC, Transcendental, 16.0, |_op, x| x.apply(Function::Tan)?;
    /// The inverse sine.
    Asin {}, TRIGONOMETRIC, Transcendental, 16.0, |_op, x| x.apply(Function::Asin)?;
    /// The inverse cosine.
    Acos {}, TRIGONOMETRIC, Transcendental, 16.0, |_op, x| x.apply(Function::Acos)?;
    /// The inverse tangent.
    Atan {}, TRIGONOMETRIC, Transcendental, 16.0, |_op, x| x.apply(Function::Atan)?;
    /// The hyperbolic sine.
    Sinh {}, HYPERBOLIC, Transcendental, 16.0, |_op, x| x.apply(Function::Sinh)?;
    /// The hyperbolic cosine.
    Cosh {}, HYPERBOLIC, Transcendental, 16.0, |_op, x| x.apply(Function::Cosh)?;
    /// The inverse hyperbolic sine.
    Asinh {}, HYPERBOLIC, Transcendental, 16.0, |_op, x| x.apply(Function::Asinh)?;
    /// The inverse hyperbolic cosine.
    Acosh {}, HYPERBOLIC, Transcendental, 16.0, |_op, x| x.apply(Function::Acosh)?;
    /// The inverse hyperbolic tangent.
    Atanh {}, HYPERBOLIC, Transcendental, 16.0, |_op, x| x.apply(Function::Atanh)?;
}
