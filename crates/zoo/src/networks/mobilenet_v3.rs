//! MobileNet-v3-large, width 1.0: hard-swish and squeeze-and-excitation in primitive steps.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Value};

const EPSILON: f32 = 1e-3;

/// One inverted residual block.
struct Block {
    kernel: i64,
    expanded: i64,
    out: i64,
    excite: bool,
    activation: Activation,
    stride: i64,
}

#[derive(Clone, Copy)]
enum Activation {
    Relu,
    HardSwish,
}

impl Activation {
    fn apply(self, b: &mut Builder, x: &Value) -> Value {
        match self {
            Self::Relu => b.relu(x),
            Self::HardSwish => b.hard_swish(x),
        }
    }
}

const fn block(kernel: i64, expanded: i64, out: i64, excite: bool, activation: Activation, stride: i64) -> Block {
    Block { kernel, expanded, out, excite, activation, stride }
}

const BLOCKS: [Block; 15] = {
    use Activation::{HardSwish, Relu};
    [
        block(3, 16, 16, false, Relu, 1),
        block(3, 64, 24, false, Relu, 2),
        block(3, 72, 24, false, Relu, 1),
        block(5, 72, 40, true, Relu, 2),
        block(5, 120, 40, true, Relu, 1),
        block(5, 120, 40, true, Relu, 1),
        block(3, 240, 80, false, HardSwish, 2),
        block(3, 200, 80, false, HardSwish, 1),
        block(3, 184, 80, false, HardSwish, 1),
        block(3, 184, 80, false, HardSwish, 1),
        block(3, 480, 112, true, HardSwish, 1),
        block(3, 672, 112, true, HardSwish, 1),
        block(5, 672, 160, true, HardSwish, 2),
        block(5, 960, 160, true, HardSwish, 1),
        block(5, 960, 160, true, HardSwish, 1),
    ]
};

/// The multiple of 8 nearest to `channels`, but not less than nine tenths of it.
fn round_channels(channels: i64) -> i64 {
    let rounded = ((channels + 4) / 8 * 8).max(8);
    if rounded * 10 < channels * 9 { rounded + 8 } else { rounded }
}

/// Convolution, batch normalization, activation.
fn unit(b: &mut Builder, name: &str, x: &Value, conv: Conv, activation: Activation) -> Value {
    b.within(name, |b| {
        let y = b.conv("0", x, conv);
        let y = b.batch_norm("1", &y, EPSILON, 1.0);
        activation.apply(b, &y)
    })
}

/// Scales each channel by a gate computed from the means of all channels.
fn squeeze_excite(b: &mut Builder, x: &Value) -> Value {
    let channels = x.size(1);
    b.within("se", |b| {
        let mean = b.global_average_pool(x);
        let y = b.conv("fc1", &mean, Conv::new(round_channels(channels / 4), 1).bias());
        let y = b.relu(&y);
        let y = b.conv("fc2", &y, Conv::new(channels, 1).bias());
        let gate = b.hard_sigmoid(&y);
        b.mul(&gate, x)
    })
}

fn inverted_residual(b: &mut Builder, x: &Value, block: &Block) -> Value {
    let channels = x.size(1);
    let residual = block.stride == 1 && channels == block.out;
    let mut y = x.clone();
    if block.expanded != channels {
        y = unit(b, "expand", &y, Conv::new(block.expanded, 1).gain(1.4), block.activation);
    }
    let depthwise = Conv::new(block.expanded, block.kernel).stride(block.stride).centered().groups(block.expanded);
    y = unit(b, "depthwise", &y, depthwise, block.activation);
    if block.excite {
        y = squeeze_excite(b, &y);
    }
    y = b.within("project", |b| {
        let y = b.conv("0", &y, Conv::new(block.out, 1).gain(if block.excite { 1.8 } else { 1.0 }));
        b.batch_norm("1", &y, EPSILON, if residual { 0.5 } else { 1.0 })
    });
    if residual { b.add(x, &y) } else { y }
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let swish = Activation::HardSwish;
    let mut x = unit(b, "features.0", &inputs[0], Conv::new(16, 3).stride(2).pad(1), swish);
    for (index, block) in BLOCKS.iter().enumerate() {
        x = b.within(format!("features.{}", index + 1), |b| inverted_residual(b, &x, block));
    }
    x = unit(b, "features.16", &x, Conv::new(960, 1).gain(1.4), swish);
    x = b.global_average_pool(&x);
    x = b.flatten(&x);
    x = b.dense("classifier.0", &x, 1280, 2.0);
    x = b.hard_swish(&x);
    head::dense_classifier(b, "classifier.3", &x, 1.0)
}
