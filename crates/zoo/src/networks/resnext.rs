//! ResNeXt-50 (32x4d), with group convolutions and with every group as its own branch.
//!
//! For a given seed both forms contain the same weights, so they compute the same function.

use super::{
    Outputs,
    resnet::{DEPTHS_50, conv_norm_relu, expand, merge, staged},
};
use crate::builder::{Builder, Conv, Value};

/// Number of groups, or of branches.
const CARDINALITY: i64 = 32;

fn grouped_block(b: &mut Builder, x: &Value, width: i64, stride: i64) -> Value {
    let y = conv_norm_relu(b, 1, x, Conv::new(width, 1));
    let y = conv_norm_relu(b, 2, &y, Conv::new(width, 3).stride(stride).pad(1).groups(CARDINALITY));
    let y = expand(b, &y, 2 * width);
    merge(b, x, &y, stride)
}

fn branched_block(b: &mut Builder, x: &Value, width: i64, stride: i64) -> Value {
    let part = width / CARDINALITY;
    let branches: Vec<_> = (0..CARDINALITY as u64)
        .map(|branch| {
            b.within_part(format!("branch{branch}"), branch, |b| {
                let y = conv_norm_relu(b, 1, x, Conv::new(part, 1));
                conv_norm_relu(b, 2, &y, Conv::new(part, 3).stride(stride).pad(1))
            })
        })
        .collect();
    let y = b.concat(&branches, 1);
    let y = expand(b, &y, 2 * width);
    merge(b, x, &y, stride)
}

/// The form with group convolutions.
pub(crate) fn grouped(b: &mut Builder, inputs: &[Value]) -> Outputs {
    staged(b, &inputs[0], DEPTHS_50, 128, grouped_block)
}

/// The form with 32 branches in each block, concatenated before the last convolution.
pub(crate) fn branches(b: &mut Builder, inputs: &[Value]) -> Outputs {
    staged(b, &inputs[0], DEPTHS_50, 128, branched_block)
}
