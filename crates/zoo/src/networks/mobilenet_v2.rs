//! MobileNet-v2, width 1.0.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Value};

const EPSILON: f32 = 1e-5;

/// Expansion factor, output channels, repetitions, stride of the first.
const STAGES: [(i64, i64, usize, i64); 7] =
    [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)];

/// Convolution, batch normalization, ReLU6.
fn unit(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    b.within(name, |b| {
        let y = b.conv("0", x, conv);
        let y = b.batch_norm("1", &y, EPSILON, 1.0);
        b.relu6(&y)
    })
}

/// Expand, filter each channel, project without activation.
fn inverted_residual(b: &mut Builder, x: &Value, factor: i64, out: i64, stride: i64) -> Value {
    let channels = x.size(1);
    let wide = channels * factor;
    let residual = stride == 1 && channels == out;
    let mut y = x.clone();
    if factor != 1 {
        y = unit(b, "expand", &y, Conv::new(wide, 1));
    }
    y = unit(b, "depthwise", &y, Conv::new(wide, 3).stride(stride).pad(1).groups(wide));
    y = b.within("project", |b| {
        let y = b.conv("0", &y, Conv::new(out, 1).gain(1.0));
        b.batch_norm("1", &y, EPSILON, if residual { 0.5 } else { 1.0 })
    });
    if residual { b.add(x, &y) } else { y }
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut index = 0;
    let mut next = || {
        index += 1;
        format!("features.{}", index - 1)
    };
    let mut x = unit(b, &next(), &inputs[0], Conv::new(32, 3).stride(2).pad(1));
    for (factor, out, count, first) in STAGES {
        for repetition in 0..count {
            let stride = if repetition == 0 { first } else { 1 };
            x = b.within(next(), |b| inverted_residual(b, &x, factor, out, stride));
        }
    }
    x = unit(b, &next(), &x, Conv::new(1280, 1));
    head::pooled_classifier(b, "classifier.1", &x, 1.5)
}
