//! Numbers with a bound on their rounding error.
//!
//! A first-order running error analysis (Higham, Accuracy and Stability of Numerical Algorithms,
//! section 3.3): every number carries a bound on the distance of a floating-point computation from
//! it, in units of roundoff. Sums count the magnitudes of their parts, so the bound holds in any
//! order.

use std::cell::Cell;
use std::cmp::Ordering;

use regraft_ir::scalar::{Function, Scalar, Unsupported};
use regraft_ir::{Class, Const, DType, EvalContext, EvalError, Op, Value};

/// Safety factor of the bound: for higher-order terms, and for other orders of the same operations.
const SLACK: f64 = 4.0;
/// The largest unit of roundoff of all types (that of `bf16`), to decide what rounding cannot flip.
const COARSEST: f64 = 1.0 / 256.0;
/// Integer powers up to this are products.
const LARGEST_POWER: f64 = 8.0;
/// Error of a library function, in units of roundoff.
const LIBRARY: f64 = 2.0;

thread_local! {
    /// Significant bits of the result type.
    static BITS: Cell<u32> = const { Cell::new(24) };
}

/// Runs `work` with results rounded to `dtype`, in this thread.
pub(crate) fn rounding_to<T>(dtype: DType, work: impl FnOnce() -> T) -> T {
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        // Double precision is not relied on: other libraries compute in single precision instead.
        _ => 24,
    };
    let before = BITS.replace(bits);
    let result = work();
    BITS.set(before);
    result
}

/// True if the result type represents this number, apart from its range.
fn is_held(value: f64) -> bool {
    let low = (1u64 << (53 - BITS.get())) - 1;
    value.to_bits() & low == 0
}

/// The smallest normal number of the result type.
fn smallest() -> f64 {
    if BITS.get() == 11 { f64::from_bits(0x3f10 << 48) } else { f64::from(f32::MIN_POSITIVE) }
}

/// A number and its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounded {
    /// The number, in double precision.
    value: f64,
    /// How far a single-precision result can be from it, divided by the unit of roundoff; 0 if no
    /// step rounds.
    spread: f64,
}

impl Rounded {
    /// A result: `inherited` error from its operands, and `own` error if the operation rounds. What
    /// underflows its type may become 0.
    fn new(value: f64, inherited: f64, own: f64, exact: bool) -> Rounded {
        let (exact, smallest) = (exact && is_held(value), smallest());
        let flushed = if value != 0.0 && value.abs() < smallest { smallest / COARSEST } else { 0.0 };
        Rounded { value, spread: inherited + flushed + if exact { 0.0 } else { own } }
    }

    /// A function with slope `slope` here.
    fn function(&self, value: f64, slope: f64) -> Rounded {
        let inherited = if self.spread == 0.0 { 0.0 } else { slope.abs() * self.spread };
        Rounded::new(value, inherited, library(value), false)
    }

    /// A step function whose nearest step is `distance` away.
    fn step(&self, value: f64, distance: f64) -> Rounded {
        let safe = self.spread == 0.0 || distance > SLACK * COARSEST * self.spread;
        Rounded { value, spread: if safe { 0.0 } else { f64::INFINITY } }
    }
}

/// `a * b`, where an exact 0 times any bound is 0.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// How far a library function's result can be from the true value.
fn library(value: f64) -> f64 {
    LIBRARY * value.abs()
}

/// True if `sum` is `a + b` without rounding (Knuth's two-sum).
fn sum_is_exact(a: f64, b: f64, sum: f64) -> bool {
    let part = sum - a;
    (a - (sum - part)) + (b - part) == 0.0
}

impl Scalar for Rounded {
    fn from_f64(value: f64) -> Rounded {
        Rounded { value, spread: 0.0 }
    }

    #[inline(never)]
    fn eval(op: &Op, inputs: &[Value<Rounded>], context: &EvalContext<'_>) -> Result<Vec<Value<Rounded>>, EvalError> {
        op.meaning(inputs, context)
    }

    fn to_f64(&self) -> Result<f64, Unsupported> {
        if self.spread == 0.0 { Ok(self.value) } else { Err(Unsupported("single value for a rounded number")) }
    }

    fn add(&self, other: &Rounded) -> Rounded {
        let (a, b) = (self.value, other.value);
        Rounded::new(a + b, self.spread + other.spread, a.abs() + b.abs(), sum_is_exact(a, b, a + b))
    }

    fn sub(&self, other: &Rounded) -> Rounded {
        self.add(&Rounded { value: -other.value, spread: other.spread })
    }

    fn mul(&self, other: &Rounded) -> Rounded {
        let (a, b) = (self.value, other.value);
        let product = a * b;
        let inherited = times(a.abs(), other.spread) + times(b.abs(), self.spread);
        let exact = a.mul_add(b, -product) == 0.0 && (product != 0.0 || a == 0.0 || b == 0.0);
        Rounded::new(product, inherited, product.abs(), exact)
    }

