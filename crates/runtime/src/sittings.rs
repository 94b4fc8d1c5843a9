//! Ratios of times over several sittings: what differs from one pair of sessions to the next does
//! not average out within them.
//!
//! Two sessions of one model differ for as long as they live, mostly by where their memory happens
//! to lie. So a sitting is one observation, however many pairs it has, and an interval rests on the
//! spread between sittings. While there are few of them, that spread is hardly known: it is then
//! taken together with a presumed one, and the interval is that of Student's distribution with the
//! degrees of freedom of both (a moderated t-statistic; Smyth 2004). What is presumed grows with what
//! other models show that were timed on the same machine: a busy one makes sittings differ more.

use regraft_ir::SplitMix64;

use crate::stats::{Ratio, paired_ratios, resampled_medians};

/// Presumed standard deviation of the ratio of a model to itself between sittings.
const PRESUMED: f64 = 0.01;
/// Sittings that the presumption counts for.
const WEIGHT: f64 = 4.0;
/// Bootstrap resamples of the pairs of one sitting.
const RESAMPLES: usize = 200;
/// Fewest pairs that tell how much the median of a sitting may be off.
const FEWEST: usize = 3;

/// How sure an interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// 95 %: for what is reported, and for a decision that was due anyway.
    Usual,
    /// 99 %: for a decision that is looked for again and again, and made when it first appears.
    Repeated,
}

impl Confidence {
    /// The quantile of the normal distribution that bounds such an interval on either side.
    fn normal(self) -> f64 {
        match self {
            Confidence::Usual => 1.959_964,
            Confidence::Repeated => 2.575_829,
        }
    }
}

/// How much sittings differ beyond what differs within them: what is presumed, and what sittings of
/// any models have shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    /// Sum of squares of the differences from the means.
    squares: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

impl Spread {
    /// This, and what the sittings of one more model show.
    pub fn with(self, sittings: &Sittings) -> Spread {
        let more = (sittings.len() as f64 - 1.0).max(0.0);
        let beyond = (variance(&sittings.logs()) - sittings.within()).max(0.0);
        Spread { squares: self.squares + more * beyond, freedom: self.freedom + more }
    }

    /// This, and one more squared difference.
    pub fn and(self, square: f64) -> Spread {
        Spread { squares: self.squares + square, freedom: self.freedom + 1.0 }
    }

    /// Variance between sittings, of the logarithm of a ratio. Where it seems to be less than usual,
    /// that may be luck.
    fn variance(self) -> f64 {
        let usual = PRESUMED.powi(2);
        ((WEIGHT * usual + self.squares) / (WEIGHT + self.freedom)).max(usual)
    }
}

/// Paired ratios of one model, sitting by sitting.
#[derive(Debug, Clone, Default)]
pub struct Sittings {
    sittings: Vec<Sitting>,
}

/// The logarithm of the median ratio in one sitting.
#[derive(Debug, Clone, Copy)]
struct Sitting {
    log: f64,
    /// Its variance, as far as it comes from the pairs of this sitting.
    variance: f64,
    pairs: usize,
}

impl Sittings {
    /// Adds a sitting: sample `i` of both comes from the same round. One without pairs of positive
    /// samples says nothing.
    pub fn add(&mut self, baseline: &[u64], candidate: &[u64]) {
        let ratios = paired_ratios(baseline, candidate);
        let pairs = ratios.len();
        if pairs == 0 {
            return;
        }
        // Fixed: equal samples give equal intervals.
        let mut random = SplitMix64(pairs as u64);
        let medians = resampled_medians(&ratios, RESAMPLES, &mut random).map(f64::ln).collect::<Vec<_>>();
        let variance = if pairs < FEWEST { (ratios[pairs - 1] / ratios[0]).ln().powi(2) } else { variance(&medians) };
        let log = (ratios[(pairs - 1) / 2].ln() + ratios[pairs / 2].ln()) / 2.0;
        self.sittings.push(Sitting { log, variance, pairs });
    }

    /// Adds others of the same two models.
    pub fn extend(&mut self, others: &Sittings) {
        self.sittings.extend_from_slice(&others.sittings);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sittings.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sittings.is_empty()
    }

    /// The geometric mean of the sittings' median ratios, with its interval; `None` without a
    /// sitting.
    pub fn ratio(&self, confidence: Confidence) -> Option<Ratio> {
        self.ratio_given(Spread::default(), confidence)
    }

    /// The same where other models have shown how much sittings differ.
    pub fn ratio_given(&self, spread: Spread, confidence: Confidence) -> Option<Ratio> {
        let n = self.len() as f64;
        let logs = self.logs();
        let center = mean(&logs)?;
        let presumed = spread.variance() + self.within();
        let freedom = WEIGHT + n - 1.0;
        let spread = (WEIGHT * presumed + (n - 1.0) * variance(&logs)) / freedom;
        let half = student(confidence.normal(), freedom) * (spread / n).sqrt();
        let pairs = self.sittings.iter().map(|s| s.pairs).sum();
        Some(Ratio { median: center.exp(), low: (center - half).exp(), high: (center + half).exp(), n: pairs })
    }

