//! Inception-v3 of TENSAT and Inception-E-n of OCGGS.

use super::conv_relu;
use crate::{
    builder::{Builder, Conv, Pool, Value},
    networks::{Outputs, single},
};

/// A chain of convolutions with ReLUs.
fn chain(b: &mut Builder, name: &str, x: &Value, convs: &[Conv]) -> Value {
    let mut x = x.clone();
    for (index, conv) in convs.iter().enumerate() {
        x = conv_relu(b, &format!("{name}_{}", index + 1), &x, *conv);
    }
    x
}

/// A square kernel that keeps the size of the image.
fn square(out: i64, kernel: i64) -> Conv {
    Conv::new(out, kernel).centered()
}

/// A kernel of one row.
fn wide(out: i64, columns: i64) -> Conv {
    Conv::rect(out, 1, columns).centered()
}

/// A kernel of one column.
fn tall(out: i64, rows: i64) -> Conv {
    Conv::rect(out, rows, 1).centered()
}

/// A concatenation of four, as a tree of binary ones.
fn concat_tree(b: &mut Builder, parts: [Value; 4]) -> Value {
    let [first, second, third, fourth] = parts;
    let left = b.concat(&[first, second], 1);
    let right = b.concat(&[third, fourth], 1);
    b.concat(&[left, right], 1)
}

fn block_a(b: &mut Builder, x: &Value, pool: i64) -> Value {
    let one = chain(b, "one", x, &[square(64, 1)]);
    let five = chain(b, "five", x, &[square(48, 1), square(64, 5)]);
    let double = chain(b, "double", x, &[square(64, 1), square(96, 3), square(96, 3)]);
    let pooled = b.pool(x, Pool::average(3, 1).pad(1));
    let pooled = chain(b, "pool", &pooled, &[square(pool, 1)]);
    concat_tree(b, [one, five, double, pooled])
}

fn block_b(b: &mut Builder, x: &Value) -> Value {
    let three = chain(b, "three", x, &[Conv::new(384, 3).stride(2)]);
    let double = chain(b, "double", x, &[square(64, 1), square(96, 3), Conv::new(96, 3).stride(2)]);
    let pooled = b.pool(x, Pool::average(3, 2));
    let both = b.concat(&[three, double], 1);
    b.concat(&[pooled, both], 1)
}

fn block_c(b: &mut Builder, x: &Value, c: i64) -> Value {
    let one = chain(b, "one", x, &[square(192, 1)]);
    let seven = chain(b, "seven", x, &[square(c, 1), wide(c, 7), tall(192, 7)]);
    let double = [square(c, 1), tall(c, 7), wide(c, 7), tall(c, 7), wide(192, 7)];
    let double = chain(b, "double", x, &double);
    let pooled = b.pool(x, Pool::average(3, 1).pad(1));
    let pooled = chain(b, "pool", &pooled, &[square(192, 1)]);
    concat_tree(b, [one, seven, double, pooled])
}

fn block_d(b: &mut Builder, x: &Value) -> Value {
    let three = chain(b, "three", x, &[square(192, 1), Conv::new(320, 3).stride(2)]);
    let seven = [square(192, 1), wide(192, 7), tall(192, 7), Conv::new(192, 3).stride(2)];
    let seven = chain(b, "seven", x, &seven);
    let pooled = b.pool(x, Pool::max(3, 2));
    b.concat(&[three, seven, pooled], 1)
}

fn block_e(b: &mut Builder, x: &Value) -> Value {
    let fork = |b: &mut Builder, name: &str, x: &Value| {
        let left = chain(b, &format!("{name}_wide"), x, &[wide(384, 3)]);
        let right = chain(b, &format!("{name}_tall"), x, &[tall(384, 3)]);
        b.concat(&[left, right], 1)
    };
    let one = chain(b, "one", x, &[square(320, 1)]);
    let three = chain(b, "three", x, &[square(384, 1)]);
    let three = fork(b, "three", &three);
    let double = chain(b, "double", x, &[square(448, 1), square(384, 3)]);
    let double = fork(b, "double", &double);
    let pooled = b.pool(x, Pool::max(3, 1).pad(1));
    let pooled = chain(b, "pool", &pooled, &[square(192, 1)]);
    b.concat(&[one, three, double, pooled], 1)
}

/// Inception-v3 without its classifier.
pub(crate) fn inception_v3(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = chain(b, "stem_a", &inputs[0], &[Conv::new(32, 3).stride(2), Conv::new(32, 3), square(64, 3)]);
    x = b.pool(&x, Pool::max(3, 2));
    x = chain(b, "stem_b", &x, &[Conv::new(80, 1), Conv::new(192, 3)]);
    x = b.pool(&x, Pool::max(3, 2));
    for (index, pool) in [32, 64, 64].into_iter().enumerate() {
        x = b.within(format!("a{index}"), |b| block_a(b, &x, pool));
    }
    x = b.within("b", |b| block_b(b, &x));
    for (index, width) in [128, 160, 160, 192].into_iter().enumerate() {
        x = b.within(format!("c{index}"), |b| block_c(b, &x, width));
    }
    x = b.within("d", |b| block_d(b, &x));
    for index in 0..2 {
        x = b.within(format!("e{index}"), |b| block_e(b, &x));
    }
    let pooled = b.pool(&x, Pool::average(8, 1));
    single("features", pooled)
}

/// `N` blocks of the last stage.
pub(crate) fn blocks_e<const N: usize>(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for index in 0..N {
        x = b.within(format!("block{index}"), |b| block_e(b, &x));
    }
    single("features", x)
}