    fn div(&self, other: &Rounded) -> Result<Rounded, Unsupported> {
        let (a, b) = (self.value, other.value);
        let ratio = a / b;
        let inherited = times(1.0 / b.abs(), self.spread) + times((ratio / b).abs(), other.spread);
        let exact = ratio.mul_add(b, -a) == 0.0 && (ratio != 0.0 || a == 0.0);
        Ok(Rounded::new(ratio, inherited, ratio.abs(), exact))
    }

    fn pow(&self, other: &Rounded) -> Result<Rounded, Unsupported> {
        let (a, b) = (self.value, other.value);
        let power = a.powf(b);
        if other.spread == 0.0 && b.fract() == 0.0 && (2.0..=LARGEST_POWER).contains(&b) {
            return Ok((1..b as usize).fold(*self, |product, _| product.mul(self)));
        }
        if other.spread == 0.0 && b == 0.5 {
            return self.apply(Function::Sqrt);
        }
        let by_base = if self.spread == 0.0 { 0.0 } else { (b * a.powf(b - 1.0)).abs() * self.spread };
        let by_exponent = if other.spread == 0.0 { 0.0 } else { (power * a.abs().ln()).abs() * other.spread };
        let own = if a == 0.0 { 0.0 } else { library(power).max(f64::MIN_POSITIVE) };
        Ok(Rounded::new(power, by_base + by_exponent, own, b == 0.0 || b == 1.0))
    }

    fn apply(&self, f: Function) -> Result<Rounded, Unsupported> {
        let x = self.value;
        let y = Scalar::apply(&x, f)?;
        if x == 0.0 && self.spread == 0.0 && y == 1.0 {
            return Ok(Rounded::from_f64(1.0));
        }
        let slope = match f {
            Function::Abs => return Ok(Rounded { value: y, spread: self.spread }),
            Function::Floor | Function::Ceil => return Ok(self.step(y, (x - x.round()).abs())),
            Function::Round => return Ok(self.step(y, 0.5 - (x - x.round()).abs())),
            Function::Sign => return Ok(self.step(y, x.abs())),
            Function::Sqrt => {
                let inherited = if self.spread == 0.0 { 0.0 } else { self.spread / (2.0 * y) };
                return Ok(Rounded::new(y, inherited, y, y.mul_add(y, -x) == 0.0));
            }
            // A value that underflows its type is not 0.
            Function::Exp => return Ok(Rounded { spread: self.function(y, y).spread.max(f64::MIN_POSITIVE), value: y }),
            Function::Log => 1.0 / x,
            Function::Erf => std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp(),
            Function::Sin => x.cos(),
            Function::Cos => x.sin(),
            Function::Tan => 1.0 + y * y,
            Function::Asin | Function::Acos => 1.0 / (1.0 - x * x).sqrt(),
            Function::Atan => 1.0 / (1.0 + x * x),
            Function::Sinh => x.cosh(),
            Function::Cosh => x.sinh(),
            Function::Tanh => 1.0 - y * y,
            Function::Asinh => 1.0 / (1.0 + x * x).sqrt(),
            Function::Acosh => 1.0 / (x * x - 1.0).sqrt(),
            Function::Atanh => 1.0 / (1.0 - x * x),
        };
        Ok(self.function(y, slope))
    }

    fn compare(&self, other: &Rounded) -> Result<Option<Ordering>, Unsupported> {
        let spread = self.spread + other.spread;
        if spread != 0.0 && (self.value - other.value).abs() <= SLACK * COARSEST * spread {
            return Err(Unsupported("order of two numbers that rounding may have swapped"));
        }
        Ok(self.value.partial_cmp(&other.value))
    }

    fn neg(&self) -> Rounded {
        Rounded { value: -self.value, spread: self.spread }
    }
}

/// The unit of roundoff of a real type.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON / 2.0,
        DType::F32 => f64::from(f32::EPSILON) / 2.0,
        DType::F16 => 1.0 / 2048.0,
        _ => COARSEST,
    }
}

/// The value as a constant, if no step rounded and the type represents all elements.
pub(crate) fn exact(value: &Value<Rounded>, dtype: DType) -> Option<Const> {
    let constant = value.to_const(dtype)?;
    if let Value::Real(tensor) = value {
        let held = constant.to_f64()?;
        let same = |(x, held): (&Rounded, &f64)| x.value.to_bits() == held.to_bits() || (x.value.is_nan() && held.is_nan());
        tensor.data.iter().zip(&held).all(same).then_some(())?;
    }
    Some(constant)
}

/// How near two constants are to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nearness {
    /// The same numbers, and the steps to them do not round, or their rounding makes no difference.
    Same,
    /// Within this, relative to the largest magnitude, and explained by rounding.
    Within(f64),
}

