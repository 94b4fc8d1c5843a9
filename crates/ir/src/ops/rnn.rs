//! The plain recurrent layer.

use crate::ops::recurrent::{BIAS, Family, HIDDEN, LENGTHS, recurrent};

const RNN_FAMILY: &Family = &Family { name: "RNN", gates: 1, activations: &["Tanh"], optional: &[BIAS, LENGTHS, HIDDEN], results: 2 };

recurrent! {
    /// `x[length, batch, size], w[directions, hidden, size], r[directions, hidden, hidden] (,
    /// B[directions, 2 * hidden]) (, sequence_lens[batch]) (, initial_h[directions, batch,
    /// hidden])` → all states `[length, directions, batch, hidden]` and the last ones `[directions,
    /// batch, hidden]`.
    ///
    /// A state is `f(w x + r h + B)` of an element `x` and the state `h` before it, at first
    /// `initial_h` or zeros. States past the end of a sequence are zeros. A length is at least 1,
    /// and at most that of the tensor; others are an evaluation error.
    RNN, RNN_FAMILY, {}, |_, pass, places, state| {
        let before = pass.recurrent(0, &state.hidden);
        for place in places {
            state.hidden[place.at] = pass.gate(0, &pass.input(0, *place).add(&before[place.at]))?;
        }
        Ok(())
    }
}
