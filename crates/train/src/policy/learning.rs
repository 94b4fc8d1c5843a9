//! Training of a policy, repeatable from a seed, and stopped and resumed at any epoch.

use anyhow::Result;
use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, tensor::FloatTensor};
use burn_flex::Flex;
use regraft_ir::SplitMix64;
use regraft_policy::descriptor::DESCRIPTOR;
use regraft_policy::features::{KINDS, UNKNOWN};
use regraft_policy::{Digest, Sample, WIDTH, Weights};

use super::network::{Batch, Quality, tensors};
use crate::adam;
use crate::executor::values;

type Outer = Autodiff<Flex>;

/// A policy in training.
pub struct Learning {
    digest: Digest,
    /// Weights, and the running means of their gradients and of the squares of these.
    parts: Vec<[Vec<f32>; 3]>,
    /// Kinds of operators that occurred.
    seen: [bool; KINDS],
    steps: i32,
    /// Epochs that are done, and that are planned.
    epochs: (usize, usize),
    seed: u64,
    /// Largest step.
    rate: f32,
}

/// States of a step.
const BATCH: usize = 64;
/// Largest step, and that of a later round.
const RATE: (f32, f32) = (2e-3, 1e-3);
/// Steps over which the rate rises to that.
const WARM_UP: f32 = 50.0;
/// Share of the kinds of operators in a sample that are made unknown, so that those which are
/// unknown can be told by what else is known of them.
const HIDDEN_KINDS: f64 = 0.15;
/// What weights shrink by in a step, relative to the rate.
const SHRINK: f32 = 0.01;

impl Learning {
    /// At its beginning.
    pub fn new(digest: Digest, epochs: usize, seed: u64) -> Learning {
        let start = Weights::random(digest, seed);
        let parts = start.parts().map(|(_, values)| [values.to_vec(), vec![0.0; values.len()], vec![0.0; values.len()]]);
        Learning { digest, parts: parts.collect(), seen: [false; KINDS], steps: 0, epochs: (0, epochs), seed, rate: RATE.0 }
    }

    /// All that the next epoch begins with.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((self.epochs.0 as u32).to_le_bytes());
        bytes.extend(self.steps.to_le_bytes());
        bytes.extend(self.seen.map(u8::from));
        bytes.extend(self.parts.iter().flatten().flatten().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    /// From [`Learning::to_bytes`]; `None` if it is cut off.
    pub fn from_bytes(bytes: &[u8], digest: Digest, epochs: usize, seed: u64) -> Option<Learning> {
        let mut learning = Learning::new(digest, epochs, seed);
        let (done, rest) = bytes.split_first_chunk()?;
        let (steps, rest) = rest.split_first_chunk()?;
        let (seen, rest) = rest.split_first_chunk::<KINDS>()?;
        learning.epochs.0 = u32::from_le_bytes(*done) as usize;
        learning.steps = i32::from_le_bytes(*steps);
        learning.seen = seen.map(|seen| seen != 0);
        let mut values = rest.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        for value in learning.parts.iter_mut().flatten().flatten() {
            *value = values.next()?;
        }
        values.next().is_none().then_some(learning)
    }

    /// Begins a later round, with what was learned and other samples.
    pub fn next_round(self, epochs: usize, seed: u64) -> Learning {
        Learning { epochs: (0, epochs), seed, ..self }.in_later_round()
    }

    /// As in a later round: smaller steps.
    pub fn in_later_round(self) -> Learning {
        Learning { rate: RATE.1, ..self }
    }

    /// Epochs done.
    pub fn done(&self) -> usize {
        self.epochs.0
    }

    /// What was learned; kinds of operators that did not occur are as good as any unknown one.
    pub fn weights(&self) -> Weights {
        let mut parts: Vec<Vec<f32>> = self.parts.iter().map(|[values, ..]| values.clone()).collect();
        let kinds = &mut parts[0];
        let unknown = kinds[UNKNOWN * WIDTH..][..WIDTH].to_vec();
        for (row, seen) in kinds.chunks_exact_mut(WIDTH).zip(&self.seen) {
            if !seen {
                row.copy_from_slice(&unknown);
            }
        }
        Weights::of(self.digest, parts)
    }

    /// One pass over the samples; the mean loss, or `None` if `go_on` ended it.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn epoch(&mut self, samples: &[Sample], rules: &[[f32; DESCRIPTOR]], go_on: &dyn Fn() -> bool) -> Result<Option<f64>> {
        let mut order: Vec<&Sample> = samples.iter().collect();
        let mut random = SplitMix64(self.seed.wrapping_mul(1_000_003).wrapping_add(self.epochs.0 as u64));
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        samples.iter().flat_map(|sample| &sample.nodes).for_each(|node| self.seen[usize::from(node.kind)] = true);
        let batches = order.len().div_ceil(BATCH);
        let mut sum = 0.0;
        for (at, some) in order.chunks(BATCH).enumerate() {
            if !go_on() {
                return Ok(None);
            }
            let done = (self.epochs.0 * batches + at) as f32 / (self.epochs.1 * batches).max(1) as f32;
            let rate = adam::rate(self.rate, WARM_UP, self.steps, done);
            let hidden = random.word();
            let hides = |sample: usize, kind: u8| SplitMix64(hidden ^ (sample as u64) << 32 ^ u64::from(kind)).unit() < HIDDEN_KINDS;
            sum += self.step(&Batch::new(some, rules, &hides), rate)?;
        }
        self.epochs.0 += 1;
        Ok(Some(sum / batches.max(1) as f64))
    }

    /// One step down the gradient; the loss before it.
    fn step(&mut self, batch: &Batch, rate: f32) -> Result<f64> {
        let values_of: Vec<Vec<f32>> = self.parts.iter().map(|[values, ..]| values.clone()).collect();
        let weights: Vec<FloatTensor<Outer>> =
            tensors::<Outer>(&values_of).into_iter().map(|weight| Outer::float_set_require_grad(weight, true)).collect();
        let loss = batch.loss::<Outer>(batch.outputs::<Outer>(&weights))?;
        let value = values::<Outer>(loss.clone())?.first().copied().unwrap_or(f32::NAN);
        let gradients = Outer::backward(loss);
        self.steps += 1;
        let corrections = adam::USUAL.corrections(self.steps);
        for ([value, mean, square], weight) in self.parts.iter_mut().zip(&weights) {
            let Some(gradient) = Outer::grad(weight, &gradients) else { continue };
            for (k, g) in values::<Flex>(gradient)?.into_iter().enumerate() {
                let (step, root) = adam::USUAL.moments(&mut mean[k], &mut square[k], g, corrections);
                value[k] -= rate * (step / root + SHRINK * value[k]);
            }
        }
        Ok(f64::from(value))
    }

    /// How good it is on samples.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn quality(&self, samples: &[Sample], rules: &[[f32; DESCRIPTOR]]) -> Result<Quality> {
        quality(&self.weights(), samples, rules)
    }
}

/// How good weights are on samples.
///
/// # Errors
///
/// If the backend has no numbers.
pub fn quality(weights: &Weights, samples: &[Sample], rules: &[[f32; DESCRIPTOR]]) -> Result<Quality> {
    let parts: Vec<Vec<f32>> = weights.parts().map(|(_, values)| values.to_vec()).collect();
    let weights = tensors::<Flex>(&parts);
    let mut sum = Quality::default();
    for some in samples.chunks(BATCH) {
        let batch = Batch::new(&some.iter().collect::<Vec<_>>(), rules, &|_, _| false);
        sum = sum.and(batch.quality::<Flex>(batch.outputs::<Flex>(&weights))?);
    }
    Ok(sum)
}
