//! Prices of nodes that were never measured, predicted from those of others that were.
//!
//! What is learned is how much slower than the roofline a node is, from its operator, sizes,
//! attributes and neighbours: [`Predictor`]. One comes with the program. Other machines are others,
//! so its predictions are corrected by those nodes whose times are known, of the model itself
//! before all: [`Guesses`], which [`Measured`](crate::Measured) guesses by. None is much below the
//! roofline at the best speeds seen, so that no search is led to what cannot be. [`judge()`] tells
//! how far predictions are from what is measured, and `docs/guide/measuring.md` what they are
//! worth.

mod corrections;
mod features;
mod forest;
mod judge;
mod subject;
mod weights;

pub use forest::{Estimate, Forest};
pub use judge::{Errors, Judged, judge};
pub use subject::Subject;

use std::sync::{Arc, LazyLock};

use corrections::{Corrections, Residual};
use features::Vocabulary;

use crate::measured::OPTIMISM;
use crate::persist::Target;
use crate::roofline::Machine;
use crate::signature::Signature;

/// What takes less than this is as good as nothing, ns: below it, measured times are noise.
pub const NOTHING: f64 = 100.0;
/// Fewest prices to learn from.
const FEWEST: usize = 20;
/// A bound is so many standard deviations from the middle.
const WIDTH: f64 = 1.0;
/// The runtime whose kernels the shipped predictor knows.
const LEARNED_ON: &str = "onnxruntime ";

/// What a node may cost, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// One standard deviation below the middle, but no less than guesses by the roofline alone.
    pub low: f64,
    /// The middle.
    pub middle: f64,
    /// One standard deviation above it.
    pub high: f64,
}

/// Predicts how much slower than the roofline of a usual machine a node is.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor {
    vocabulary: Vocabulary,
    forest: Forest,
}

impl Predictor {
    /// The one that comes with the program: learned from networks of the zoo, with one thread of
    /// ONNX Runtime (`bench/predict.sh`).
    pub fn shipped() -> Arc<Predictor> {
        static SHIPPED: LazyLock<Arc<Predictor>> = LazyLock::new(|| {
            let bytes = include_bytes!("../../weights/predictor.bin");
            Arc::new(Predictor::from_bytes(bytes).expect("a test reads them"))
        });
        SHIPPED.clone()
    }

    /// Fitted to prices in ns; `None` if there are too few to learn from. The same for the same
    /// seed.
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
        let rows: Vec<_> = samples.iter().map(|(subject, _)| vocabulary.row(subject)).collect();
        let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
        Some(Predictor { forest: Forest::fit(&rows, &values, seed), vocabulary })
    }

    fn estimate(&self, subject: &Subject) -> Estimate {
        self.forest.predict(&self.vocabulary.row(subject))
    }
}

/// What nodes may cost on one machine.
#[derive(Clone, Debug)]
pub struct Guesses {
    predictor: Arc<Predictor>,
    corrections: Corrections,
}

impl Guesses {
    /// Predictions as they are.
    pub fn new(predictor: Arc<Predictor>) -> Guesses {
        Guesses { predictor, corrections: Corrections::default() }
    }

    /// By what comes with the program, if it was learned on a runtime like this.
    pub fn of(target: &Target) -> Option<Guesses> {
        target.runtime.starts_with(LEARNED_ON).then(|| Guesses::new(Predictor::shipped()))
    }

    /// Corrects them by nodes that take so many ns here.
    pub fn learn(&mut self, known: impl IntoIterator<Item = (Signature, f64)>) {
        let residual = |(signature, ns): (Signature, f64)| {
            let subject = Subject::of(&signature).filter(|subject| !subject.is_fused())?;
            let off = excess(&subject, ns) - self.predictor.estimate(&subject).mean;
            let weight = ns.max(NOTHING).sqrt();
            Some((signature, Residual { kernel: subject.load.work.kernel, off, weight }))
        };
        let residuals: Vec<_> = known.into_iter().filter_map(residual).collect();
        self.corrections.learn(residuals);
    }

    /// Forgets all corrections.
    pub fn forget(&mut self) {
        self.corrections = Corrections::default();
    }

    /// The price of a node where the best speeds seen are these; `None` if the signature does not
    /// tell enough.
    pub fn predict(&self, signature: &Signature, machine: &Machine) -> Option<Prediction> {
        let subject = Subject::of(signature)?;
        let Estimate { mean, deviation } = self.predictor.estimate(&subject);
        let middle = mean + self.corrections.of(subject.load.work.kernel);
        let base = Machine::default().time(&subject.load).max(NOTHING);
        let least = if subject.is_fused() { 0.0 } else { OPTIMISM * machine.time(&subject.load) };
        let at = |width: f64| (base * (middle + width * deviation).exp()).max(least);
        Some(Prediction { low: at(-WIDTH), middle: at(0.0), high: at(WIDTH) })
    }
}

/// How much slower a node was than the roofline of a usual machine, as a logarithm.
fn excess(subject: &Subject, ns: f64) -> f64 {
    (ns.max(NOTHING) / Machine::default().time(&subject.load).max(NOTHING)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transposed(channels: usize) -> Signature {
        Signature::parse(&format!("Transpose{{perm=0,2,3,1}}(f32[1,{channels},56,56]) | Add.1 > Reshape.0")).expect("a signature")
    }

    #[test]
    fn what_comes_with_the_program_is_read_whole() {
        let shipped = Predictor::shipped();
        let bytes = shipped.to_bytes();
        assert_eq!(Predictor::from_bytes(&bytes).as_ref(), Some(&*shipped));
        assert_eq!(Predictor::from_bytes(&bytes[..bytes.len() - 1]), None);
        let trees = shipped.forest.trees.len();
        assert!(trees > 1 && bytes.len() < 300_000, "{trees} trees, {} bytes", bytes.len());
        // A way that leads back.
        let mut endless = bytes.clone();
        let nodes = 8 + 8 * shipped.vocabulary.words.len() + 4 + 4;
        endless[nodes + 5..nodes + 9].fill(0);
        assert_eq!(Predictor::from_bytes(&endless), None);
    }

    #[test]
    fn guesses_follow_what_is_seen_here() {
        let target = |runtime: &str| Target { machine: "m".into(), runtime: runtime.into(), threads: 1 };
        assert!(Guesses::of(&target("openvino 2026.1")).is_none());
        let mut guesses = Guesses::of(&target("onnxruntime 1.31.1")).expect("learned on it");
        // So fast that no prediction is below what it can do.
        let machine = Machine { bandwidth: 1e3, launch: 1.0, ..Machine::default() };
        let of = |guesses: &Guesses| guesses.predict(&transposed(100), &machine).expect("an operator that is known");
        let before = of(&guesses);
        assert!(before.low <= before.middle && before.middle <= before.high, "{before:?}");
        // Twelve times as long as foreseen.
        let slow = |channels: usize| (transposed(channels), 12.0 * guesses.predict(&transposed(channels), &machine).expect("known").middle);
        let seen: Vec<_> = (200..400).map(slow).collect();
        guesses.learn(seen);
        let after = of(&guesses);
        assert!(after.middle > 6.0 * before.middle && after.middle < 13.0 * before.middle, "{before:?} {after:?}");
        guesses.forget();
        assert_eq!(of(&guesses), before);
        let unknown = Signature::parse("ai.onnx.NonZero<1>(f32[2]) |  > ").expect("a signature");
        assert_eq!(guesses.predict(&unknown, &machine), None);
    }
}
