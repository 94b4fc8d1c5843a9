//! ResNet, with the stride of a bottleneck in its 3x3 convolution.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

const EPSILON: f32 = 1e-5;
/// Scale of the last normalization of a residual branch: keeps sums of many branches from growing.
const BRANCH_GAIN: f32 = 0.4;

/// Number of blocks in each of the four stages.
pub(crate) type Depths = [usize; 4];
/// Blocks per stage of the 50-layer networks.
pub(crate) const DEPTHS_50: Depths = [3, 4, 6, 3];

/// A convolution and its batch normalization, named `conv<index>` and `bn<index>`.
pub(crate) fn conv_norm(b: &mut Builder, index: usize, x: &Value, conv: Conv, gain: f32) -> Value {
    let y = b.conv(&format!("conv{index}"), x, conv);
    b.batch_norm(&format!("bn{index}"), &y, EPSILON, gain)
}

/// The same with a ReLU.
pub(crate) fn conv_norm_relu(b: &mut Builder, index: usize, x: &Value, conv: Conv) -> Value {
    let y = conv_norm(b, index, x, conv, 1.0);
    b.relu(&y)
}

/// Adds to a residual branch of `x` its shortcut, projected where the shape changes, and applies a
/// ReLU.
pub(crate) fn merge(b: &mut Builder, x: &Value, branch: &Value, stride: i64) -> Value {
    let shortcut = if x.shape == branch.shape {
        x.clone()
    } else {
        b.within("downsample", |b| {
            let y = b.conv("0", x, Conv::new(branch.size(1), 1).stride(stride));
            b.batch_norm("1", &y, EPSILON, 1.0)
        })
    };
    let sum = b.add(branch, &shortcut);
    b.relu(&sum)
}

/// Two 3x3 convolutions.
fn basic(b: &mut Builder, x: &Value, width: i64, stride: i64) -> Value {
    let y = conv_norm_relu(b, 1, x, Conv::new(width, 3).stride(stride).pad(1));
    let y = conv_norm(b, 2, &y, Conv::new(width, 3).pad(1), BRANCH_GAIN);
    merge(b, x, &y, stride)
}

/// 1x1, 3x3, 1x1, the last four times as wide.
fn bottleneck(b: &mut Builder, x: &Value, width: i64, stride: i64) -> Value {
    let y = conv_norm_relu(b, 1, x, Conv::new(width, 1));
    let y = conv_norm_relu(b, 2, &y, Conv::new(width, 3).stride(stride).pad(1));
    let y = expand(b, &y, 4 * width);
    merge(b, x, &y, stride)
}

/// The third convolution of a bottleneck.
pub(crate) fn expand(b: &mut Builder, x: &Value, out: i64) -> Value {
    conv_norm(b, 3, x, Conv::new(out, 1), BRANCH_GAIN)
}

/// Stem, four stages of `block(builder, x, width, stride)`, classifier. The width of the first
/// stage is `width`.
pub(crate) fn staged(
    b: &mut Builder,
    image: &Value,
    depths: Depths,
    width: i64,
    block: fn(&mut Builder, &Value, i64, i64) -> Value,
) -> Outputs {
    let stem = conv_norm_relu(b, 1, image, Conv::new(64, 7).stride(2).pad(3));
    let mut x = b.pool(&stem, Pool::max(3, 2).pad(1));
    for (stage, depth) in depths.into_iter().enumerate() {
        b.within(format!("layer{}", stage + 1), |b| {
            for index in 0..depth {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                x = b.within(index.to_string(), |b| block(b, &x, width << stage, stride));
            }
        });
    }
    head::pooled_classifier(b, "fc", &x, 1.0)
}

/// ResNet-18.
pub(crate) fn resnet18(b: &mut Builder, inputs: &[Value]) -> Outputs {
    staged(b, &inputs[0], [2, 2, 2, 2], 64, basic)
}

/// ResNet-50.
pub(crate) fn resnet50(b: &mut Builder, inputs: &[Value]) -> Outputs {
    staged(b, &inputs[0], DEPTHS_50, 64, bottleneck)
}
