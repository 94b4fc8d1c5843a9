//! BERT, ViT and T-T of TASO, TENSAT and their successors: products without softmax, scale,
//! bias or normalization.

use crate::{
    builder::{Builder, Dim, Value},
    networks::{Outputs, single},
};

/// Scale of the second weight of a residual perceptron.
const BRANCH_GAIN: f32 = 0.4;

/// Widths of an attention, and how it treats its keys.
#[derive(Clone, Copy)]
struct Attention {
    heads: i64,
    /// Transposes each key, as attention must. Without it the product is defined only if the
    /// sequence is as long as a head is wide.
    transpose_keys: bool,
    /// Scale of the query, key and value weights. Without a softmax the result is cubic in its
    /// argument, and where it feeds a residual sum deep networks overflow unless this is small.
    gain: f32,
}

impl Attention {
    /// `(q @ k) @ v` for each head, merged again.
    fn apply(self, b: &mut Builder, x: &Value) -> Value {
        let width = x.size(1);
        let split = [x.shape[0], Dim::Fixed(self.heads), Dim::Fixed(width / self.heads)];
        let projected = ["query", "key", "value"].map(|name| b.project(name, x, width, self.gain));
        let [query, key, value] = projected.map(|y| b.reshape(&y, &split));
        let query = b.transpose(&query, &[1, 0, 2]);
        let key = b.transpose(&key, if self.transpose_keys { &[1, 2, 0] } else { &[1, 0, 2] });
        let value = b.transpose(&value, &[1, 0, 2]);
        let scores = b.matmul(&query, &key);
        let context = b.matmul(&scores, &value);
        let context = b.transpose(&context, &[1, 0, 2]);
        b.reshape(&context, &x.shape)
    }
}

/// Attention and perceptron, each with its residual sum. The published ViT has no activation in
/// between.
fn encoder_layer(b: &mut Builder, x: &Value, attention: Attention, wide: i64, relu: bool) -> Value {
    let width = x.size(1);
    let y = b.within("attention", |b| {
        let context = attention.apply(b, x);
        b.project("linear", &context, width, 1.0)
    });
    let x = b.add(&y, x);
    let y = b.within("perceptron", |b| {
        let mut y = b.project("first", &x, wide, 1.0);
        if relu {
            y = b.relu(&y);
        }
        b.project("second", &y, width, BRANCH_GAIN)
    });
    b.add(&y, &x)
}

/// BERT. The linear layer reads the input of its layer, so that attention only leads to an output.
pub(crate) fn bert(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let attention = Attention { heads: 16, transpose_keys: false, gain: 0.5 };
    let mut x = b.relu(&inputs[0]);
    let mut outputs = Vec::new();
    for layer in 0..8 {
        b.within(format!("layer{layer}"), |b| {
            outputs.push((format!("attention{layer}"), attention.apply(b, &x)));
            x = b.project("linear", &x, 1024, 1.0);
        });
    }
    outputs.push(("last".to_owned(), x));
    outputs
}

/// ViT-base.
pub(crate) fn vit_base(b: &mut Builder, inputs: &[Value]) -> Outputs {
    vit(b, 12, 12, &inputs[0])
}

/// ViT-large.
pub(crate) fn vit_large(b: &mut Builder, inputs: &[Value]) -> Outputs {
    vit(b, 16, 24, &inputs[0])
}

/// ViT-huge.
pub(crate) fn vit_huge(b: &mut Builder, inputs: &[Value]) -> Outputs {
    vit(b, 16, 32, &inputs[0])
}

/// ViT. Its perceptrons are four times as wide as it is.
fn vit(b: &mut Builder, heads: i64, layers: usize, x: &Value) -> Outputs {
    let attention = Attention { heads, transpose_keys: false, gain: 0.1 };
    let mut x = b.relu(x);
    let wide = 4 * x.size(1);
    for layer in 0..layers {
        x = b.within(format!("layer{layer}"), |b| encoder_layer(b, &x, attention, wide, false));
    }
    single("features", x)
}

/// DALL-E mini's encoder for text, without the mask; its perceptrons are products of two branches.
pub(crate) fn dall_e(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let attention = Attention { heads: 12, transpose_keys: true, gain: 0.1 };
    let mut x = b.relu(&inputs[0]);
    let (width, wide) = (x.size(1), 2048);
    for layer in 0..8 {
        x = b.within(format!("layer{layer}"), |b| {
            let y = b.within("attention", |b| {
                let context = attention.apply(b, &x);
                b.project("linear", &context, width, 1.0)
            });
            let x = b.add(&y, &x);
            let y = b.within("perceptron", |b| {
                let gate = b.project("gate", &x, wide, 1.0);
                let gate = b.relu(&gate);
                let up = b.project("up", &x, wide, BRANCH_GAIN);
                let y = b.mul(&gate, &up);
                b.project("down", &y, width, BRANCH_GAIN)
            });
            b.add(&y, &x)
        });
    }
    single("features", x)
}

/// Transformer-Transducer: an audio and a label encoder on the same input, and a joint network.
pub(crate) fn transducer(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let attention = Attention { heads: 8, transpose_keys: true, gain: 0.05 };
    let encoder = |b: &mut Builder, name: &str, x: &Value, layers: usize| {
        b.within(name, |b| {
            let mut x = x.clone();
            for layer in 0..layers {
                x = b.within(format!("layer{layer}"), |b| encoder_layer(b, &x, attention, 2048, true));
            }
            x
        })
    };
    let narrow = b.project("audio_down", &inputs[0], 16, 1.0);
    let audio = b.project("audio_up", &narrow, 512, 1.0);
    let audio = encoder(b, "audio", &audio, 12);
    let label = encoder(b, "label", &inputs[0], 2);
    let joint = b.concat(&[audio, label], 1);
    let y = b.project("joint_hidden", &joint, 512, 1.0);
    let y = b.relu(&y);
    let logits = b.project("joint_out", &y, 10, 1.0);
    single("logits", logits)
}
