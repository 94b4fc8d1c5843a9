//! The character-level convolutional network: six convolutions on the characters of a text.

use super::{Outputs, single};
use crate::builder::{Builder, Value};

/// Channels of all convolutions, of the smaller of the two published networks.
const CHANNELS: i64 = 256;
/// Kernels of the convolutions, without padding, and whether a pool follows.
const CONVOLUTIONS: [(i64, bool); 6] = [(7, true), (7, true), (3, false), (3, false), (3, false), (3, true)];
/// Kernel and stride of the pools.
const POOL: i64 = 3;
/// Width of the hidden layers of the classifier.
const HIDDEN: i64 = 1024;
/// Topics of news.
const CLASSES: i64 = 4;

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for (at, (kernel, is_pooled)) in CONVOLUTIONS.into_iter().enumerate() {
        let y = b.conv_1d(&format!("conv{}", at + 1), &x, CHANNELS, (kernel, 1, 0));
        x = b.relu(&y);
        if is_pooled {
            x = b.max_pool_1d(&x, POOL, POOL, 0);
        }
    }
    let mut y = b.flatten(&x);
    for layer in ["fc1", "fc2"] {
        y = b.dense(layer, &y, HIDDEN, 1.0);
        y = b.relu(&y);
        y = b.dropout(&y);
    }
    let logits = b.dense("fc3", &y, CLASSES, 1.0);
    let result = b.softmax(&logits);
    single("probabilities", result)
}
