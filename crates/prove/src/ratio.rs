//! Simple ratios that doubles stand for.

/// Largest denominator of a ratio that a decimal constant is read as: `0.1` means one tenth, not
/// the double next to it.
const LARGEST_DENOMINATOR: i64 = 1 << 16;

/// Numerator and denominator of the first convergent of the continued fraction of the nonnegative
/// `magnitude` that is `close` enough.
pub(crate) fn simplest(magnitude: f64, close: impl Fn(f64) -> bool) -> Option<(i64, i64)> {
    let (mut before, mut now) = ((0i64, 1i64), (1i64, 0i64));
    let mut rest = magnitude;
    // Denominators grow at least as fast as the Fibonacci numbers.
    for _ in 0..24 {
        let digit = rest.floor();
        if digit >= (1i64 << 50) as f64 {
            return None;
        }
        let next = |b: i64, n: i64| (digit as i64).checked_mul(n)?.checked_add(b);
        let convergent = (next(before.0, now.0)?, next(before.1, now.1)?);
        if convergent.1 > LARGEST_DENOMINATOR || convergent.0 > 1 << 52 {
            return None;
        }
        (before, now) = (now, convergent);
        if close(now.0 as f64 / now.1 as f64) {
            return Some(now);
        }
        rest = 1.0 / (rest - digit);
        if !rest.is_finite() {
            return None;
        }
    }
    None
}
