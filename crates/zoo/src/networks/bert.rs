//! BERT: post-norm encoder layers, with the embeddings and the pooler of the base size.

use super::{Outputs, single};
use crate::{
    builder::{Builder, Dim, Value},
    catalog::Element,
};

/// Width of the base size.
const WIDTH: i64 = 768;
/// Width of one head, at every size.
const HEAD: i64 = 64;
/// Layers of the base size.
const LAYERS: usize = 12;
/// Layers of the large size that are built.
const LARGE_LAYERS: usize = 2;
const VOCABULARY: i64 = 30522;
const POSITIONS: i64 = 512;
const EPSILON: f32 = 1e-12;
/// Added to the scores of positions that the mask hides.
const HIDDEN: f32 = -10_000.0;

/// Sum of the embeddings of words, segments and positions, normalized.
fn embed(b: &mut Builder, ids: &Value, segments: &Value) -> Value {
    let length = ids.size(1);
    let words = b.weight("word_embeddings.weight", &[VOCABULARY, WIDTH], -1.0, 1.0);
    let words = b.gather(&words, ids, 0);
    let types = b.weight("token_type_embeddings.weight", &[2, WIDTH], -0.5, 0.5);
    let types = b.gather(&types, segments, 0);
    let sum = b.add(&words, &types);
    let positions = b.weight("position_embeddings.weight", &[POSITIONS, WIDTH], -0.5, 0.5);
    let range = (0..length).flat_map(i64::to_le_bytes).collect();
    let range = b.constant(Element::I64, &[1, length], range);
    let positions = b.gather(&positions, &range, 0);
    let sum = b.add(&sum, &positions);
    b.layer_norm("LayerNorm", &sum, EPSILON)
}

/// 0 where the mask is 1, a large negative number where it is 0, one row for all heads and queries.
fn extend_mask(b: &mut Builder, mask: &Value) -> Value {
    let mask = b.unsqueeze(mask, 1);
    let mask = b.unsqueeze(&mask, 2);
    let mask = b.cast_to_float(&mask);
    let hidden = b.one_minus(&mask);
    b.mul_scalar(&hidden, HIDDEN)
}

/// A projection split into heads, its axes (batch, head, position, element) in the given order.
fn head_split(b: &mut Builder, name: &str, x: &Value, order: &[usize]) -> Value {
    let width = x.size(2);
    let y = b.linear(name, x, width, 1.0);
    let y = b.reshape(&y, &[x.shape[0], x.shape[1], Dim::Fixed(width / HEAD), Dim::Fixed(HEAD)]);
    b.transpose(&y, order)
}

fn attention(b: &mut Builder, x: &Value, mask: &Value) -> Value {
    let context = b.within("self", |b| {
        let query = head_split(b, "query", x, &[0, 2, 1, 3]);
        let key = head_split(b, "key", x, &[0, 2, 3, 1]);
        let value = head_split(b, "value", x, &[0, 2, 1, 3]);
        let scores = b.matmul(&query, &key);
        let scores = b.div_scalar(&scores, (HEAD as f32).sqrt());
        let scores = b.add(&scores, mask);
        let weights = b.softmax(&scores);
        let context = b.matmul(&weights, &value);
        let context = b.transpose(&context, &[0, 2, 1, 3]);
        b.reshape(&context, &x.shape)
    });
    b.within("output", |b| {
        let y = b.linear("dense", &context, x.size(2), 1.0);
        let sum = b.add(&y, x);
        b.layer_norm("LayerNorm", &sum, EPSILON)
    })
}

fn feed_forward(b: &mut Builder, x: &Value) -> Value {
    let wide = b.within("intermediate", |b| {
        let y = b.linear("dense", x, 4 * x.size(2), 1.0);
        b.gelu_erf(&y)
    });
    b.within("output", |b| {
        let y = b.linear("dense", &wide, x.size(2), 1.4);
        let sum = b.add(&y, x);
        b.layer_norm("LayerNorm", &sum, EPSILON)
    })
}

/// The first layers, by number.
fn encode(b: &mut Builder, mut x: Value, mask: &Value, layers: usize) -> Value {
    for layer in 0..layers {
        x = b.within(format!("encoder.layer.{layer}"), |b| {
            let y = b.within("attention", |b| attention(b, &x, mask));
            feed_forward(b, &y)
        });
    }
    x
}

/// Layers of BERT-large: hidden states and attention mask in; hidden states out.
pub(crate) fn large_layers(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [hidden, mask] = inputs else { unreachable!("the catalog gives two inputs") };
    let mask = extend_mask(b, mask);
    let x = encode(b, hidden.clone(), &mask, LARGE_LAYERS);
    single("last_hidden_state", x)
}

/// The whole network of the base size: word ids, attention mask and segment ids in; the last hidden
/// state and the pooled state out.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [ids, mask, segments] = inputs else { unreachable!("the catalog gives three inputs") };
    let mask = extend_mask(b, mask);
    let x = b.within("embeddings", |b| embed(b, ids, segments));
    let x = encode(b, x, &mask, LAYERS);
    let pooled = b.within("pooler", |b| {
        let first = b.pick(&x, 1, 0);
        let y = b.dense("dense", &first, WIDTH, 1.0);
        b.tanh(&y)
    });
    vec![("last_hidden_state".to_owned(), x), ("pooler_output".to_owned(), pooled)]
}