/// How near the elements of two values are, in order, if rounding to `dtype` in the steps leading
/// to them explains the difference.
pub(crate) fn nearness(x: &Value<Rounded>, y: &Value<Rounded>, dtype: DType) -> Option<Nearness> {
    let (x, y) = match (x, y) {
        (Value::Real(x), Value::Real(y)) if dtype.class() == Class::Real && x.data.len() == y.data.len() => (x, y),
        (Value::Int(x), Value::Int(y)) => return (x.data == y.data).then_some(Nearness::Same),
        (Value::Bool(x), Value::Bool(y)) => return (x.data == y.data).then_some(Nearness::Same),
        _ => return None,
    };
    let is_same = |(x, y): (&Rounded, &Rounded)| x.value.to_bits() == y.value.to_bits() && x.spread == 0.0 && y.spread == 0.0;
    if x.data.iter().zip(&y.data).all(is_same) {
        return Some(Nearness::Same);
    }
    let largest = x.data.iter().map(|v| v.value.abs()).filter(|v| v.is_finite()).fold(f64::from(f32::MIN_POSITIVE), f64::max);
    let mut worst: f64 = 0.0;
    for (x, y) in x.data.iter().zip(&y.data) {
        let spread = x.spread + y.spread;
        // -0 is not 0: its reciprocal differs.
        if spread == 0.0 && x.value == y.value && x.value.to_bits() != y.value.to_bits() {
            return None;
        }
        // A step that rounding may have flipped is not settled by agreeing here.
        let jumped = spread.is_infinite() && x.value.is_finite();
        if (x.value == y.value && !jumped) || (x.value.is_nan() && y.value.is_nan()) {
            continue;
        }
        let off = (x.value - y.value).abs();
        // The last term covers numbers below the smallest normal one.
        let bound = SLACK * (unit(dtype) * (spread + x.value.abs()) + f64::from(f32::from_bits(1)));
        // Where digits cancel, rounding explains almost anything: a loss of more than half of all
        // digits is not accepted.
        let bound = bound.min(unit(dtype).sqrt() * largest);
        if spread == 0.0 || !spread.is_finite() || off.is_nan() || off > bound {
            return None;
        }
        worst = worst.max(off / largest);
    }
    Some(Nearness::Within(worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_steps_have_no_bound_and_others_do() {
        let n = Rounded::from_f64;
        let half = rounding_to(DType::F16, || n(1.0).add(&n(1.0 / 4096.0)));
        assert!(half.spread > 0.0, "half precision does not hold the sum");
        assert_eq!(n(0.5).add(&n(0.25)).spread, 0.0);
        assert_eq!(n(3.0).mul(&n(0.5)).spread, 0.0);
        assert_eq!(n(9.0).apply(Function::Sqrt).map(|v| v.spread), Ok(0.0));
        assert!(n(1.0).div(&n(3.0)).is_ok_and(|v| v.spread > 0.0));
        assert!(n(16_777_216.0).add(&n(1.0)).spread > 0.0, "single precision does not hold the sum");
        assert!(n(2.0).apply(Function::Exp).is_ok_and(|v| v.spread >= v.value));
        assert!(n(-1000.0).apply(Function::Exp).is_ok_and(|v| v.value == 0.0 && v.spread > 0.0), "too small is not 0");
        assert_eq!(n(0.0).apply(Function::Exp), Ok(n(1.0)));
        assert_eq!(n(3.0).pow(&n(3.0)), Ok(n(27.0)));
        assert!(n(0.1).pow(&n(3.0)).is_ok_and(|v| v.spread > 0.0));
        assert!(n(0.5).pow(&n(5000.0)).is_ok_and(|v| v.value == 0.0 && v.spread > 0.0));
    }

    #[test]
    fn bounds_cover_single_precision() {
        // The sum of tenths, in both precisions and in both orders.
        let parts: Vec<f32> = (1..200).map(|i| (i as f32 * 0.1).sin() / 3.0).collect();
        let sum = parts.iter().map(|p| Rounded::from_f64(f64::from(*p))).reduce(|a, b| a.add(&b)).expect("not empty");
        for single in [parts.iter().sum::<f32>(), parts.iter().rev().sum::<f32>()] {
            assert!((f64::from(single) - sum.value).abs() <= unit(DType::F32) * sum.spread);
        }
    }

    #[test]
    fn a_rounded_order_is_refused_only_where_it_is_close() {
        let third = Rounded::from_f64(1.0).div(&Rounded::from_f64(3.0)).expect("a ratio");
        assert!(third.compare(&Rounded::from_f64(0.333_333)).is_err());
        assert_eq!(third.compare(&Rounded::from_f64(2.0)), Ok(Some(Ordering::Less)));
        assert_eq!(third.apply(Function::Floor).map(|v| v.spread), Ok(0.0));
        assert!(third.mul(&Rounded::from_f64(3.0)).apply(Function::Floor).is_ok_and(|v| v.spread.is_infinite()));
    }
}
