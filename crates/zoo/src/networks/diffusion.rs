//! One transformer block of Stable Diffusion's denoiser, at its finest level: all positions of a
//! latent image attend to each other, and then to a text.

use super::{Outputs, single};
use crate::builder::{Builder, Dim, Value};

const HEADS: i64 = 8;
const EPSILON: f32 = 1e-5;

/// A projection split into heads, its axes (batch, head, position, element) in the given order.
fn heads(b: &mut Builder, name: &str, x: &Value, width: i64, order: &[usize]) -> Value {
    let y = b.project(name, x, width, 1.0);
    let y = b.reshape(&y, &[x.shape[0], x.shape[1], Dim::Fixed(HEADS), Dim::Fixed(width / HEADS)]);
    b.transpose(&y, order)
}

/// Attention of the positions of `x` to those of `context`.
fn attention(b: &mut Builder, x: &Value, context: &Value) -> Value {
    let width = x.size(2);
    let query = heads(b, "to_q", x, width, &[0, 2, 1, 3]);
    let key = heads(b, "to_k", context, width, &[0, 2, 3, 1]);
    let value = heads(b, "to_v", context, width, &[0, 2, 1, 3]);
    let scores = b.matmul(&query, &key);
    let scores = b.mul_scalar(&scores, 1.0 / ((width / HEADS) as f32).sqrt());
    let weights = b.softmax(&scores);
    let y = b.matmul(&weights, &value);
    let y = b.transpose(&y, &[0, 2, 1, 3]);
    let y = b.reshape(&y, &x.shape);
    b.linear("to_out", &y, width, 1.0)
}

/// A dense layer whose one half gates the other, and a dense layer.
fn feed_forward(b: &mut Builder, x: &Value) -> Value {
    let width = x.size(2);
    let joint = b.linear("proj", x, 8 * width, 1.0);
    let parts = b.split(&joint, 2, 2);
    let gate = b.gelu_erf(&parts[1]);
    let y = b.mul(&parts[0], &gate);
    b.linear("out", &y, width, 1.4)
}

/// The whole block: latent positions and the states of a text in; latent positions out.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [x, text] = inputs else { unreachable!("the catalog gives two inputs") };
    let y = b.layer_norm("norm1", x, EPSILON);
    let y = b.within("attn1", |b| attention(b, &y, &y));
    let x = b.add(&y, x);
    let y = b.layer_norm("norm2", &x, EPSILON);
    let y = b.within("attn2", |b| attention(b, &y, text));
    let x = b.add(&y, &x);
    let y = b.layer_norm("norm3", &x, EPSILON);
    let y = b.within("ff", |b| feed_forward(b, &y));
    let result = b.add(&y, &x);
    single("hidden_states_out", result)
}
