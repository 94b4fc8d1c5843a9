//! An update: some passes over the latest steps, by proximal policy optimization (Schulman and
//! others, 2017, equations 7 and 9).

use anyhow::Result;
use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, TensorData};
use burn_flex::{Flex, FlexDevice};
use regraft_ir::SplitMix64;
use regraft_xrlflow::{Part, Pool, Rows, Settings, Weights};

use super::advantages::advantages;
use super::episode::Step;
use super::network::{Batch, tensors};
use crate::adam::Adam;
use crate::executor::{tensor, values};

type Outer = Autodiff<Flex>;

/// As it is published.
const ADAM: Adam = Adam { decay: (0.9, 0.999), epsilon: 1e-5 };

/// Weights in training.
pub struct Learner {
    /// The weights.
    pub weights: Weights,
    /// Running means of gradients, and of their squares.
    moments: Vec<[Vec<f32>; 2]>,
    steps: i32,
    /// Updates that were made.
    pub updates: usize,
}

/// What an update came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Mean of the squared errors of values.
    pub error: f32,
    /// Mean entropy of the choice of actions.
    pub entropy: f32,
    /// How far the probabilities have come from those that were acted by.
    pub divergence: f32,
}

/// A minibatch: its steps with their advantages and what was earned.
type Some<'s> = [(&'s Step, (f32, f32))];

impl Learner {
    /// At the beginning.
    pub fn new(weights: Weights) -> Learner {
        let moments = weights.parts().iter().map(|part| [vec![0.0; part.len()], vec![0.0; part.len()]]).collect();
        Learner { weights, moments, steps: 0, updates: 0 }
    }

    /// All that the next update begins with.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.steps.to_le_bytes());
        bytes.extend((self.updates as u32).to_le_bytes());
        bytes.extend(self.moments.iter().flatten().flatten().flat_map(|value| value.to_le_bytes()));
        bytes.extend(self.weights.to_bytes());
        bytes
    }

    /// From [`Learner::to_bytes`]; `None` if it is cut off, or of an agent with other settings.
    pub fn from_bytes(bytes: &[u8], like: &Weights) -> Option<Learner> {
        let mut learner = Learner::new(like.clone());
        let (steps, rest) = bytes.split_first_chunk()?;
        let (updates, rest) = rest.split_first_chunk()?;
        learner.steps = i32::from_le_bytes(*steps);
        learner.updates = u32::from_le_bytes(*updates) as usize;
        let count: usize = learner.moments.iter().flatten().map(Vec::len).sum();
        let (moments, rest) = rest.split_at_checked(4 * count)?;
        let mut values = moments.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        for value in learner.moments.iter_mut().flatten().flatten() {
            *value = values.next()?;
        }
        learner.weights = Weights::from_bytes(rest).ok().filter(|weights| weights.about.settings == like.about.settings)?;
        Some(learner)
    }

    /// Learns from some episodes.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn learn(&mut self, steps: &[Step], rows: &Rows, random: &mut SplitMix64) -> Result<Progress> {
        let settings = self.weights.about.settings;
        let mut order: Vec<(&Step, (f32, f32))> = steps.iter().zip(advantages(steps, &settings)).collect();
        let mut progress = Progress::default();
        for _ in 0..settings.epochs {
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            let mut sums = Progress::default();
            let batches = order.len().div_ceil(settings.minibatch);
            for some in order.chunks(settings.minibatch) {
                progress = self.step(some, rows, &settings)?;
                sums.error += progress.error / batches as f32;
                sums.entropy += progress.entropy / batches as f32;
            }
            progress = Progress { divergence: progress.divergence, ..sums };
            if progress.divergence > settings.divergence && self.updates >= settings.warm_up {
                break;
            }
        }
        self.updates += 1;
        Ok(progress)
    }

    /// One step down the gradient.
    fn step(&mut self, some: &Some<'_>, rows: &Rows, settings: &Settings) -> Result<Progress> {
        let states: Vec<&[Pool]> = some.iter().map(|(step, _)| step.pools.as_slice()).collect();
        let batch = Batch::new(&states, rows);
        let weights: Vec<FloatTensor<Outer>> = tensors::<Outer>(self.weights.parts(), settings.slots, batch.used())
            .into_iter()
            .map(|weight| Outer::float_set_require_grad(weight, true))
            .collect();
        let (loss, progress) = loss::<Outer>(some, &batch, &weights, settings)?;
        let gradients = Outer::backward(loss);
        let mut all = Vec::with_capacity(weights.len());
        for weight in &weights {
            all.push(match Outer::grad(weight, &gradients) {
                Some(gradient) => values::<Flex>(gradient)?,
                None => Vec::new(),
            });
        }
        self.apply(&all, batch.used(), settings);
        Ok(progress)
    }

    /// Adam with gradients of the slots in use; the others' are zero, and have been since the
    /// beginning or decay as if they had been asked.
    fn apply(&mut self, gradients: &[Vec<f32>], used: usize, settings: &Settings) {
        let norm = gradients.iter().flatten().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt() as f32;
        let scale = if norm > settings.norm { settings.norm / norm } else { 1.0 };
        self.steps += 1;
        let corrections = ADAM.corrections(self.steps);
        let parts = Part::all();
        for (at, (values, moments)) in self.weights.parts_mut().iter_mut().zip(&mut self.moments).enumerate() {
            let ([_, all], [inputs, outputs]) = (parts[at].shape(settings.slots), parts[at].shape(used));
            let [means, squares] = moments;
            for row in 0..values.len() / all {
                let gradient = (row < inputs).then(|| gradients[at].get(row * outputs..(row + 1) * outputs)).flatten();
                let range = row * all..(row + 1) * all;
                // Nothing was ever learned of a slot that was never in use.
                if gradient.is_none() && squares[range.clone()].iter().all(|square| *square == 0.0) {
                    continue;
                }
                for (column, k) in range.enumerate() {
                    let g = scale * gradient.and_then(|row| row.get(column)).copied().unwrap_or(0.0);
                    let (step, root) = ADAM.moments(&mut means[k], &mut squares[k], g, corrections);
                    values[k] -= settings.rate * step / root;
                }
            }
        }
    }
}

