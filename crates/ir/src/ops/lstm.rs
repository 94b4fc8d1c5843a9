//! The long short-term memory.

use crate::ops::recurrent::{BIAS, CELL, Family, HIDDEN, LENGTHS, PEEPHOLES, recurrent};

const LSTM_FAMILY: &Family = &Family {
    name: "LSTM",
    gates: 4,
    activations: &["Sigmoid", "Tanh", "Tanh"],
    optional: &[BIAS, LENGTHS, HIDDEN, CELL, PEEPHOLES],
    results: 3,
};

/// Blocks of weights, in the order of ONNX; the first three are those of `P`, too.
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const FORGET: usize = 2;
const NEW: usize = 3;

recurrent! {
    /// `x[length, batch, size], w[directions, 4 * hidden, size], r[directions, 4 * hidden, hidden]
    /// (, B[directions, 8 * hidden]) (, sequence_lens[batch]) (, initial_h[directions, batch,
    /// hidden]) (, initial_c[directions, batch, hidden]) (, P[directions, 3 * hidden])` → all
    /// states `[length, directions, batch, hidden]`, the last ones, and the last cells, both
    /// `[directions, batch, hidden]`.
    ///
    /// With the state `h` and the cell `c` before, at first `initial_h` and `initial_c` or zeros,
    /// the cell is `F * c + I * g(w x + r h + B)` and the state `O * e(cell)`, where `I`, `F` and
    /// `O` are `f(w x + r h + B + P c)`, `O` with the new cell, and `f`, `g` and `e` are the
    /// activations. Blocks of `w`, `r` and both halves of `B` are those of `I`, `O`, `F` and the
    /// new cell; blocks of `P` those of `I`, `O` and `F`. Nothing bounds what `e` is computed of.
    /// States past the end of a sequence are zeros. A length is at least 1, and at most that of the
    /// tensor; others are an evaluation error.
    LSTM, LSTM_FAMILY, {
        /// `F` is `1 - I`.
        input_forget
    }, |op, pass, places, state| {
        let before = [INPUT, OUTPUT, FORGET, NEW].map(|gate| pass.recurrent(gate, &state.hidden));
        for place in places {
            let sum = |gate: usize| pass.input(gate, *place).add(&before[gate][place.at]);
            let cell = &state.cell[place.at];
            let input = pass.gate(0, &pass.peeping(INPUT, *place, cell, &sum(INPUT)))?;
            let forget = if op.input_forget {
                S::one().sub(&input)
            } else {
                pass.gate(0, &pass.peeping(FORGET, *place, cell, &sum(FORGET)))?
            };
            let new = forget.mul(cell).add(&input.mul(&pass.gate(1, &sum(NEW))?));
            let output = pass.gate(0, &pass.peeping(OUTPUT, *place, &new, &sum(OUTPUT)))?;
            state.hidden[place.at] = output.mul(&pass.activation(2, &new)?);
            state.cell[place.at] = new;
        }
        Ok(())
    }
}
