//! AlexNet as first published: two groups, local response normalization, overlapping pooling.

use std::f32::consts::SQRT_2;

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

/// `x / (2 + 1e-4 * sum of 5 neighbouring squares) ^ 0.75`. ONNX divides its `alpha` by the number
/// of neighbours.
fn normalize(b: &mut Builder, x: &Value) -> Value {
    b.local_response_norm(x, 5, 5e-4, 0.75, 2.0)
}

fn conv_relu(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    let y = b.conv(name, x, conv.bias());
    b.relu(&y)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let pool = Pool::max(3, 2);
    // The normalizations divide by about 2^0.75; the weights before them compensate.
    let mut x = conv_relu(b, "conv1", &inputs[0], Conv::new(96, 11).stride(4).pad(2).gain(2.4));
    x = normalize(b, &x);
    x = b.pool(&x, pool);
    x = conv_relu(b, "conv2", &x, Conv::new(256, 5).pad(2).groups(2).gain(2.0));
    x = normalize(b, &x);
    x = b.pool(&x, pool);
    x = conv_relu(b, "conv3", &x, Conv::new(384, 3).pad(1));
    x = conv_relu(b, "conv4", &x, Conv::new(384, 3).pad(1).groups(2));
    x = conv_relu(b, "conv5", &x, Conv::new(256, 3).pad(1).groups(2));
    x = b.pool(&x, pool);
    x = b.flatten(&x);
    for name in ["fc6", "fc7"] {
        x = b.dense(name, &x, 4096, SQRT_2);
        x = b.relu(&x);
    }
    head::dense_classifier(b, "fc8", &x, 1.0)
}
