//! Prices of nodes that were never measured, predicted from those of others that were.
//!
//! What is learned is how much slower than the roofline a node is, from its operator, sizes, attributes and
//! neighbours. No prediction is below the roofline at the best speeds seen, so that no search is led to what
//! cannot be. Searches do not go by it: [`judge()`] tells how far it is from what is measured, and
//! `docs/guide/measuring.md` what came of that.

mod features;
mod forest;
mod judge;
mod subject;

pub use forest::{Estimate, Forest};
pub use judge::{Errors, Judged, judge};
pub use subject::Subject;

use features::Vocabulary;

use crate::roofline::Machine;
use crate::signature::Signature;

/// What takes less than this is as good as nothing, ns: below it, measured times are noise.
pub const NOTHING: f64 = 100.0;
/// Fewest prices to learn from.
const FEWEST: usize = 20;
/// A bound is so many standard deviations from the middle.
const WIDTH: f64 = 1.0;

/// What a node may cost, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// One standard deviation below the middle, but not below the roofline.
    pub low: f64,
    /// The middle.
    pub middle: f64,
    /// One standard deviation above it.
    pub high: f64,
}

/// Predicts prices.
#[derive(Clone, Debug)]
pub struct Predictor {
    vocabulary: Vocabulary,
    forest: Forest,
}

impl Predictor {
    /// Fitted to prices in ns; `None` if there are too few to learn from. The same for the same seed.
    pub fn fit<'a>(prices: impl IntoIterator<Item = (&'a Signature, f64)>, seed: u64) -> Option<Predictor> {
        let sample = |(signature, ns): (&Signature, f64)| {
            let subject = Subject::of(signature)?;
            let value = excess(&subject, ns);
            Some((subject, value))
        };
        let samples: Vec<(Subject, f64)> = prices.into_iter().filter_map(sample).collect();
        if samples.len() < FEWEST {
            return None;
        }
        let vocabulary = Vocabulary::learn(&samples);
        let rows: Vec<Vec<f32>> = samples.iter().map(|(subject, _)| vocabulary.row(subject)).collect();
        let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
        Some(Predictor { forest: Forest::fit(&rows, &values, seed), vocabulary })
    }

    /// The price of a node on a machine with these speeds, which none of it is faster than; `None` if the
    /// signature does not tell enough.
    pub fn predict(&self, signature: &Signature, machine: &Machine) -> Option<Prediction> {
        let subject = Subject::of(signature)?;
        let Estimate { mean, deviation } = self.forest.predict(&self.vocabulary.row(&subject));
        let base = Machine::default().time(&subject.load).max(NOTHING);
        let at = |width: f64| base * (mean + width * deviation).exp();
        let least = if subject.is_fused() { 0.0 } else { machine.time(&subject.load) };
        Some(Prediction { low: at(-WIDTH).max(least), middle: at(0.0).max(least), high: at(WIDTH).max(least) })
    }
}

/// How much slower a node was than the roofline of a usual machine, as a logarithm.
fn excess(subject: &Subject, ns: f64) -> f64 {
    (ns.max(NOTHING) / Machine::default().time(&subject.load).max(NOTHING)).ln()
}
