//! ViT: pre-norm encoder layers over a class token and the patches of an image.

use super::{Outputs, head};
use crate::builder::{Builder, Conv, Dim, Value};

const EPSILON: f32 = 1e-6;

/// What one size of the network differs in from another.
struct Size {
    width: i64,
    heads: i64,
    layers: usize,
    /// Height and width of a patch.
    patch: i64,
}

const BASE: Size = Size { width: 768, heads: 12, layers: 12, patch: 16 };
const LARGE: Size = Size { width: 1024, heads: 16, layers: 24, patch: 16 };
const HUGE: Size = Size { width: 1280, heads: 16, layers: 32, patch: 14 };

/// Patches as a sequence, led by the class token, with positions added.
fn embed(b: &mut Builder, size: &Size, image: &Value) -> Value {
    let width = size.width;
    let patches = b.conv("patch_embed.proj", image, Conv::new(width, size.patch).stride(size.patch).bias().gain(1.0));
    let count = patches.size(2) * patches.size(3);
    let patches = b.reshape(&patches, &[patches.shape[0], Dim::Fixed(width), Dim::Fixed(count)]);
    let patches = b.transpose(&patches, &[0, 2, 1]);
    let class = b.weight("cls_token", &[1, 1, width], -1.0, 1.0);
    let class = b.repeat_for_batch(&class, &patches);
    let sequence = b.concat(&[class, patches], 1);
    let positions = b.weight("pos_embed", &[1, count + 1, width], -0.5, 0.5);
    b.add(&sequence, &positions)
}

/// Queries, keys and values from one projection.
fn attention(b: &mut Builder, size: &Size, x: &Value) -> Value {
    let head = size.width / size.heads;
    let joint = b.linear("qkv", x, 3 * size.width, 1.0);
    let split = [x.shape[0], x.shape[1], Dim::Fixed(3), Dim::Fixed(size.heads), Dim::Fixed(head)];
    let joint = b.reshape(&joint, &split);
    let joint = b.transpose(&joint, &[2, 0, 3, 1, 4]);
    let query = b.pick(&joint, 0, 0);
    let key = b.pick(&joint, 0, 1);
    let value = b.pick(&joint, 0, 2);
    let query = b.mul_scalar(&query, 1.0 / (head as f32).sqrt());
    let key = b.transpose(&key, &[0, 1, 3, 2]);
    let scores = b.matmul(&query, &key);
    let weights = b.softmax(&scores);
    let context = b.matmul(&weights, &value);
    let context = b.transpose(&context, &[0, 2, 1, 3]);
    let context = b.reshape(&context, &x.shape);
    b.linear("proj", &context, size.width, 1.0)
}

fn feed_forward(b: &mut Builder, size: &Size, x: &Value) -> Value {
    let y = b.linear("fc1", x, 4 * size.width, 1.0);
    let y = b.gelu_erf(&y);
    b.linear("fc2", &y, size.width, 1.0)
}

/// ViT-base.
pub(crate) fn base(b: &mut Builder, inputs: &[Value]) -> Outputs {
    network(b, &BASE, inputs)
}

/// ViT-large.
pub(crate) fn large(b: &mut Builder, inputs: &[Value]) -> Outputs {
    network(b, &LARGE, inputs)
}

/// ViT-huge.
pub(crate) fn huge(b: &mut Builder, inputs: &[Value]) -> Outputs {
    network(b, &HUGE, inputs)
}

/// The whole network.
fn network(b: &mut Builder, size: &Size, inputs: &[Value]) -> Outputs {
    let mut x = embed(b, size, &inputs[0]);
    for layer in 0..size.layers {
        b.within(format!("blocks.{layer}"), |b| {
            let y = b.layer_norm("norm1", &x, EPSILON);
            let y = b.within("attn", |b| attention(b, size, &y));
            x = b.add(&x, &y);
            let y = b.layer_norm("norm2", &x, EPSILON);
            let y = b.within("mlp", |b| feed_forward(b, size, &y));
            x = b.add(&x, &y);
        });
    }
    let x = b.layer_norm("norm", &x, EPSILON);
    let class = b.pick(&x, 1, 0);
    head::dense_classifier(b, "head", &class, 1.0)
}
