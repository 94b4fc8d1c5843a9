//! M18: eighteen layers on the raw samples of a recording.

use super::{Outputs, single};
use crate::builder::{Builder, Value};

const EPSILON: f32 = 1e-5;
/// Kernel and stride of the first convolution.
const FIRST: (i64, i64) = (80, 4);
/// Kernel of all others.
const KERNEL: i64 = 3;
/// Kernel and stride of every pool.
const POOL: i64 = 4;
/// Convolutions of each stage.
const REPEATS: usize = 4;
/// Channels of the stages.
const CHANNELS: [i64; 4] = [64, 128, 256, 512];
/// Kinds of sounds.
const CLASSES: i64 = 10;

fn conv_norm_relu(b: &mut Builder, name: &str, x: &Value, out: i64, (kernel, stride): (i64, i64)) -> Value {
    let y = b.conv_1d(name, x, out, (kernel, stride, kernel / 2));
    let y = b.batch_norm(&format!("{name}_bn"), &y, EPSILON, 1.0);
    b.relu(&y)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = conv_norm_relu(b, "conv1", &inputs[0], CHANNELS[0], FIRST);
    for (stage, channels) in CHANNELS.into_iter().enumerate() {
        x = b.max_pool_1d(&x, POOL, POOL, 0);
        for repeat in 0..REPEATS {
            x = conv_norm_relu(b, &format!("conv{}_{}", stage + 2, repeat + 1), &x, channels, (KERNEL, 1));
        }
    }
    let pooled = b.global_average_pool(&x);
    let flat = b.flatten(&pooled);
    let logits = b.dense("fc", &flat, CLASSES, 1.0);
    let result = b.softmax(&logits);
    single("probabilities", result)
}
