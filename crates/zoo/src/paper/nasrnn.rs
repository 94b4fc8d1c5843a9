//! NasRNN of TASO, TENSAT and OCGGS.

use crate::{
    builder::{Builder, Value},
    networks::{Outputs, single},
};

const WIDTH: i64 = 512;

/// The eight gates `x @ W + h @ U`, each with two weights of its own in every step, then a fixed
/// tree.
fn step(b: &mut Builder, x: &Value, state: &Value) -> Value {
    let gates: Vec<_> = (0..8)
        .map(|gate| {
            let from_input = b.project(&format!("w{gate}"), x, WIDTH, 1.0);
            let from_state = b.project(&format!("u{gate}"), state, WIDTH, 1.0);
            b.add(&from_input, &from_state)
        })
        .collect();
    let relu_0 = b.relu(&gates[0]);
    let sigmoid_3 = b.sigmoid(&gates[3]);
    let m0 = b.add(&relu_0, &sigmoid_3);
    let sigmoid_1 = b.sigmoid(&gates[1]);
    let tanh_2 = b.tanh(&gates[2]);
    let m1 = b.add(&sigmoid_1, &tanh_2);
    let sigmoid_4 = b.sigmoid(&gates[4]);
    let tanh_5 = b.tanh(&gates[5]);
    let m2 = b.mul(&sigmoid_4, &tanh_5);
    let sigmoid_6 = b.sigmoid(&gates[6]);
    let relu_7 = b.relu(&gates[7]);
    let m3 = b.mul(&sigmoid_6, &relu_7);

    let left = b.sigmoid(&m1);
    let right = b.tanh(&m2);
    let m4 = b.add(&left, &right);
    let left = b.tanh(&m0);
    let right = b.tanh(&m3);
    let m5 = b.mul(&left, &right);
    let left = b.tanh(&m4);
    let right = b.tanh(&m5);
    let m6 = b.mul(&left, &right);
    b.tanh(&m6)
}

/// The whole network: one input per step, the first state a weight.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut state = b.weight("initial_state", &[1, WIDTH], -0.5, 0.5);
    for (index, x) in inputs.iter().enumerate() {
        state = b.within(format!("step{index}"), |b| step(b, x, &state));
    }
    single("state", state)
}
