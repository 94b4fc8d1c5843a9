//! The distribution of differences: it says more than their maximum.

use serde::{Deserialize, Serialize};

/// Exponents of ten that separate the bins: equal, up to 1e-9, up to 1e-8, ..., up to 1, more.
const FIRST: i32 = -9;
const BINS: usize = 12;

/// Counts of values by their difference, relative to the largest magnitude of their output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Equal values; those that differ by up to 1e-9, 1e-8, ..., 1; those that differ by more.
    pub counts: [u64; BINS],
}

impl Histogram {
    /// Counts one value.
    pub fn add(&mut self, relative: f64) {
        let bin = if relative == 0.0 {
            0
        } else {
            // NaN counts as a larger difference.
            (FIRST..=0).position(|exponent| relative <= 10f64.powi(exponent)).map_or(BINS - 1, |at| at + 1)
        };
        self.counts[bin] += 1;
    }

    /// Adds another distribution.
    pub fn join(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, more)| *mine += more);
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// `72 % equal, 27 % up to 1e-7, 0.9 % up to 1e-6`.
impl std::fmt::Display for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let total = self.total().max(1) as f64;
        let mut first = true;
        for (bin, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let share = 100.0 * *count as f64 / total;
            let comma = if first { "" } else { ", " };
            first = false;
            match share {
                s if s < 0.01 => write!(f, "{comma}{count} values ")?,
                s if s < 1.0 => write!(f, "{comma}{s:.2} % ")?,
                s => write!(f, "{comma}{s:.0} % ")?,
            }
            match bin {
                0 => f.write_str("equal")?,
                b if b == BINS - 1 => f.write_str("more")?,
                b => write!(f, "up to 1e{}", FIRST + b as i32 - 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_decades() {
        let mut histogram = Histogram::default();
        for (relative, bin) in [(0.0, 0), (1e-12, 1), (1e-9, 1), (5e-9, 2), (1e-4, 6), (0.5, 10), (1.0, 10), (3.0, 11), (f64::NAN, 11)] {
            let before = histogram.counts[bin];
            histogram.add(relative);
            assert_eq!(histogram.counts[bin], before + 1, "{relative}");
        }
        assert_eq!(histogram.total(), 9);
    }

    #[test]
    fn shown_as_shares() {
        let mut histogram = Histogram::default();
        (0..3).for_each(|_| histogram.add(0.0));
        histogram.add(2e-7);
        assert_eq!(histogram.to_string(), "75 % equal, 25 % up to 1e-6");
        (0..99_996).for_each(|_| histogram.add(0.0));
        assert_eq!(histogram.to_string(), "100 % equal, 1 values up to 1e-6");
        assert_eq!(Histogram::default().to_string(), "");
    }
}
