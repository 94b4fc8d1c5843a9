//! ViT-base with patches of 16x16 pixels: 12 pre-norm encoder layers over a class token and 196
//! patches.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Dim, Value};

const WIDTH: i64 = 768;
const HEADS: i64 = 12;
const HEAD: i64 = WIDTH / HEADS;
const LAYERS: usize = 12;
const PATCH: i64 = 16;
const EPSILON: f32 = 1e-6;

/// Patches as a sequence, led by the class token, with positions added.
fn embed(b: &mut Builder, image: &Value) -> Value {
    let patches = b.conv("patch_embed.proj", image, Conv::new(WIDTH, PATCH).stride(PATCH).bias().gain(1.0));
    let count = patches.size(2) * patches.size(3);
    let patches = b.reshape(&patches, &[patches.shape[0], Dim::Fixed(WIDTH), Dim::Fixed(count)]);
    let patches = b.transpose(&patches, &[0, 2, 1]);
    let class = b.weight("cls_token", &[1, 1, WIDTH], -1.0, 1.0);
    let class = b.repeat_for_batch(&class, &patches);
    let sequence = b.concat(&[class, patches], 1);
    let positions = b.weight("pos_embed", &[1, count + 1, WIDTH], -0.5, 0.5);
    b.add(&sequence, &positions)
}

/// Queries, keys and values from one projection.
fn attention(b: &mut Builder, x: &Value) -> Value {
    let joint = b.linear("qkv", x, 3 * WIDTH, 1.0);
    let split = [x.shape[0], x.shape[1], Dim::Fixed(3), Dim::Fixed(HEADS), Dim::Fixed(HEAD)];
    let joint = b.reshape(&joint, &split);
    let joint = b.transpose(&joint, &[2, 0, 3, 1, 4]);
    let query = b.pick(&joint, 0, 0);
    let key = b.pick(&joint, 0, 1);
    let value = b.pick(&joint, 0, 2);
    let query = b.mul_scalar(&query, 1.0 / (HEAD as f32).sqrt());
    let key = b.transpose(&key, &[0, 1, 3, 2]);
    let scores = b.matmul(&query, &key);
    let weights = b.softmax(&scores);
    let context = b.matmul(&weights, &value);
    let context = b.transpose(&context, &[0, 2, 1, 3]);
    let context = b.reshape(&context, &x.shape);
    b.linear("proj", &context, WIDTH, 1.0)
}

fn feed_forward(b: &mut Builder, x: &Value) -> Value {
    let y = b.linear("fc1", x, 4 * WIDTH, 1.0);
    let y = b.gelu_erf(&y);
    b.linear("fc2", &y, WIDTH, 1.0)
}

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = embed(b, &inputs[0]);
    for layer in 0..LAYERS {
        b.within(format!("blocks.{layer}"), |b| {
            let y = b.layer_norm("norm1", &x, EPSILON);
            let y = b.within("attn", |b| attention(b, &y));
            x = b.add(&x, &y);
            let y = b.layer_norm("norm2", &x, EPSILON);
            let y = b.within("mlp", |b| feed_forward(b, &y));
            x = b.add(&x, &y);
        });
    }
    let x = b.layer_norm("norm", &x, EPSILON);
    let class = b.pick(&x, 1, 0);
    head::dense_classifier(b, "head", &class, 1.0)
}
