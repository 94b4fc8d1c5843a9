//! MobileNet-v2 of TENSAT, taken from another framework's model collection.

use crate::{
    builder::{Builder, Conv, Dim, Pool, Value},
    networks::{Outputs, head::CLASSES, single},
};

const EPSILON: f32 = 1e-5;

/// Expanded channels, output channels, stride, repetitions. The stride of the fourth stage comes
/// one stage late.
const BLOCKS: [(i64, i64, i64, usize); 12] = [
    (32, 16, 1, 1),
    (96, 24, 2, 1),
    (144, 24, 1, 1),
    (144, 32, 2, 1),
    (192, 32, 1, 2),
    (192, 64, 1, 1),
    (384, 64, 1, 3),
    (384, 96, 2, 1),
    (576, 96, 1, 2),
    (576, 160, 2, 1),
    (960, 160, 1, 2),
    (960, 320, 1, 1),
];

/// Convolution, batch normalization, ReLU.
fn unit(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    b.within(name, |b| {
        let y = b.conv("conv", x, conv);
        let y = b.batch_norm("norm", &y, EPSILON, 1.0);
        b.relu(&y)
    })
}

/// Expand (even by a factor of 1), filter each channel, project.
fn block(b: &mut Builder, x: &Value, wide: i64, out: i64, stride: i64) -> Value {
    let residual = stride == 1 && x.size(1) == out;
    let y = unit(b, "expand", x, Conv::new(wide, 1));
    let y = unit(b, "depthwise", &y, Conv::new(wide, 3).stride(stride).centered().groups(wide));
    let y = b.within("project", |b| {
        let y = b.conv("conv", &y, Conv::new(out, 1).gain(1.0));
        b.batch_norm("norm", &y, EPSILON, if residual { 0.5 } else { 1.0 })
    });
    if residual { b.add(x, &y) } else { y }
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = unit(b, "stem", &inputs[0], Conv::new(32, 3).stride(2).centered());
    let all = BLOCKS.into_iter().flat_map(|(wide, out, stride, count)| vec![(wide, out, stride); count]);
    for (index, (wide, out, stride)) in all.enumerate() {
        x = b.within(format!("block{index}"), |b| block(b, &x, wide, out, stride));
    }
    x = unit(b, "tail", &x, Conv::new(1280, 1));
    x = b.pool(&x, Pool::average(7, 1));
    x = b.conv("classifier", &x, Conv::new(CLASSES, 1).gain(1.0));
    let logits = b.reshape(&x, &[x.shape[0], Dim::Fixed(CLASSES)]);
    single("logits", logits)
}
