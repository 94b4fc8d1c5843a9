//! SqueezeNet 1.1.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

/// Squeeze to `squeeze` channels, then expand to `expand` channels twice, with 1x1 and with 3x3
/// kernels.
fn fire(b: &mut Builder, name: &str, x: &Value, squeeze: i64, expand: i64) -> Value {
    b.within(name, |b| {
        let squeezed = conv_relu(b, "squeeze", x, Conv::new(squeeze, 1));
        let one = conv_relu(b, "expand1x1", &squeezed, Conv::new(expand, 1));
        let three = conv_relu(b, "expand3x3", &squeezed, Conv::new(expand, 3).pad(1));
        b.concat(&[one, three], 1)
    })
}

fn conv_relu(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    let y = b.conv(name, x, conv.bias());
    b.relu(&y)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let pool = Pool::max(3, 2).ceil();
    let mut x = conv_relu(b, "conv1", &inputs[0], Conv::new(64, 3).stride(2));
    x = b.pool(&x, pool);
    x = fire(b, "fire2", &x, 16, 64);
    x = fire(b, "fire3", &x, 16, 64);
    x = b.pool(&x, pool);
    x = fire(b, "fire4", &x, 32, 128);
    x = fire(b, "fire5", &x, 32, 128);
    x = b.pool(&x, pool);
    x = fire(b, "fire6", &x, 48, 192);
    x = fire(b, "fire7", &x, 48, 192);
    x = fire(b, "fire8", &x, 64, 256);
    x = fire(b, "fire9", &x, 64, 256);
    x = conv_relu(b, "conv10", &x, Conv::new(head::CLASSES, 1));
    x = b.global_average_pool(&x);
    x = b.flatten(&x);
    head::probabilities(b, &x)
}
