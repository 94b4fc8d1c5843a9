//! An unrolled recurrent network of the cell that architecture search found for language modelling.

use super::Outputs;
use crate::builder::{Builder, Value};

const WIDTH: i64 = 512;
const GATES: i64 = 8;

/// One step: the new output and the new memory.
fn cell(b: &mut Builder, x: &Value, state: &Value, memory: &Value, weights: &[Value; 3]) -> (Value, Value) {
    let [input_weight, state_weight, bias] = weights;
    let from_input = b.matmul(x, input_weight);
    let from_state = b.matmul(state, state_weight);
    let from_state = b.add(&from_state, bias);
    let x = b.split(&from_input, 1, GATES);
    let s = b.split(&from_state, 1, GATES);

    let sums: Vec<_> = (0..GATES as usize).map(|gate| if gate == 3 { b.mul(&s[3], &x[3]) } else { b.add(&s[gate], &x[gate]) }).collect();
    let first = [
        b.sigmoid(&sums[0]),
        b.relu(&sums[1]),
        b.sigmoid(&sums[2]),
        b.relu(&sums[3]),
        b.tanh(&sums[4]),
        b.sigmoid(&sums[5]),
        b.tanh(&sums[6]),
        b.sigmoid(&sums[7]),
    ];

    let product = b.mul(&first[0], &first[1]);
    let second_0 = b.tanh(&product);
    let sum = b.add(&first[2], &first[3]);
    let second_1 = b.tanh(&sum);
    let product = b.mul(&first[4], &first[5]);
    let second_2 = b.tanh(&product);
    let sum = b.add(&first[6], &first[7]);
    let second_3 = b.sigmoid(&sum);

    let sum = b.add(&second_0, memory);
    let injected = b.tanh(&sum);
    let new_memory = b.mul(&injected, &second_1);
    let sum = b.add(&second_2, &second_3);
    let right = b.tanh(&sum);
    let product = b.mul(&new_memory, &right);
    (b.tanh(&product), new_memory)
}

/// The whole network: a sequence, its first state and memory in; all outputs, the last state and
/// memory out.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [sequence, state, memory] = inputs else { unreachable!("the catalog gives three inputs") };
    let weights = b.within("cell", |b| {
        [
            b.matrix("input_weight", WIDTH, GATES * WIDTH, 1.0),
            b.matrix("state_weight", WIDTH, GATES * WIDTH, 1.0),
            b.weight("bias", &[GATES * WIDTH], -0.1, 0.1),
        ]
    });
    let (mut state, mut memory) = (state.clone(), memory.clone());
    let mut steps = Vec::new();
    for step in 0..sequence.size(1) {
        b.within(format!("step_{step}"), |b| {
            let x = b.pick(sequence, 1, step);
            (state, memory) = cell(b, &x, &state, &memory, &weights);
            steps.push(b.unsqueeze(&state, 1));
        });
    }
    let all = b.concat(&steps, 1);
    vec![("outputs".to_owned(), all), ("last_state".to_owned(), state), ("last_memory".to_owned(), memory)]
}
