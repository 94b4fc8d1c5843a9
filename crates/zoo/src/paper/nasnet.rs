//! NasNet-A of TASO and TENSAT.

use super::conv_relu;
use crate::{
    builder::{Builder, Conv, Pool, Value},
    networks::{Outputs, single},
};

/// A depthwise and a pointwise convolution, once (the real network has two pairs, with
/// normalization and ReLU).
fn separable(b: &mut Builder, name: &str, x: &Value, kernel: i64, stride: i64) -> Value {
    let channels = x.size(1);
    b.within(name, |b| {
        let y = b.conv("depthwise", x, Conv::new(channels, kernel).stride(stride).centered().groups(channels));
        b.conv("pointwise", &y, Conv::new(channels, 1).gain(0.7))
    })
}

/// Both states brought to `channels`.
fn squeeze_both(b: &mut Builder, before: &Value, current: &Value, channels: i64) -> (Value, Value) {
    let current = conv_relu(b, "squeeze", current, Conv::new(channels, 1).gain(1.0));
    let before = if before.size(2) == current.size(2) {
        conv_relu(b, "fit", before, Conv::new(channels, 1).gain(1.0))
    } else {
        conv_relu(b, "fit", before, Conv::new(channels, 3).stride(2).centered().gain(1.0))
    };
    (before, current)
}

/// Five sums, without the earlier state itself and with 3x3 kernels throughout, unlike the real
/// cell.
fn normal(b: &mut Builder, before: &Value, current: &Value, channels: i64) -> Value {
    let (p, x) = squeeze_both(b, before, current, channels);
    let average = Pool::average(3, 1).pad(1);

    let left = separable(b, "a0", &x, 3, 1);
    let first = b.add(&left, &x);

    let left = separable(b, "a1_left", &p, 3, 1);
    let right = separable(b, "a1_right", &x, 3, 1);
    let second = b.add(&left, &right);

    let left = b.pool(&x, average);
    let third = b.add(&left, &p);

    let left = b.pool(&p, average);
    let right = b.pool(&p, average);
    let fourth = b.add(&left, &right);

    let left = separable(b, "a4_left", &p, 3, 1);
    let right = separable(b, "a4_right", &p, 3, 1);
    let fifth = b.add(&left, &right);

    b.concat(&[first, second, third, fourth, fifth], 1)
}

fn reduction(b: &mut Builder, before: &Value, current: &Value, channels: i64) -> Value {
    let (p, x) = squeeze_both(b, before, current, channels);

    let left = separable(b, "b0_left", &p, 7, 2);
    let right = separable(b, "b0_right", &x, 5, 2);
    let first = b.add(&left, &right);

    let left = b.pool(&x, Pool::max(3, 2).pad(1));
    let right = separable(b, "b1", &p, 7, 2);
    let second = b.add(&left, &right);

    let left = b.pool(&x, Pool::average(3, 2).pad(1));
    let right = separable(b, "b2", &x, 5, 2);
    let third = b.add(&left, &right);

    let left = b.pool(&x, Pool::max(3, 2).pad(1));
    let right = separable(b, "b3", &first, 3, 1);
    let fourth = b.add(&left, &right);

    let left = b.pool(&first, Pool::average(3, 1).pad(1));
    let fifth = b.add(&left, &second);

    b.concat(&[first, second, third, fourth, fifth], 1)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let stem = conv_relu(b, "stem", &inputs[0], Conv::new(64, 7).stride(2).centered());
    let mut x = b.pool(&stem, Pool::max(3, 2).pad(1));
    for stage in 0..3 {
        let channels = 128 << stage;
        let (mut before, mut current) = (x.clone(), x);
        for index in 0..5 {
            let next = b.within(format!("stage{stage}.normal{index}"), |b| normal(b, &before, &current, channels));
            before = std::mem::replace(&mut current, next);
        }
        x = b.within(format!("stage{stage}.reduction"), |b| reduction(b, &before, &current, 2 * channels));
    }
    single("features", x)
}
