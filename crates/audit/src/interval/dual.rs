//! Expressions over boxes: the value and its slopes, as intervals.

use super::arithmetic::{Interval, LIBRARY};

/// Maximum number of variables of an identity.
pub(super) const VARIABLES: usize = 2;

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Number(f64),
    Variable(usize),
    Sum(Box<[Expr; 2]>),
    Difference(Box<[Expr; 2]>),
    Product(Box<[Expr; 2]>),
    Quotient(Box<[Expr; 2]>),
    /// A power of a positive base.
    Power(Box<[Expr; 2]>),
    Exp(Box<Expr>),
    Log(Box<Expr>),
    Sqrt(Box<Expr>),
    Tanh(Box<Expr>),
    Erf(Box<Expr>),
    Abs(Box<Expr>),
}

/// All values of an expression over a box, and all of its slopes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dual {
    pub(super) value: Interval,
    pub(super) slopes: [Interval; VARIABLES],
}

impl Dual {
    fn constant(value: Interval) -> Dual {
        Dual { value, slopes: [Interval::point(0.0); VARIABLES] }
    }

    /// A function of this with its slope.
    fn through(self, value: Interval, slope: Interval) -> Dual {
        Dual { value, slopes: self.slopes.map(|s| s.times(slope)) }
    }

    fn zip(self, other: Dual, f: impl Fn(Interval, Interval) -> Interval) -> Dual {
        let mut slopes = self.slopes;
        slopes.iter_mut().zip(other.slopes).for_each(|(a, b)| *a = f(*a, b));
        Dual { value: f(self.value, other.value), slopes }
    }

    pub(super) fn minus(self, other: Dual) -> Dual {
        self.zip(other, Interval::minus)
    }

    fn times(self, other: Dual) -> Dual {
        let mut slopes = self.slopes;
        for (a, b) in slopes.iter_mut().zip(other.slopes) {
            *a = a.times(other.value).plus(b.times(self.value));
        }
        Dual { value: self.value.times(other.value), slopes }
    }

    fn inverse(self) -> Dual {
        let value = self.value.inverse();
        self.through(value, Interval::point(-1.0).times(value.times(value)))
    }

    fn exp(self) -> Dual {
        let value = self.value.exp();
        self.through(value, value)
    }

    fn log(self) -> Dual {
        self.through(self.value.log(), Interval { low: self.value.low.max(0.0), ..self.value }.inverse())
    }
}

impl Expr {
    /// Evaluates over a box, with each variable given as a value with slopes.
    pub(super) fn over(&self, variables: &[Dual]) -> Dual {
        let pair = |parts: &[Expr; 2]| (parts[0].over(variables), parts[1].over(variables));
        let number = |v: f64| Interval::point(v);
        match self {
            Expr::Number(value) => Dual::constant(number(*value)),
            Expr::Variable(at) => variables[*at],
            Expr::Sum(parts) => {
                let (a, b) = pair(parts);
                a.zip(b, Interval::plus)
            }
            Expr::Difference(parts) => {
                let (a, b) = pair(parts);
                a.minus(b)
            }
            Expr::Product(parts) => {
                let (a, b) = pair(parts);
                a.times(b)
            }
            Expr::Quotient(parts) => {
                let (a, b) = pair(parts);
                a.times(b.inverse())
            }
            Expr::Power(parts) => power(pair(parts)),
            Expr::Exp(x) => x.over(variables).exp(),
            Expr::Log(x) => x.over(variables).log(),
            Expr::Sqrt(x) => {
                let x = x.over(variables);
                let value = x.value.sqrt();
                x.through(value, number(2.0).times(value).inverse())
            }
            Expr::Tanh(x) => {
                let x = x.over(variables);
                let value = x.value.tanh();
                x.through(value, number(1.0).minus(value.times(value)))
            }
            Expr::Erf(x) => {
                let x = x.over(variables);
                let bell = number(0.0).minus(x.value.times(x.value)).exp();
                x.through(x.value.erf(), bell.times(Interval::around(std::f64::consts::FRAC_2_SQRT_PI)))
            }
            Expr::Abs(x) => {
                let x = x.over(variables);
                let slope = match (x.value.low >= 0.0, x.value.high <= 0.0) {
                    (true, _) => number(1.0),
                    (_, true) => number(-1.0),
                    _ => Interval { low: -1.0, high: 1.0 },
                };
                x.through(x.value.abs(), slope)
            }
        }
    }
}

/// A power of a nonnegative base: the exponential of a product, whose extremes over a box are at
/// its corners.
fn power((base, exponent): (Dual, Dual)) -> Dual {
    let (b, e) = (Interval { low: base.value.low.max(0.0), ..base.value }, exponent.value);
    let corners = [b.low.powf(e.low), b.low.powf(e.high), b.high.powf(e.low), b.high.powf(e.high)];
    let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
    let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let wide = Interval::widened(low, high, LIBRARY);
    let value = Interval { low: wide.low.max(0.0), ..wide };
    let (by_base, by_exponent) = (value.times(e).times(b.inverse()), value.times(b.log()));
    let mut slopes = base.slopes;
    for (slope, other) in slopes.iter_mut().zip(exponent.slopes) {
        *slope = slope.times(by_base).plus(other.times(by_exponent));
    }
    Dual { value, slopes }
}
