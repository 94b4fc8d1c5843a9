//! What the elements of a real tensor can be; the evaluators are generic over it.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::error::EvalError;
use crate::op::{EvalContext, Op};
use crate::tensor::Value;

/// Functions that are not polynomial: a scalar may compute, tabulate, or refuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the mathematical function of its name")]
pub enum Function {
    Exp,
    Log,
    Sqrt,
    Erf,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Floor,
    Ceil,
    /// To the nearest integer, halves to even.
    Round,
    Abs,
    Sign,
}

/// This scalar does not support what an evaluator needs (a polynomial cannot be compared, a field
/// has no `exp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this scalar has no {0}")]
pub struct Unsupported(pub &'static str);

/// An element of a real tensor.
///
/// Ring operations are total. All others may be refused, so that prime fields and polynomials fit
/// in beside floats.
pub trait Scalar: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// The ring element nearest to `value`.
    fn from_f64(value: f64) -> Self;
    /// The value as a double.
    fn to_f64(&self) -> Result<f64, Unsupported>;
    /// `self + other`.
    fn add(&self, other: &Self) -> Self;
    /// `self - other`.
    fn sub(&self, other: &Self) -> Self;
    /// `self * other`.
    fn mul(&self, other: &Self) -> Self;
    /// `self / other`.
    fn div(&self, other: &Self) -> Result<Self, Unsupported>;
    /// `self` to the power `other`.
    fn pow(&self, other: &Self) -> Result<Self, Unsupported>;
    /// The function `f` of `self`.
    fn apply(&self, f: Function) -> Result<Self, Unsupported>;
    /// Order of two values; `Ok(None)` when one is not a number.
    fn compare(&self, other: &Self) -> Result<Option<Ordering>, Unsupported>;
    /// [`Op::meaning`] over these elements. Every implementation is just that call, marked
    /// `#[inline(never)]`: the definitions of all operators are compiled in the crate that defines
    /// the scalar, once, and not in every crate that evaluates a graph.
    fn eval(op: &Op, inputs: &[Value<Self>], context: &EvalContext<'_>) -> Result<Vec<Value<Self>>, EvalError>;

    /// The additive identity.
    fn zero() -> Self {
        Self::from_f64(0.0)
    }
    /// The multiplicative identity.
    fn one() -> Self {
        Self::from_f64(1.0)
    }
    /// The one of two values that comes first in `order`: the second only if it is strictly better;
    /// not-a-number wins over numbers.
    fn extreme(order: Ordering, a: &Self, b: &Self) -> Result<Self, Unsupported> {
        Ok(match b.compare(a)? {
            Some(found) if found == order => b.clone(),
            None if b.compare(b)?.is_none() => b.clone(),
            _ => a.clone(),
        })
    }
    /// Becomes `other` if that is greater; not-a-number is not.
    fn raise(&mut self, other: &Self) -> Result<(), Unsupported> {
        if other.compare(self)? == Some(Ordering::Greater) {
            self.clone_from(other);
        }
        Ok(())
    }
    /// `-self`.
    fn neg(&self) -> Self {
        Self::zero().sub(self)
    }
    /// `c[m,n] += a[m,k] * b[k,n]`, all row-major and dense.
    fn gemm(m: usize, k: usize, n: usize, a: &[Self], b: &[Self], c: &mut [Self]) {
        for i in 0..m {
            for l in 0..k {
                let x = &a[i * k + l];
                for j in 0..n {
                    let sum = c[i * n + j].add(&x.mul(&b[l * n + j]));
                    c[i * n + j] = sum;
                }
            }
        }
    }
}

/// Zeros to which [`Scalar::gemm`] adds a product. They are written one by one: pages that the
/// system zeroes on demand are mapped when they are read and again when they are written, and the
/// second time all threads are interrupted.
pub(crate) fn zeros<S: Scalar>(count: usize) -> Vec<S> {
    let mut zeros = Vec::with_capacity(count);
    zeros.resize(count, S::zero());
    zeros
}

macro_rules! float_scalar {
    ($ty:ty, $gemm:path, $widen:expr, $narrow:expr) => {
        impl Scalar for $ty {
            fn from_f64(value: f64) -> Self {
                value as $ty
            }
            fn to_f64(&self) -> Result<f64, Unsupported> {
                Ok(f64::from(*self))
            }
            fn add(&self, other: &Self) -> Self {
                self + other
            }
            fn sub(&self, other: &Self) -> Self {
                self - other
            }
            fn mul(&self, other: &Self) -> Self {
                self * other
            }
            fn div(&self, other: &Self) -> Result<Self, Unsupported> {
                Ok(self / other)
            }
            fn pow(&self, other: &Self) -> Result<Self, Unsupported> {
                Ok(self.powf(*other))
            }
            fn neg(&self) -> Self {
                -*self
            }
            fn apply(&self, f: Function) -> Result<Self, Unsupported> {
                let x = *self;
                Ok(match f {
                    Function::Exp => x.exp(),
                    Function::Log => x.ln(),
                    Function::Sqrt => x.sqrt(),
                    Function::Erf => $narrow(erf($widen(x))),
                    Function::Sin => x.sin(),
                    Function::Cos => x.cos(),
                    Function::Tan => x.tan(),
                    Function::Asin => x.asin(),
                    Function::Acos => x.acos(),
                    Function::Atan => x.atan(),
                    Function::Sinh => x.sinh(),
                    Function::Cosh => x.cosh(),
                    Function::Tanh => x.tanh(),
                    Function::Asinh => x.asinh(),
                    Function::Acosh => x.acosh(),
                    Function::Atanh => x.atanh(),
                    Function::Floor => x.floor(),
                    Function::Ceil => x.ceil(),
                    Function::Round => x.round_ties_even(),
                    Function::Abs => x.abs(),
                    Function::Sign => {
                        if x > 0.0 {
                            1.0
                        } else if x < 0.0 {
                            -1.0
                        } else {
                            x
                        }
                    }
                })
            }
            fn compare(&self, other: &Self) -> Result<Option<Ordering>, Unsupported> {
                Ok(self.partial_cmp(other))
            }
            #[inline(never)]
            fn eval(op: &Op, inputs: &[Value<Self>], context: &EvalContext<'_>) -> Result<Vec<Value<Self>>, EvalError> {
                op.meaning(inputs, context)
            }
            fn gemm(m: usize, k: usize, n: usize, a: &[Self], b: &[Self], c: &mut [Self]) {
                assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n, "gemm operands are too short");
                let (k_stride, n_stride) = (k as isize, n as isize);
                // SAFETY: the lengths are checked above, and the strides describe dense row-major
                // matrices.
                unsafe { $gemm(m, k, n, 1.0, a.as_ptr(), k_stride, 1, b.as_ptr(), n_stride, 1, 1.0, c.as_mut_ptr(), n_stride, 1) }
            }
        }
    };
}

