//! NASNet-A (4 @ 1056), the mobile network.
//!
//! A cell reads the two states before it. Padding follows the original: `ceil(size / stride)`
//! results, odd padding at the end; means exclude the border.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

const EPSILON: f32 = 1e-3;
/// Channels of a state inside the cells of the first stage (the last state has 24 times as many).
const FILTERS: i64 = 44;
/// Scale of the last normalization of a separable convolution: cells add two of them.
const BRANCH_GAIN: f32 = 0.7;

/// ReLU, then a separable convolution with batch normalization, twice; only the first has the
/// stride.
fn separable(b: &mut Builder, name: &str, x: &Value, out: i64, kernel: i64, stride: i64) -> Value {
    b.within(name, |b| {
        let mut x = x.clone();
        for (index, stride, gain) in [(1, stride, 1.0), (2, 1, BRANCH_GAIN)] {
            x = b.relu(&x);
            let channels = x.size(1);
            let depthwise = Conv::new(channels, kernel).stride(stride).same().groups(channels);
            x = b.conv(&format!("depthwise_{index}"), &x, depthwise);
            x = b.conv(&format!("pointwise_{index}"), &x, Conv::new(out, 1).gain(1.15));
            x = b.batch_norm(&format!("bn_{index}"), &x, EPSILON, gain);
        }
        x
    })
}

/// ReLU, 1x1 convolution, batch normalization.
fn squeeze(b: &mut Builder, name: &str, x: &Value, out: i64) -> Value {
    b.within(name, |b| {
        let y = b.relu(x);
        let y = b.conv("conv", &y, Conv::new(out, 1).gain(1.3));
        b.batch_norm("bn", &y, EPSILON, 1.0)
    })
}

/// Halves the image: every second pixel on two grids, one pixel apart, each with half of the
/// channels.
fn factorized_reduction(b: &mut Builder, name: &str, x: &Value, out: i64) -> Value {
    b.within(name, |b| {
        let x = b.relu(x);
        let even = b.pool(&x, Pool::average(1, 2));
        let even = b.conv("path_1", &even, Conv::new(out / 2, 1));
        let odd = b.pad_bottom_right(&x);
        let odd = b.crop_top_left(&odd);
        let odd = b.pool(&odd, Pool::average(1, 2));
        let odd = b.conv("path_2", &odd, Conv::new(out / 2, 1));
        let both = b.concat(&[even, odd], 1);
        b.batch_norm("bn", &both, EPSILON, 1.0)
    })
}

/// The state before the last, adjusted to the size and the channels of a cell.
fn adjust(b: &mut Builder, before: &Value, current: &Value, filters: i64) -> Value {
    if before.shape[2] == current.shape[2] {
        squeeze(b, "prev_1x1", before, filters)
    } else {
        factorized_reduction(b, "prev_reduction", before, filters)
    }
}

fn normal_cell(b: &mut Builder, before: &Value, current: &Value, filters: i64) -> Value {
    let p = adjust(b, before, current, filters);
    let x = squeeze(b, "1x1", current, filters);
    let average = Pool::average(3, 1).same();

    let left = separable(b, "comb_0_left", &x, filters, 5, 1);
    let right = separable(b, "comb_0_right", &p, filters, 3, 1);
    let first = b.add(&left, &right);

    let left = separable(b, "comb_1_left", &p, filters, 5, 1);
    let right = separable(b, "comb_1_right", &p, filters, 3, 1);
    let second = b.add(&left, &right);

    let left = b.pool(&x, average);
    let third = b.add(&left, &p);

    let left = b.pool(&p, average);
    let right = b.pool(&p, average);
    let fourth = b.add(&left, &right);

    let left = separable(b, "comb_4_left", &x, filters, 3, 1);
    let fifth = b.add(&left, &x);

    b.concat(&[p, first, second, third, fourth, fifth], 1)
}

/// The part of a reduction cell after its two inputs `p` and `x` are adjusted.
fn reduce(b: &mut Builder, p: &Value, x: &Value, filters: i64) -> Value {
    let left = separable(b, "comb_0_left", x, filters, 5, 2);
    let right = separable(b, "comb_0_right", p, filters, 7, 2);
    let first = b.add(&left, &right);

    let left = b.pool(x, Pool::max(3, 2).same());
    let right = separable(b, "comb_1_right", p, filters, 7, 2);
    let second = b.add(&left, &right);

    let left = b.pool(x, Pool::average(3, 2).same());
    let right = separable(b, "comb_2_right", p, filters, 5, 2);
    let third = b.add(&left, &right);

    let right = b.pool(&first, Pool::average(3, 1).same());
    let fourth = b.add(&right, &second);

    let left = separable(b, "comb_4_left", &first, filters, 3, 1);
    let right = b.pool(x, Pool::max(3, 2).same());
    let fifth = b.add(&left, &right);

    b.concat(&[second, third, fourth, fifth], 1)
}

fn reduction_cell(b: &mut Builder, before: &Value, current: &Value, filters: i64) -> Value {
    let p = adjust(b, before, current, filters);
    let x = squeeze(b, "1x1", current, filters);
    reduce(b, &p, &x, filters)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let stem = b.within("stem", |b| {
        let y = b.conv("conv", &inputs[0], Conv::new(32, 3).stride(2));
        b.batch_norm("bn", &y, EPSILON, 1.0)
    });
    let first = b.within("cell_stem_0", |b| {
        // There is no earlier state: the stem itself takes its place, with its own number of
        // channels.
        let x = squeeze(b, "1x1", &stem, FILTERS / 4);
        reduce(b, &stem, &x, FILTERS / 4)
    });
    let second = b.within("cell_stem_1", |b| reduction_cell(b, &stem, &first, FILTERS / 2));

    let (mut before, mut current) = (first, second);
    for stage in 0..3 {
        let filters = FILTERS << stage;
        if stage > 0 {
            let reduced = b.within(format!("reduction_{}", stage - 1), |b| reduction_cell(b, &before, &current, filters));
            before = std::mem::replace(&mut current, reduced);
        }
        for index in 0..4 {
            let next = b.within(format!("cell_{stage}_{index}"), |b| normal_cell(b, &before, &current, filters));
            before = std::mem::replace(&mut current, next);
        }
    }
    let features = b.relu(&current);
    head::pooled_classifier(b, "last_linear", &features, 0.25)
}
