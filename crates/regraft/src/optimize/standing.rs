//! Whether what was measured of a model is enough to take or to refuse it.

use std::time::Duration;

use crate::optimize::binding::geometric_mean;
use crate::report::Speedup;

/// A rewritten model is taken if its whole interval lies above 1 by more than this: a smaller gain
/// is not worth another file.
pub const MARGIN: f64 = 0.005;
/// A model whose whole interval lies below this gain is refused.
const INDIFFERENT: f64 = 0.01;
/// The longest further comparison that is proposed, as a multiple of the one made.
const FURTHER: f64 = 200.0;

/// What a model must be, to be taken instead of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Faster: it was rewritten.
    Faster,
    /// Not slower: it is the input without what is superfluous.
    NotSlower,
}

/// Where a model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what is wanted.
    Taken,
    /// It is not.
    Refused,
    /// It may be either.
    Open,
}

impl Standing {
    /// By its speed-ups at all bindings, with the threads of the run, and at one thread if that is
    /// another setting. It must gain over all bindings and be slower at no setting.
    pub fn of(wanted: Wanted, deciding: &[Speedup], single: &[Speedup]) -> Standing {
        let mean = geometric_mean(deciding);
        let (least, most) = match wanted {
            Wanted::Faster => (1.0 + MARGIN, 1.0 + INDIFFERENT),
            Wanted::NotSlower => (1.0 - INDIFFERENT, 1.0),
        };
        // Of one binding, the mean says all.
        let several = if deciding.len() > 1 { deciding } else { &[] };
        let slower = several.iter().any(is_slower) || single.iter().any(is_slower_alone);
        if mean.pairs == 0 {
            Standing::Open
        } else if mean.high < most || loses(deciding, single) {
            Standing::Refused
        } else if mean.low > least && !slower && single.iter().all(|speedup| speedup.pairs > 0) {
            Standing::Taken
        } else {
            Standing::Open
        }
    }
}

/// Whether a model is slower than the input at any setting by its whole interval.
pub fn loses(deciding: &[Speedup], single: &[Speedup]) -> bool {
    deciding.iter().any(|speedup| speedup.high < 1.0) || single.iter().any(|speedup| speedup.high < 1.0 - MARGIN)
}

/// Whether it is known that a model is not slower than the input at one thread.
pub fn holds(speedup: &Speedup) -> bool {
    speedup.pairs > 0 && speedup.low > 1.0 - INDIFFERENT && !is_slower_alone(speedup)
}

/// Slower than the input at one thread by more than two sessions of the same model differ. It need
/// not gain there, and most models that do not are just as fast: who refuses all that lie below 1
/// beyond noise, and asks more than once, refuses many of these.
pub fn is_slower_alone(speedup: &Speedup) -> bool {
    speedup.median < 1.0 - MARGIN
}

/// Slower than the input beyond noise: by its whole interval, or by more than two sessions of the
/// same model differ.
pub fn is_slower(speedup: &Speedup) -> bool {
    speedup.high < 1.0 || speedup.median < 1.0 - MARGIN
}

/// About how much longer a rewritten model must be compared for its standing to be known, if it is
/// what it seems: intervals shrink with the square root of time.
pub fn further(speedup: &Speedup, took: Duration) -> Duration {
    within((1.0 + MARGIN, 1.0 + INDIFFERENT), speedup, took)
}

/// The same until it is known whether a model is slower.
pub fn further_to_hold(speedup: &Speedup, took: Duration) -> Duration {
    within((1.0 - INDIFFERENT, 1.0), speedup, took)
}

/// About how much longer a model must be compared for its whole interval to lie above `least` or
/// below `most`.
fn within((least, most): (f64, f64), speedup: &Speedup, took: Duration) -> Duration {
    let half = (speedup.high / speedup.low).ln() / 2.0;
    let gap = (speedup.median / least).ln().max((most / speedup.median).ln());
    took.mul_f64(((half / gap).powi(2) - 1.0).clamp(0.1, FURTHER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speedup(low: f64, high: f64) -> Speedup {
        Speedup { median: (low * high).sqrt(), low, high, pairs: 20 }
    }

    #[test]
    fn only_a_whole_interval_decides() {
        let of = |low, high| Standing::of(Wanted::Faster, &[speedup(low, high)], &[]);
        assert_eq!(of(1.006, 1.05), Standing::Taken);
        assert_eq!(of(0.997, 1.017), Standing::Open);
        assert_eq!(of(0.98, 1.009), Standing::Refused);
        assert_eq!(Standing::of(Wanted::NotSlower, &[speedup(0.995, 1.004)], &[]), Standing::Taken);
        assert_eq!(Standing::of(Wanted::NotSlower, &[speedup(0.97, 0.99)], &[]), Standing::Refused);
        assert_eq!(Standing::of(Wanted::Faster, &[Speedup::NONE], &[]), Standing::Open);
    }

    #[test]
    fn a_model_that_is_slower_somewhere_is_not_taken() {
        assert_eq!(Standing::of(Wanted::Faster, &[speedup(1.2, 1.3), speedup(0.95, 0.99)], &[]), Standing::Refused);
        assert_eq!(Standing::of(Wanted::Faster, &[speedup(1.2, 1.3), speedup(0.97, 1.01)], &[]), Standing::Open);
        assert_eq!(Standing::of(Wanted::Faster, &[speedup(1.2, 1.3), speedup(0.99, 1.02)], &[]), Standing::Taken);
    }

    #[test]
    fn at_one_thread_a_model_need_not_gain_but_must_not_lose() {
        let of = |low, high| Standing::of(Wanted::Faster, &[speedup(1.2, 1.3)], &[speedup(low, high)]);
        assert_eq!(of(0.95, 0.99), Standing::Refused);
        assert_eq!(of(0.97, 1.01), Standing::Open);
        assert_eq!((of(0.99, 1.02), of(1.2, 1.3)), (Standing::Taken, Standing::Taken));
        // What was not timed there may be slower.
        assert_eq!(Standing::of(Wanted::Faster, &[speedup(1.2, 1.3)], &[Speedup::NONE]), Standing::Open);
        // A gain there replaces none with the threads of the run.
        assert_eq!(Standing::of(Wanted::Faster, &[speedup(0.98, 1.009)], &[speedup(1.2, 1.3)]), Standing::Refused);
    }

    #[test]
    fn what_is_wide_or_close_takes_longer() {
        let took = Duration::from_secs(10);
        let wide = further(&speedup(0.98, 1.10), took);
        assert!(wide > further(&speedup(1.00, 1.08), took) && wide > took / 2, "{wide:?}");
        assert!(further(&speedup(0.9, 1.12), took) > Duration::from_secs(1000));
    }
}
