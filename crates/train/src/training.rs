//! Training a network, repeatable from a seed.

use anyhow::{Context, Result};
use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend};
use burn_flex::{Flex, FlexDevice};
use regraft_ir::{Graph, SplitMix64};

use crate::adam;
use crate::executor::{run, tensor, values};
use crate::network::Network;
use crate::task::{CLASSES, Images, Task};

/// What is computed with, without gradients and with them.
type Inner = Flex;
type Outer = Autodiff<Flex>;

/// A network in training.
pub struct Training<'n> {
    network: &'n Network,
    batch: usize,
    /// Values of the parameters, and the running means of their gradients and of the squares of
    /// these (Kingma and Ba, "Adam", 2015, algorithm 1).
    parameters: Vec<[Vec<f32>; 3]>,
    steps: i32,
    seed: u64,
    task: Task,
    /// Epochs that are done, and that are planned: the rate falls to zero by then.
    epochs: (usize, usize),
}

/// How training stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Epochs done.
    pub epoch: usize,
    /// Mean loss of the last epoch.
    pub loss: f64,
    /// Share of held-back images that are told right.
    pub accuracy: f64,
}

/// Seed of the images that are held back.
pub const HELD_BACK: u64 = u64::MAX;
/// Largest step.
const RATE: f32 = 3e-3;
/// Steps over which the rate rises to that.
const WARM_UP: f32 = 30.0;

impl<'n> Training<'n> {
    /// A network that was made for so many images at once, at its beginning.
    pub fn new(network: &'n Network, batch: usize, epochs: usize, task: Task, seed: u64) -> Training<'n> {
        let mut random = SplitMix64(seed);
        let start = |count: usize, (mean, deviation): (f32, f32), random: &mut SplitMix64| -> Vec<f32> {
            (0..count).map(|_| mean + deviation * random.normal() as f32).collect()
        };
        let parameters = network.parameters.iter().map(|parameter| {
            let count = parameter.shape.iter().product();
            [start(count, parameter.start, &mut random), vec![0.0; count], vec![0.0; count]]
        });
        Training { network, batch, parameters: parameters.collect(), steps: 0, seed, task, epochs: (0, epochs) }
    }

    /// Epochs done.
    pub fn done(&self) -> usize {
        self.epochs.0
    }

    /// Values of the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &[f32]> {
        self.parameters.iter().map(|[value, ..]| value.as_slice())
    }

    /// One epoch on new images, then the accuracy on held-back ones.
    ///
    /// # Errors
    ///
    /// If the network has an operator that cannot be computed.
    pub fn epoch(&mut self) -> Result<Progress> {
        let images = self.task.images(self.task.images, self.seed.wrapping_mul(1_000_003).wrapping_add(self.epochs.0 as u64 + 1));
        let batches = self.task.images / self.batch;
        let mut loss = 0.0;
        for at in 0..batches {
            let done = (self.epochs.0 * batches + at) as f32 / (self.epochs.1 * batches).max(1) as f32;
            let rate = adam::rate(RATE, WARM_UP, self.steps, done);
            loss += self.step(&images, at, rate)? / batches as f64;
        }
        self.epochs.0 += 1;
        Ok(Progress { epoch: self.epochs.0, loss, accuracy: self.accuracy()? })
    }

    /// One step down the gradient; the loss before it.
    fn step(&mut self, images: &Images, at: usize, rate: f32) -> Result<f64> {
        let device = FlexDevice;
        let mut inputs = vec![self.pixels::<Outer>(images, at)];
        for ([value, ..], parameter) in self.parameters.iter().zip(&self.network.parameters) {
            let value = tensor::<Outer>(value.clone(), &parameter.shape, &device);
            inputs.push(Outer::float_set_require_grad(value, true));
        }
        let outputs = run::<Outer>(&self.network.graph, &inputs, &device)?;
        let loss = cross_entropy::<Outer>(outputs, &images.classes[at * self.batch..][..self.batch]);
        let value = values::<Outer>(loss.clone())?.first().copied().context("no loss")?;
        let gradients = Outer::backward(loss);
        self.steps += 1;
        let corrections = adam::USUAL.corrections(self.steps);
        for ([value, mean, square], input) in self.parameters.iter_mut().zip(&inputs[1..]) {
            let Some(gradient) = Outer::grad(input, &gradients) else { continue };
            for (k, g) in values::<Inner>(gradient)?.into_iter().enumerate() {
                let (step, root) = adam::USUAL.moments(&mut mean[k], &mut square[k], g, corrections);
                value[k] -= rate * step / root;
            }
        }
        Ok(f64::from(value))
    }

    /// Share of held-back images that are told right; the same images for every seed.
    fn accuracy(&self) -> Result<f64> {
        let images = self.task.images(self.task.held_back, HELD_BACK);
        let parameters = self.parameters.iter().zip(&self.network.parameters);
        let parameters: Vec<FloatTensor<Inner>> =
            parameters.map(|([value, ..], parameter)| tensor::<Inner>(value.clone(), &parameter.shape, &FlexDevice)).collect();
        told_right(&self.network.graph, &parameters, &images, &[self.batch, 1, self.task.side, self.task.side])
    }

    fn pixels<B: Backend<Device = FlexDevice>>(&self, images: &Images, at: usize) -> FloatTensor<B> {
        let side = self.task.side;
        let size = side * side;
        let pixels = images.pixels[at * self.batch * size..][..self.batch * size].to_vec();
        tensor::<B>(pixels, &[self.batch, 1, side, side], &FlexDevice)
    }
}

/// Share of images of which a graph says the right class: its first input takes batches of this
/// shape, the others are these.
///
/// # Errors
///
/// If the graph cannot be computed.
pub fn told_right(graph: &Graph, others: &[FloatTensor<Inner>], images: &Images, shape: &[usize]) -> Result<f64> {
    let (mut right, mut seen) = (0, 0);
    for (pixels, classes) in images.pixels.chunks_exact(shape.iter().product()).zip(images.classes.chunks_exact(shape[0])) {
        let mut inputs = vec![tensor::<Inner>(pixels.to_vec(), shape, &FlexDevice)];
        inputs.extend(others.iter().cloned());
        let outputs = values::<Inner>(run::<Inner>(graph, &inputs, &FlexDevice)?)?;
        for (scores, class) in outputs.chunks_exact(CLASSES).zip(classes) {
            let told = (0..CLASSES).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            right += usize::from(told == Some(*class));
            seen += 1;
        }
    }
    Ok(right as f64 / seen.max(1) as f64)
}

/// The mean of `log(sum(exp(scores))) - score` of each image's class.
fn cross_entropy<B: AutodiffBackend<Device = FlexDevice>>(scores: FloatTensor<B>, classes: &[usize]) -> FloatTensor<B> {
    let mut right = vec![0.0; classes.len() * CLASSES];
    for (at, class) in classes.iter().enumerate() {
        right[at * CLASSES + class] = 1.0;
    }
    let right = tensor::<B>(right, &[classes.len(), CLASSES], &FlexDevice);
    // The largest score is taken off: it changes nothing, and no exponential overflows.
    let largest = B::float_detach(B::float_max_dim(scores.clone(), 1));
    let scores = B::float_sub(scores, largest);
    let all = B::float_log(B::float_sum_dim(B::float_exp(scores.clone()), 1));
    let own = B::float_sum_dim(B::float_mul(scores, right), 1);
    B::float_div_scalar(B::float_sum(B::float_sub(all, own)), (classes.len() as f32).into())
}