float_scalar!(f32, matrixmultiply::sgemm, f64::from, |v: f64| v as f32);
float_scalar!(f64, matrixmultiply::dgemm, |v: f64| v, |v: f64| v);

/// The error function to double precision (series near 0, continued fraction of the complement
/// elsewhere).
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let a = x.abs();
    if a > 6.0 {
        return x.signum();
    }
    if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return x.signum() * sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = 0.0;
    for k in (1..=80).rev() {
        fraction = f64::from(k) / 2.0 / (a + fraction);
    }
    x.signum() * (1.0 - (-a * a).exp() / std::f64::consts::PI.sqrt() / (a + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_matches_known_values() {
        for (x, want) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (3.0, 0.999_977_909_503_001_4),
            (-2.0, -0.995_322_265_018_952_7),
        ] {
            assert!((erf(x) - want).abs() < 1e-15, "erf({x}) = {}", erf(x));
        }
    }

    #[test]
    fn fast_and_plain_products_agree() {
        let (a, b) = ([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0f64, -1.0, 0.5, 2.0, 3.0, 4.0]);
        let mut c = [1.0f64; 4];
        f64::gemm(2, 3, 2, &a, &b, &mut c);
        assert_eq!(c, [1.0 + 1.0 + 1.0 + 9.0, 1.0 - 1.0 + 4.0 + 12.0, 1.0 + 4.0 + 2.5 + 18.0, 1.0 - 4.0 + 10.0 + 24.0]);
    }
}
