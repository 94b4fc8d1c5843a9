//! One block of GPT-2 (small), with its causal mask and the flattened dense layers of the reference
//! implementation.

use super::{Outputs, single};
use crate::{
    builder::{Builder, Dim, Value},
    catalog::Element,
};

const WIDTH: i64 = 768;
const HEADS: i64 = 12;
const HEAD: i64 = WIDTH / HEADS;
const EPSILON: f32 = 1e-5;

/// A dense layer on all positions at once: flatten, `Gemm`, restore.
fn flat_dense(b: &mut Builder, name: &str, x: &Value, out: i64) -> Value {
    let rows = x.shape[0].times(x.size(1));
    let flat = b.reshape(x, &[rows, x.shape[2]]);
    let y = b.dense_untransposed(name, &flat, out, 1.0);
    b.reshape(&y, &[x.shape[0], x.shape[1], Dim::Fixed(out)])
}

/// True where a query may see a key: not one after itself.
fn causal_mask(b: &mut Builder, length: i64) -> Value {
    let visible = (0..length).flat_map(|query| (0..length).map(move |key| u8::from(key <= query))).collect();
    b.constant(Element::Bool, &[1, 1, length, length], visible)
}

fn attention(b: &mut Builder, x: &Value) -> Value {
    let joint = flat_dense(b, "c_attn", x, 3 * WIDTH);
    let parts = b.split(&joint, 2, 3);
    let mut heads = |part: &Value, order: &[usize]| {
        let y = b.reshape(part, &[x.shape[0], x.shape[1], Dim::Fixed(HEADS), Dim::Fixed(HEAD)]);
        b.transpose(&y, order)
    };
    let query = heads(&parts[0], &[0, 2, 1, 3]);
    let key = heads(&parts[1], &[0, 2, 3, 1]);
    let value = heads(&parts[2], &[0, 2, 1, 3]);
    let scores = b.matmul(&query, &key);
    let scores = b.div_scalar(&scores, (HEAD as f32).sqrt());
    let mask = causal_mask(b, x.size(1));
    let hidden = b.scalar(f32::MIN);
    let scores = b.select(&mask, &scores, &hidden);
    let weights = b.softmax(&scores);
    let context = b.matmul(&weights, &value);
    let context = b.transpose(&context, &[0, 2, 1, 3]);
    let context = b.reshape(&context, &x.shape);
    flat_dense(b, "c_proj", &context, WIDTH)
}

/// The whole block.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let x = &inputs[0];
    let y = b.layer_norm("ln_1", x, EPSILON);
    let y = b.within("attn", |b| attention(b, &y));
    let x = b.add(&y, x);
    let y = b.layer_norm("ln_2", &x, EPSILON);
    let y = b.within("mlp", |b| {
        let y = flat_dense(b, "c_fc", &y, 4 * WIDTH);
        let y = b.gelu_tanh(&y);
        flat_dense(b, "c_proj", &y, WIDTH)
    });
    let result = b.add(&x, &y);
    single("hidden_states_out", result)
}
