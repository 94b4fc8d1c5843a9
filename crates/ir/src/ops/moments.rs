//! Sums, means and variances, accurate in single precision.

use crate::error::EvalError;
use crate::scalar::{Function, Scalar};

/// Below this many terms a sum is a plain loop over [`LANES`] accumulators.
const LEAF: usize = 256;
const LANES: usize = 8;

/// `sum(f(x))`, pairwise: the rounding error grows with the logarithm of the count.
pub(crate) fn sum<S: Scalar>(items: &[S], f: impl Fn(&S) -> S + Copy) -> S {
    if items.len() > LEAF {
        let (left, right) = items.split_at(items.len() / 2 / LANES * LANES);
        return sum(left, f).add(&sum(right, f));
    }
    let mut lanes: [S; LANES] = std::array::from_fn(|_| S::zero());
    let chunks = items.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = lane.add(&f(x));
        }
    }
    let total = lanes.iter().skip(1).fold(lanes[0].clone(), |a, b| a.add(b));
    rest.iter().fold(total, |a, x| a.add(&f(x)))
}

/// The mean of `items`; an error if there are none.
pub(crate) fn mean<S: Scalar>(items: &[S]) -> Result<S, EvalError> {
    if items.is_empty() {
        return Err(EvalError::value("the mean of no elements"));
    }
    Ok(sum(items, S::clone).div(&S::from_f64(items.len() as f64))?)
}

/// The mean of squares of `items`; an error if there are none.
pub(crate) fn mean_square<S: Scalar>(items: &[S]) -> Result<S, EvalError> {
    if items.is_empty() {
        return Err(EvalError::value("the mean of no elements"));
    }
    Ok(sum(items, |x| x.mul(x)).div(&S::from_f64(items.len() as f64))?)
}

/// Mean and `1 / sqrt(variance + epsilon)` of `items`; the variance is that of the population.
pub(crate) fn mean_and_scale<S: Scalar>(items: &[S], epsilon: f64) -> Result<(S, S), EvalError> {
    let mean = mean(items)?;
    let squares = sum(items, |x| {
        let centred = x.sub(&mean);
        centred.mul(&centred)
    });
    let variance = squares.div(&S::from_f64(items.len() as f64))?;
    Ok((mean, inverse_deviation(&variance, epsilon)?))
}

/// `1 / sqrt(variance + epsilon)`.
pub(crate) fn inverse_deviation<S: Scalar>(variance: &S, epsilon: f64) -> Result<S, EvalError> {
    Ok(S::one().div(&variance.add(&S::from_f64(epsilon)).apply(Function::Sqrt)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_single_precision_sums_stay_accurate() {
        let items: Vec<f32> = (0..1_000_003).map(|i| 0.1 + (i % 7) as f32).collect();
        let exact: f64 = items.iter().map(|x| f64::from(*x)).sum();
        assert!((f64::from(sum(&items, f32::clone)) / exact - 1.0).abs() < 1e-6);
    }

    #[test]
    fn moments_match_their_definition() {
        let (mean, scale) = mean_and_scale(&[1.0f64, 2.0, 3.0, 6.0], 0.5).unwrap();
        assert_eq!(mean, 3.0);
        assert!((scale - 1.0 / (3.5f64 + 0.5).sqrt()).abs() < 1e-15);
        assert!(mean_and_scale::<f64>(&[], 0.5).is_err());
    }
}
