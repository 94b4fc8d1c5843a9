//! SampleCNN: convolutions of three taps from the samples of a recording up to its tags.

use super::{Outputs, single};
use crate::builder::{Builder, Value};

const EPSILON: f32 = 1e-5;
/// Kernel of all convolutions but the last, stride of the first, and kernel and stride of all
/// pools.
const THREE: i64 = 3;
/// Channels of the first convolution.
const FIRST: i64 = 128;
/// Channels of the convolutions that a pool follows.
const POOLED: [i64; 9] = [128, 128, 256, 256, 256, 256, 256, 256, 512];
/// Channels of the last convolution, which has one tap.
const LAST: i64 = 512;
const TAGS: i64 = 50;

fn conv_norm_relu(b: &mut Builder, name: &str, x: &Value, out: i64, (kernel, stride): (i64, i64)) -> Value {
    let y = b.conv_1d(name, x, out, (kernel, stride, kernel / 2));
    let y = b.batch_norm(&format!("{name}_bn"), &y, EPSILON, 1.0);
    b.relu(&y)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = conv_norm_relu(b, "conv1", &inputs[0], FIRST, (THREE, THREE));
    for (at, channels) in POOLED.into_iter().enumerate() {
        let y = conv_norm_relu(b, &format!("conv{}", at + 2), &x, channels, (THREE, 1));
        x = b.max_pool_1d(&y, THREE, THREE, 0);
    }
    let x = conv_norm_relu(b, "conv11", &x, LAST, (1, 1));
    let x = b.dropout(&x);
    let flat = b.flatten(&x);
    let logits = b.dense("fc", &flat, TAGS, 1.0);
    let result = b.sigmoid(&logits);
    single("tags", result)
}
