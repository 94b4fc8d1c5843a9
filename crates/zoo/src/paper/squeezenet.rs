//! SqueezeNet 1.1 of TENSAT.

use super::conv_relu;
use crate::{
    builder::{Builder, Conv, Dim, Pool, Value},
    networks::{Outputs, head::CLASSES, single},
};

fn fire(b: &mut Builder, index: usize, x: &Value, squeeze: i64, expand: i64) -> Value {
    b.within(format!("fire{index}"), |b| {
        let squeezed = conv_relu(b, "squeeze", x, Conv::new(squeeze, 1));
        let one = conv_relu(b, "expand1x1", &squeezed, Conv::new(expand, 1));
        let three = conv_relu(b, "expand3x3", &squeezed, Conv::new(expand, 3).centered());
        b.concat(&[one, three], 1)
    })
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = conv_relu(b, "stem", &inputs[0], Conv::new(64, 3).stride(2));
    let fires = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)];
    for (index, (squeeze, expand)) in fires.into_iter().enumerate() {
        if matches!(index, 0 | 2 | 4) {
            x = b.pool(&x, Pool::max(3, 2));
        }
        x = fire(b, index + 2, &x, squeeze, expand);
    }
    x = b.dropout(&x);
    x = conv_relu(b, "classifier", &x, Conv::new(CLASSES, 1));
    x = b.pool(&x, Pool::average(13, 13));
    let logits = b.reshape(&x, &[x.shape[0], Dim::Fixed(CLASSES)]);
    single("logits", logits)
}
