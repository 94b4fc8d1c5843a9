//! Intervals that contain every value despite rounding: each result is widened outward.

use regraft_ir::scalar::erf;

/// All numbers between two bounds, which may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Error allowed to a mathematical library, in units in the last place: the usual ones stay below
/// two.
pub(super) const LIBRARY: u32 = 4;
/// Error bound of the error function.
const ERF: f64 = 1e-13;

impl Interval {
    pub(super) const ALL: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    pub(super) fn point(value: f64) -> Interval {
        Interval { low: value, high: value }
    }

    /// A number that is not a double, given by the nearest double.
    pub(super) fn around(value: f64) -> Interval {
        Interval { low: value.next_down(), high: value.next_up() }
    }

    /// Bounds that are exact up to `ulps` steps; no information where one is NaN.
    pub(super) fn widened(low: f64, high: f64, ulps: u32) -> Interval {
        if low.is_nan() || high.is_nan() {
            return Interval::ALL;
        }
        let (mut low, mut high) = (low, high);
        for _ in 0..ulps {
            (low, high) = (low.next_down(), high.next_up());
        }
        Interval { low, high }
    }

    /// Largest magnitude.
    pub(super) fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Smallest magnitude.
    pub(super) fn least(self) -> f64 {
        if self.contains_zero() { 0.0 } else { self.low.abs().min(self.high.abs()) }
    }

    pub(super) fn contains_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    pub(super) fn middle(self) -> f64 {
        self.low + (self.high - self.low) / 2.0
    }

    pub(super) fn width(self) -> f64 {
        self.high - self.low
    }

    /// The intersection; the first interval if rounding leaves nothing.
    pub(super) fn meet(self, other: Interval) -> Interval {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high { Interval { low, high } } else { self }
    }

    pub(super) fn plus(self, other: Interval) -> Interval {
        Interval::widened(self.low + other.low, self.high + other.high, 1)
    }

    pub(super) fn minus(self, other: Interval) -> Interval {
        Interval::widened(self.low - other.high, self.high - other.low, 1)
    }

    pub(super) fn times(self, other: Interval) -> Interval {
        // Zero times an unbounded value is zero.
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let all =
            [product(self.low, other.low), product(self.low, other.high), product(self.high, other.low), product(self.high, other.high)];
        Interval::widened(all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(f64::NEG_INFINITY, f64::max), 1)
    }

    pub(super) fn inverse(self) -> Interval {
        if self.contains_zero() {
            return Interval::ALL;
        }
        Interval::widened(1.0 / self.high, 1.0 / self.low, 1)
    }

    /// An increasing function as a library computes it, within bounds it never leaves.
    fn rising(self, f: impl Fn(f64) -> f64, least: f64, most: f64) -> Interval {
        let wide = Interval::widened(f(self.low), f(self.high), LIBRARY);
        Interval { low: wide.low.max(least), high: wide.high.min(most) }
    }

    pub(super) fn exp(self) -> Interval {
        self.rising(f64::exp, 0.0, f64::INFINITY)
    }

    /// The logarithm of the positive part.
    pub(super) fn log(self) -> Interval {
        if self.high <= 0.0 {
            return Interval::ALL;
        }
        Interval { low: self.low.max(0.0), ..self }.rising(f64::ln, f64::NEG_INFINITY, f64::INFINITY)
    }

    /// The square root of the nonnegative part.
    pub(super) fn sqrt(self) -> Interval {
        if self.high < 0.0 {
            return Interval::ALL;
        }
        Interval { low: self.low.max(0.0), ..self }.rising(f64::sqrt, 0.0, f64::INFINITY)
    }

    pub(super) fn tanh(self) -> Interval {
        self.rising(f64::tanh, -1.0, 1.0)
    }

    pub(super) fn erf(self) -> Interval {
        let (low, high) = (erf(self.low) - ERF, erf(self.high) + ERF);
        Interval { low: low.max(-1.0), high: high.min(1.0) }
    }

    pub(super) fn abs(self) -> Interval {
        Interval { low: self.least(), high: self.magnitude() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_contain_what_they_stand_for() {
        let tenth = Interval::point(0.1);
        let sum = (0..10).fold(Interval::point(0.0), |sum, _| sum.plus(tenth));
        assert!(sum.low < 1.0 && sum.high > 1.0 && sum.width() < 1e-14);
        assert!(Interval { low: -1.0, high: 2.0 }.inverse() == Interval::ALL);
        assert_eq!(Interval { low: -3.0, high: 2.0 }.abs(), Interval { low: 0.0, high: 3.0 });
        let square = Interval { low: -3.0, high: 2.0 }.times(Interval { low: -3.0, high: 2.0 });
        assert!(square.low <= -6.0 && square.high >= 9.0);
        let unbounded = Interval { low: 40.0, high: f64::INFINITY };
        assert!(unbounded.tanh().low > 0.999 && unbounded.tanh().high == 1.0);
        assert!(Interval::point(0.0).times(Interval::ALL).contains_zero());
        assert!(Interval::point(1.0).exp().low < std::f64::consts::E && Interval::point(1.0).exp().high > std::f64::consts::E);
    }
}
