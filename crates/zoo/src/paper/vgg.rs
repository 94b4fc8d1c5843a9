//! VGG-19 of TENSAT.

use super::conv_relu;
use crate::{
    builder::{Builder, Conv, Dim, Pool, Value},
    networks::{Outputs, head::CLASSES, single},
};

const STAGES: [(i64, usize); 5] = [(64, 2), (128, 2), (256, 4), (512, 4), (512, 4)];

/// `x @ transpose(W)`, with the transposition of the weight as a node of the graph.
fn dense(b: &mut Builder, name: &str, x: &Value, out: i64, gain: f32) -> Value {
    let width = x.size(1);
    b.within(name, |b| {
        let bound = gain * (3.0 / width as f32).sqrt();
        let weight = b.filters("weight", &[out, width], bound);
        let weight = b.transpose(&weight, &[1, 0]);
        b.matmul(x, &weight)
    })
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for (stage, (channels, count)) in STAGES.into_iter().enumerate() {
        for index in 0..count {
            x = conv_relu(b, &format!("conv{stage}_{index}"), &x, Conv::new(channels, 3).centered());
        }
        x = b.pool(&x, Pool::max(2, 2));
    }
    for name in ["fc1", "fc2"] {
        let width = (1..x.rank()).map(|axis| x.size(axis)).product();
        x = b.reshape(&x, &[x.shape[0], Dim::Fixed(width)]);
        x = dense(b, name, &x, 4096, std::f32::consts::SQRT_2);
        x = b.relu(&x);
        x = b.dropout(&x);
    }
    x = b.reshape(&x, &[x.shape[0], x.shape[1]]);
    let logits = dense(b, "fc3", &x, CLASSES, 1.0);
    single("logits", logits)
}