fn column<B: Backend<Device = FlexDevice>>(values: Vec<f32>) -> FloatTensor<B> {
    let rows = values.len();
    tensor::<B>(values, &[rows, 1], &FlexDevice)
}

/// What is to become less: minus what the clipped probabilities gain, the error of values, minus
/// entropy.
fn loss<B: Backend<Device = FlexDevice>>(
    some: &Some<'_>,
    batch: &Batch,
    weights: &[FloatTensor<B>],
    settings: &Settings,
) -> Result<(FloatTensor<B>, Progress)> {
    let count = some.len();
    let [likely, found] = batch.outputs::<B>(weights, settings.defects.blind_attention)?;
    let advantages: Vec<f32> = some.iter().map(|(_, (advantage, _))| *advantage).collect();
    let mean = advantages.iter().sum::<f32>() / count as f32;
    let spread = (advantages.iter().map(|a| (a - mean).powi(2)).sum::<f32>() / count as f32).sqrt();
    let advantages = column::<B>(advantages.iter().map(|a| (a - mean) / (spread + 1e-8)).collect());
    let chosen: Vec<i32> = some.iter().map(|(step, _)| step.action as i32).collect();
    let chosen = B::int_from_data(TensorData::new(chosen, [count, 1]), &FlexDevice);
    let now = B::float_gather(1, likely.clone(), chosen);
    let before = column::<B>(some.iter().map(|(step, _)| step.likely).collect());
    let change = B::float_sub(now, before);
    let changes = values::<B>(B::float_detach(change.clone()))?;
    let ratio = B::float_exp(change);
    let clipped = B::float_clamp(ratio.clone(), (1.0 - settings.clip).into(), (1.0 + settings.clip).into());
    let (free, bound) = (B::float_mul(ratio, advantages.clone()), B::float_mul(clipped, advantages));
    // The smaller of both: a + min(b - a, 0).
    let less = B::float_neg(B::relu(B::float_neg(B::float_sub(bound, free.clone()))));
    let gain = B::float_sum(B::float_add(free, less));
    let certain = B::float_mul(B::float_exp(likely.clone()), B::float_mul(likely, batch.mask::<B>()));
    let certainty = B::float_sum(certain);
    let off = B::float_sub(found, column::<B>(some.iter().map(|(_, (_, earned))| *earned).collect()));
    let square = B::float_sum(B::float_mul(off.clone(), off));
    let single = |tensor: &FloatTensor<B>| Ok::<f32, anyhow::Error>(values::<B>(B::float_detach(tensor.clone()))?[0] / count as f32);
    let progress = Progress {
        error: single(&square)?,
        entropy: -single(&certainty)?,
        // An estimate that is never negative (Schulman, "Approximating KL divergence", 2020).
        divergence: changes.iter().map(|change| change.exp() - 1.0 - change).sum::<f32>() / count as f32,
    };
    let loss = B::float_sub(B::float_mul_scalar(square, (0.5 * settings.value).into()), gain);
    let loss = B::float_add(loss, B::float_mul_scalar(certainty, settings.entropy.into()));
    Ok((B::float_div_scalar(loss, (count as f32).into()), progress))
}
