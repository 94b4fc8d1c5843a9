//! The gated recurrent unit.

use crate::ops::recurrent::{BIAS, Family, HIDDEN, LENGTHS, recurrent};
use crate::scalar::zeros;

const GRU_FAMILY: &Family =
    &Family { name: "GRU", gates: 3, activations: &["Sigmoid", "Tanh"], optional: &[BIAS, LENGTHS, HIDDEN], results: 2 };

/// Blocks of weights, in the order of ONNX.
const UPDATE: usize = 0;
const RESET: usize = 1;
const NEW: usize = 2;

recurrent! {
    /// `x[length, batch, size], w[directions, 3 * hidden, size], r[directions, 3 * hidden, hidden]
    /// (, B[directions, 6 * hidden]) (, sequence_lens[batch]) (, initial_h[directions, batch,
    /// hidden])` → all states `[length, directions, batch, hidden]` and the last ones `[directions,
    /// batch, hidden]`.
    ///
    /// A state is `(1 - z) * g(w x + r (q * h) + B) + z * h`, where `h` is the state before, at
    /// first `initial_h` or zeros, and both `z` and `q` are `f(w x + r h + B)`; their weights and
    /// those of the new state are the three blocks of `w`, `r` and both halves of `B`. States past
    /// the end of a sequence are zeros. A length is at least 1, and at most that of the tensor;
    /// others are an evaluation error.
    GRU, GRU_FAMILY, {
        /// `q` scales the product `r h` and its bias instead of `h`.
        linear_before_reset
    }, |op, pass, places, state| {
        let [updates, resets] = [UPDATE, RESET].map(|gate| pass.recurrent(gate, &state.hidden));
        let mut scaled = zeros(state.hidden.len());
        let linear = op.linear_before_reset.then(|| pass.recurrent(NEW, &state.hidden));
        for place in places {
            let reset = pass.gate(0, &pass.input(RESET, *place).add(&resets[place.at]))?;
            scaled[place.at] = reset.mul(linear.as_ref().map_or(&state.hidden[place.at], |products| &products[place.at]));
        }
        let news = if linear.is_some() { scaled } else { pass.recurrent(NEW, &scaled) };
        for place in places {
            let update = pass.gate(0, &pass.input(UPDATE, *place).add(&updates[place.at]))?;
            let new = pass.gate(1, &pass.input(NEW, *place).add(&news[place.at]))?;
            let kept = update.mul(&state.hidden[place.at]);
            state.hidden[place.at] = S::one().sub(&update).mul(&new).add(&kept);
        }
        Ok(())
    }
}
