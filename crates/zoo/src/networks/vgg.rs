//! VGG-19.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

/// Channels and number of convolutions of each stage.
const STAGES: [(i64, usize); 5] = [(64, 2), (128, 2), (256, 4), (512, 4), (512, 4)];

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for (stage, (channels, count)) in STAGES.into_iter().enumerate() {
        for index in 0..count {
            x = b.conv(&format!("conv{}_{}", stage + 1, index + 1), &x, Conv::new(channels, 3).pad(1).bias());
            x = b.relu(&x);
        }
        x = b.pool(&x, Pool::max(2, 2));
    }
    x = b.flatten(&x);
    for name in ["fc6", "fc7"] {
        x = b.dense(name, &x, 4096, std::f32::consts::SQRT_2);
        x = b.relu(&x);
    }
    head::dense_classifier(b, "fc8", &x, 1.0)
}
