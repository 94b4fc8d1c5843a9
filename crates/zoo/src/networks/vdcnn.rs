//! VDCNN: twenty-nine convolutions on the characters of a text.

use super::{Outputs, single};
use crate::builder::{Builder, Value};

const EPSILON: f32 = 1e-5;
/// Characters that are told apart, and how many numbers stand for each.
const ALPHABET: (i64, i64) = (69, 16);
const KERNEL: i64 = 3;
const PAD: i64 = 1;
/// Kernel, stride and padding of the pools between the stages, which halve the length.
const HALVING: (i64, i64, i64) = (3, 2, 1);
/// Channels of the first convolution.
const FIRST: i64 = 64;
/// Channels and convolutions of each stage.
const STAGES: [(i64, usize); 4] = [(64, 10), (128, 10), (256, 4), (512, 4)];
/// Values of each channel that the classifier sees, the largest ones.
const LARGEST: i64 = 8;
/// Width of the hidden layers of the classifier.
const HIDDEN: i64 = 2048;
/// Topics of questions.
const CLASSES: i64 = 10;

fn conv_norm_relu(b: &mut Builder, name: &str, x: &Value, out: i64) -> Value {
    let y = b.conv_1d(name, x, out, (KERNEL, 1, PAD));
    let y = b.batch_norm(&format!("{name}_bn"), &y, EPSILON, 1.0);
    b.relu(&y)
}

/// The whole network, without shortcuts.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let table = b.weight("embedding.weight", &[ALPHABET.0, ALPHABET.1], -1.0, 1.0);
    let characters = b.gather(&table, &inputs[0], 0);
    let x = b.transpose(&characters, &[0, 2, 1]);
    let mut x = b.conv_1d("conv1", &x, FIRST, (KERNEL, 1, PAD));
    for (stage, (channels, repeats)) in STAGES.into_iter().enumerate() {
        if stage > 0 {
            let (kernel, stride, pad) = HALVING;
            x = b.max_pool_1d(&x, kernel, stride, pad);
        }
        for repeat in 0..repeats {
            x = conv_norm_relu(b, &format!("conv{}_{}", stage + 2, repeat + 1), &x, channels);
        }
    }
    let largest = b.largest(&x, LARGEST);
    let mut y = b.flatten(&largest);
    for layer in ["fc1", "fc2"] {
        y = b.dense(layer, &y, HIDDEN, 1.0);
        y = b.relu(&y);
    }
    let logits = b.dense("fc3", &y, CLASSES, 1.0);
    let result = b.softmax(&logits);
    single("probabilities", result)
}
