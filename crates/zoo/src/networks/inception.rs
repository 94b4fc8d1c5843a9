//! Inception-v3 without its auxiliary classifier.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Pool, Value};

const EPSILON: f32 = 1e-3;

/// Convolution, batch normalization, ReLU.
fn unit(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    b.within(name, |b| {
        let y = b.conv("conv", x, conv);
        let y = b.batch_norm("bn", &y, EPSILON, 1.0);
        b.relu(&y)
    })
}

/// Units one after another, named `<name>_1`, `<name>_2`, ...
fn chain(b: &mut Builder, name: &str, x: &Value, convs: &[Conv]) -> Value {
    let mut x = x.clone();
    for (index, conv) in convs.iter().enumerate() {
        x = unit(b, &format!("{name}_{}", index + 1), &x, *conv);
    }
    x
}

/// Mean of 3x3 windows, border zeros counted, then a 1x1 unit.
fn pooled(b: &mut Builder, x: &Value, out: i64) -> Value {
    let y = b.pool(x, Pool::average(3, 1).pad(1).count_include_pad());
    unit(b, "branch_pool", &y, Conv::new(out, 1))
}

fn block_a(b: &mut Builder, x: &Value, pool: i64) -> Value {
    let one = unit(b, "branch1x1", x, Conv::new(64, 1));
    let five = chain(b, "branch5x5", x, &[Conv::new(48, 1), Conv::new(64, 5).pad(2)]);
    let double = [Conv::new(64, 1), Conv::new(96, 3).pad(1), Conv::new(96, 3).pad(1)];
    let double = chain(b, "branch3x3dbl", x, &double);
    let pooled = pooled(b, x, pool);
    b.concat(&[one, five, double, pooled], 1)
}

fn block_b(b: &mut Builder, x: &Value) -> Value {
    let three = unit(b, "branch3x3", x, Conv::new(384, 3).stride(2));
    let double = [Conv::new(64, 1), Conv::new(96, 3).pad(1), Conv::new(96, 3).stride(2)];
    let double = chain(b, "branch3x3dbl", x, &double);
    let pooled = b.pool(x, Pool::max(3, 2));
    b.concat(&[three, double, pooled], 1)
}

fn block_c(b: &mut Builder, x: &Value, width: i64) -> Value {
    let wide = |out| Conv::rect(out, 1, 7).centered();
    let tall = |out| Conv::rect(out, 7, 1).centered();
    let one = unit(b, "branch1x1", x, Conv::new(192, 1));
    let seven = chain(b, "branch7x7", x, &[Conv::new(width, 1), wide(width), tall(192)]);
    let double = [Conv::new(width, 1), tall(width), wide(width), tall(width), wide(192)];
    let double = chain(b, "branch7x7dbl", x, &double);
    let pooled = pooled(b, x, 192);
    b.concat(&[one, seven, double, pooled], 1)
}

fn block_d(b: &mut Builder, x: &Value) -> Value {
    let three = chain(b, "branch3x3", x, &[Conv::new(192, 1), Conv::new(320, 3).stride(2)]);
    let seven = [Conv::new(192, 1), Conv::rect(192, 1, 7).centered(), Conv::rect(192, 7, 1).centered(), Conv::new(192, 3).stride(2)];
    let seven = chain(b, "branch7x7x3", x, &seven);
    let pooled = b.pool(x, Pool::max(3, 2));
    b.concat(&[three, seven, pooled], 1)
}

fn block_e(b: &mut Builder, x: &Value) -> Value {
    let fork = |b: &mut Builder, name: &str, x: &Value| {
        let wide = unit(b, &format!("{name}_a"), x, Conv::rect(384, 1, 3).centered());
        let tall = unit(b, &format!("{name}_b"), x, Conv::rect(384, 3, 1).centered());
        b.concat(&[wide, tall], 1)
    };
    let one = unit(b, "branch1x1", x, Conv::new(320, 1));
    let three = unit(b, "branch3x3_1", x, Conv::new(384, 1));
    let three = fork(b, "branch3x3_2", &three);
    let double = chain(b, "branch3x3dbl", x, &[Conv::new(448, 1), Conv::new(384, 3).pad(1)]);
    let double = fork(b, "branch3x3dbl_3", &double);
    let pooled = pooled(b, x, 192);
    b.concat(&[one, three, double, pooled], 1)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = unit(b, "Conv2d_1a_3x3", &inputs[0], Conv::new(32, 3).stride(2));
    x = unit(b, "Conv2d_2a_3x3", &x, Conv::new(32, 3));
    x = unit(b, "Conv2d_2b_3x3", &x, Conv::new(64, 3).pad(1));
    x = b.pool(&x, Pool::max(3, 2));
    x = unit(b, "Conv2d_3b_1x1", &x, Conv::new(80, 1));
    x = unit(b, "Conv2d_4a_3x3", &x, Conv::new(192, 3));
    x = b.pool(&x, Pool::max(3, 2));
    for (name, pool) in [("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)] {
        x = b.within(name, |b| block_a(b, &x, pool));
    }
    x = b.within("Mixed_6a", |b| block_b(b, &x));
    for (name, width) in [("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)] {
        x = b.within(name, |b| block_c(b, &x, width));
    }
    x = b.within("Mixed_7a", |b| block_d(b, &x));
    for name in ["Mixed_7b", "Mixed_7c"] {
        x = b.within(name, |b| block_e(b, &x));
    }
    head::pooled_classifier(b, "fc", &x, 0.6)
}
