//! One layer of simple recurrent units, unrolled as exporters do for a loop over cells.

use super::Outputs;
use crate::builder::{Builder, Value};

const WIDTH: i64 = 1024;

/// A gate: its matrix, its elementwise weight on the memory, its bias.
struct Gate {
    matrix: Value,
    peek: Value,
    bias: Value,
}

impl Gate {
    fn new(b: &mut Builder, name: &str, bias: f32) -> Self {
        b.within(name, |b| Self {
            matrix: b.matrix("weight", WIDTH, WIDTH, 1.0),
            peek: b.weight("peek", &[WIDTH], -0.5, 0.5),
            bias: b.weight("bias", &[WIDTH], bias - 0.1, bias + 0.1),
        })
    }

    /// `sigmoid(x @ matrix + peek * memory + bias)`
    fn open(&self, b: &mut Builder, x: &Value, memory: &Value) -> Value {
        let product = b.matmul(x, &self.matrix);
        let peeked = b.mul(memory, &self.peek);
        let sum = b.add(&product, &peeked);
        let sum = b.add(&sum, &self.bias);
        b.sigmoid(&sum)
    }
}

/// `gate * yes + (1 - gate) * no`
fn blend(b: &mut Builder, gate: &Value, yes: &Value, no: &Value) -> Value {
    let left = b.mul(gate, yes);
    let rest = b.one_minus(gate);
    let right = b.mul(&rest, no);
    b.add(&left, &right)
}

/// The whole network: a sequence and its first memory in; all outputs and the last memory out.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [sequence, memory] = inputs else { unreachable!("the catalog gives two inputs") };
    let candidate = b.within("cell", |b| b.matrix("weight", WIDTH, WIDTH, 1.0));
    let forget = b.within("cell", |b| Gate::new(b, "forget", 0.5));
    let reset = b.within("cell", |b| Gate::new(b, "reset", -0.5));
    let mut memory = memory.clone();
    let mut steps = Vec::new();
    for step in 0..sequence.size(1) {
        b.within(format!("step_{step}"), |b| {
            let x = b.pick(sequence, 1, step);
            let new = b.matmul(&x, &candidate);
            let kept = forget.open(b, &x, &memory);
            let shown = reset.open(b, &x, &memory);
            memory = blend(b, &kept, &memory, &new);
            let output = blend(b, &shown, &memory, &x);
            steps.push(b.unsqueeze(&output, 1));
        });
    }
    let all = b.concat(&steps, 1);
    vec![("outputs".to_owned(), all), ("last_memory".to_owned(), memory)]
}