    fn logs(&self) -> Vec<f64> {
        self.sittings.iter().map(|sitting| sitting.log).collect()
    }

    /// Mean variance of a sitting's median, as far as it comes from the pairs of the sitting.
    fn within(&self) -> f64 {
        mean(&self.sittings.iter().map(|sitting| sitting.variance).collect::<Vec<_>>()).unwrap_or(0.0)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample variance; 0 for fewer than two values.
fn variance(values: &[f64]) -> f64 {
    let Some(mean) = mean(values).filter(|_| values.len() > 1) else { return 0.0 };
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// The quantile of Student's distribution where the normal distribution has `z`; right to 2 % from
/// 4 degrees of freedom on (Abramowitz and Stegun 26.7.5).
fn student(z: f64, freedom: f64) -> f64 {
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, usual, repeated) in [(4.0, 2.776, 4.604), (10.0, 2.228, 3.169), (30.0, 2.042, 2.750)] {
            assert!((student(Confidence::Usual.normal(), freedom) / usual - 1.0).abs() < 0.02);
            assert!((student(Confidence::Repeated.normal(), freedom) / repeated - 1.0).abs() < 0.02);
        }
    }

    /// A sitting in which the candidate takes `permille` of the baseline's time, without noise.
    fn steady(sittings: &mut Sittings, permille: u64) {
        sittings.add(&[1_000_000; 8], &[permille * 1000; 8]);
    }

    #[test]
    fn many_pairs_of_one_sitting_are_one_observation() {
        let mut one = Sittings::default();
        one.add(&[1_000_000; 500], &[980_000; 500]);
        let alone = one.ratio(Confidence::Usual).unwrap();
        assert!(alone.low < 1.0 && alone.high > 1.04 && alone.n == 500, "{alone:?}");
        let mut many = Sittings::default();
        (0..12).for_each(|_| steady(&mut many, 980));
        let sure = many.ratio(Confidence::Usual).unwrap();
        assert!(sure.low > 1.015 && sure.high < 1.025, "{sure:?}");
        let surer = many.ratio(Confidence::Repeated).unwrap();
        assert!(surer.low < sure.low && surer.high > sure.high && surer.median == sure.median);
    }

    #[test]
    fn sittings_that_disagree_widen_the_interval() {
        let (mut agreeing, mut torn) = (Sittings::default(), Sittings::default());
        for at in 0..6 {
            steady(&mut agreeing, 950);
            steady(&mut torn, if at % 2 == 0 { 880 } else { 1040 });
        }
        let [agreeing, torn] = [agreeing, torn].map(|sittings| sittings.ratio(Confidence::Usual).unwrap());
        assert!(agreeing.is_faster() && !torn.is_beyond_noise(), "{agreeing:?} {torn:?}");
    }

    #[test]
    fn what_other_models_show_widens_the_interval_of_a_single_sitting() {
        let (mut torn, mut calm, mut one) = (Sittings::default(), Sittings::default(), Sittings::default());
        for at in 0..6 {
            steady(&mut torn, if at % 2 == 0 { 880 } else { 1040 });
            steady(&mut calm, 950);
        }
        steady(&mut one, 930);
        let given = |spread| one.ratio_given(spread, Confidence::Usual).unwrap();
        let (usual, busy) = (given(Spread::default()), given(Spread::default().with(&calm).with(&torn)));
        assert!(usual.is_faster() && !busy.is_faster(), "{usual:?} {busy:?}");
        // A quiet machine makes nobody surer than usual, and one sitting shows nothing.
        let quiet = given(Spread::default().with(&calm).with(&one));
        assert_eq!((quiet.low, quiet.high), (usual.low, usual.high));
    }

    #[test]
    fn a_few_spikes_within_a_sitting_do_not_count() {
        let mut sittings = Sittings::default();
        for _ in 0..8 {
            sittings.add(&[1000, 1010, 990, 5000, 1005, 995, 1000], &[1000, 1005, 995, 1000, 1010, 990, 9000]);
        }
        let ratio = sittings.ratio(Confidence::Usual).unwrap();
        assert!((0.99..1.01).contains(&ratio.median) && !ratio.is_beyond_noise(), "{ratio:?}");
    }

    #[test]
    fn nothing_is_known_without_pairs() {
        let mut sittings = Sittings::default();
        sittings.add(&[0, 5], &[1]);
        assert!(sittings.is_empty() && sittings.ratio(Confidence::Usual).is_none());
    }
}
