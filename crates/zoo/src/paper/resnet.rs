//! ResNet-50 and ResNeXt-50 of TASO and TENSAT, ResNet-n of OCGGS.

use super::conv_relu;
use crate::{
    builder::{Builder, Conv, Pool, Value},
    networks::{Outputs, single},
};

/// Scale of the last convolution of a residual branch.
const BRANCH_GAIN: f32 = 0.4;
/// Blocks in each stage.
const DEPTHS: [usize; 4] = [3, 4, 6, 3];

/// Geometry of a bottleneck.
#[derive(Clone, Copy)]
struct Bottleneck {
    width: i64,
    expansion: i64,
    groups: i64,
    stride: i64,
}

/// 1x1, 3x3, 1x1. The projection of the shortcut has a ReLU of its own, unlike the real network.
fn bottleneck(b: &mut Builder, x: &Value, spec: Bottleneck) -> Value {
    let Bottleneck { width, expansion, groups, stride } = spec;
    let out = width * expansion;
    let y = conv_relu(b, "conv1", x, Conv::new(width, 1));
    let y = conv_relu(b, "conv2", &y, Conv::new(width, 3).stride(stride).centered().groups(groups));
    let y = b.conv("conv3", &y, Conv::new(out, 1).gain(BRANCH_GAIN));
    let shortcut = if stride > 1 || x.size(1) != out { conv_relu(b, "shortcut", x, Conv::new(out, 1).stride(stride)) } else { x.clone() };
    let sum = b.add(&y, &shortcut);
    b.relu(&sum)
}

fn stages(b: &mut Builder, x: &Value, first: Bottleneck) -> Outputs {
    let mut x = x.clone();
    for (stage, depth) in DEPTHS.into_iter().enumerate() {
        for index in 0..depth {
            let stride = if stage > 0 && index == 0 { 2 } else { 1 };
            let spec = Bottleneck { width: first.width << stage, stride, ..first };
            x = b.within(format!("stage{}.{index}", stage + 1), |b| bottleneck(b, &x, spec));
        }
    }
    single("features", x)
}

/// ResNet-50 from its first stage on.
pub(crate) fn resnet50(b: &mut Builder, inputs: &[Value]) -> Outputs {
    stages(b, &inputs[0], Bottleneck { width: 64, expansion: 4, groups: 1, stride: 1 })
}

/// ResNeXt-50 without its classifier.
pub(crate) fn resnext50(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let stem = conv_relu(b, "stem", &inputs[0], Conv::new(64, 7).stride(2).centered());
    let x = b.pool(&stem, Pool::max(3, 2).pad(1));
    stages(b, &x, Bottleneck { width: 128, expansion: 2, groups: 32, stride: 1 })
}

/// `N` blocks of 256 channels, each with a projected shortcut.
pub(crate) fn blocks<const N: usize>(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for block in 0..N {
        x = b.within(format!("block{block}"), |b| {
            let y = conv_relu(b, "conv1", &x, Conv::new(256, 3).centered());
            let y = b.conv("conv2", &y, Conv::new(256, 3).centered().gain(BRANCH_GAIN));
            let shortcut = conv_relu(b, "shortcut", &x, Conv::new(256, 1));
            let sum = b.add(&shortcut, &y);
            b.relu(&sum)
        });
    }
    single("features", x)
}
