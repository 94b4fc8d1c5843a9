//! Robust statistics of timings. Deterministic: the same samples and seed give the same result.

use regraft_ir::SplitMix64;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2000;
/// Fewest pairs for a meaningful interval: below, it spans all pairs and is never "beyond noise".
const MIN_PAIRS: usize = 6;

/// The `q`-quantile, 0 ≤ q ≤ 1, with linear interpolation. `None` without samples.
pub fn quantile(samples: &[u64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().map(|s| *s as f64).collect();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

/// The median, or `None` without samples.
pub fn median(samples: &[u64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The `q`-quantile of samples that were rounded down to multiples of `width`: true values are
/// assumed evenly spread within a bin. Without this, a 1.5 µs kernel timed in whole microseconds
/// has a median of 1 or 2 µs.
pub fn binned_quantile(samples: &[u64], width: u64, q: f64) -> Option<f64> {
    if samples.is_empty() || width == 0 {
        return quantile(samples, q);
    }
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    let rank = q.clamp(0.0, 1.0) * n as f64;
    let index = (rank as usize).min(n - 1);
    let bin = sorted[index];
    let before = sorted.partition_point(|s| *s < bin);
    let inside = sorted.partition_point(|s| *s <= bin) - before;
    Some(bin as f64 + width as f64 * ((rank - before as f64) / inside as f64).clamp(0.0, 1.0))
}

/// How many times faster one model is than another, from paired runs: baseline time / candidate
/// time, so above 1 the candidate is faster.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ratio {
    /// Median of the paired ratios; over several sittings, the geometric mean of theirs.
    pub median: f64,
    /// Low end of its interval, 95 % unless said otherwise.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Number of pairs.
    pub n: usize,
}

impl Ratio {
    /// Whether the interval excludes 1 and rests on enough pairs.
    pub fn is_beyond_noise(&self) -> bool {
        self.is_faster() || self.is_slower()
    }

    /// Whether the candidate is faster beyond noise.
    pub fn is_faster(&self) -> bool {
        self.n >= MIN_PAIRS && self.low > 1.0
    }

    /// Whether the candidate is slower beyond noise.
    pub fn is_slower(&self) -> bool {
        self.n >= MIN_PAIRS && self.high < 1.0
    }
}

/// The ratio baseline / candidate of paired samples of one sitting, in the same unit: sample `i` of
/// both comes from the same round. Surplus samples of the longer side are ignored. `None` without a
/// pair of positive samples. How far another sitting may differ is not in the interval; see
/// [`Sittings`](crate::Sittings).
pub fn paired_ratio(baseline: &[u64], candidate: &[u64], seed: u64) -> Option<Ratio> {
    let ratios = paired_ratios(baseline, candidate);
    let n = ratios.len();
    let median = quantile_sorted(&ratios, 0.5)?;
    if n < MIN_PAIRS {
        return Some(Ratio { median, low: ratios[0], high: ratios[n - 1], n });
    }
    let mut medians: Vec<f64> = resampled_medians(&ratios, RESAMPLES, &mut SplitMix64(seed)).collect();
    medians.sort_by(f64::total_cmp);
    let low = quantile_sorted(&medians, 0.025)?;
    let high = quantile_sorted(&medians, 0.975)?;
    Some(Ratio { median, low, high, n })
}

/// The ratios of pairs of positive samples, ascending.
pub(crate) fn paired_ratios(baseline: &[u64], candidate: &[u64]) -> Vec<f64> {
    let pairs = baseline.iter().zip(candidate).filter(|(a, b)| **a > 0 && **b > 0);
    let mut ratios: Vec<f64> = pairs.map(|(a, b)| *a as f64 / *b as f64).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Medians of bootstrap resamples of ascending values, of which there is at least one.
pub(crate) fn resampled_medians<'a>(
    sorted: &'a [f64],
    resamples: usize,
    random: &'a mut SplitMix64,
) -> impl Iterator<Item = f64> + use<'a> {
    let mut draw = vec![0usize; sorted.len()];
    (0..resamples).map(move |_| {
        draw.iter_mut().for_each(|i| *i = random.below(sorted.len()));
        median_of_drawn(sorted, &mut draw)
    })
}

/// Median of `sorted[i]` for the drawn indices: since `sorted` is sorted, ordering the indices
/// orders the values.
fn median_of_drawn(sorted: &[f64], draw: &mut [usize]) -> f64 {
    let half = draw.len() / 2;
    let even = draw.len().is_multiple_of(2);
    let (below, middle, _) = draw.select_nth_unstable(half);
    let upper = sorted[*middle];
    match below.iter().max() {
        Some(lower) if even => (sorted[*lower] + upper) / 2.0,
        _ => upper,
    }
}

fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3, 1, 2]), Some(2.0));
        assert_eq!(median(&[4, 1, 2, 3]), Some(2.5));
        assert_eq!(quantile(&[0, 10], 0.25), Some(2.5));
        assert_eq!(quantile(&[5], 0.9), Some(5.0));
    }

    #[test]
    fn binned_quantile_sees_inside_the_bin() {
        // 1.5 µs truncated to whole microseconds: all samples are 1 µs.
        assert_eq!(binned_quantile(&[1000; 8], 1000, 0.5), Some(1500.0));
        // Half 1 µs, half 2 µs: the middle of [1, 3) µs.
        assert_eq!(binned_quantile(&[1000, 2000, 1000, 2000], 1000, 0.5), Some(2000.0));
        assert_eq!(binned_quantile(&[], 1000, 0.5), None);
    }

    #[test]
    fn clear_gain_is_beyond_noise_and_equal_times_are_not() {
        let mut random = SplitMix64(3);
        let mut noisy = |base: u64| -> Vec<u64> { (0..30).map(|_| base + random.below(base as usize / 20) as u64).collect() };
        let (slow, fast, same) = (noisy(1_200_000), noisy(1_000_000), noisy(1_200_000));
        let gain = paired_ratio(&slow, &fast, 1).unwrap();
        assert!(gain.is_faster() && gain.low < gain.median && gain.median < gain.high, "{gain:?}");
        assert!((1.15..1.25).contains(&gain.median));
        assert!(paired_ratio(&fast, &slow, 1).unwrap().is_slower());
        assert!(!paired_ratio(&slow, &same, 1).unwrap().is_beyond_noise());
        assert_eq!(paired_ratio(&slow, &fast, 1), Some(gain));
    }

    #[test]
    fn few_pairs_decide_nothing() {
        let ratio = paired_ratio(&[200, 200, 200], &[100, 100, 100], 1).unwrap();
        assert_eq!((ratio.median, ratio.n), (2.0, 3));
        assert!(!ratio.is_beyond_noise());
        assert_eq!(paired_ratio(&[0, 5], &[1], 1), None);
    }
}
