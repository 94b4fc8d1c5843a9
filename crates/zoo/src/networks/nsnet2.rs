//! NSNet2, which suppresses noise: for each frame of a spectrum, what to keep of it.

use super::{Outputs, single};
use crate::builder::{Builder, Cell, Value};

/// Units of the recurrent layers and of the linear one before them.
const STATE: i64 = 400;
/// Units of the linear layers after them.
const WIDE: i64 = 600;

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let bins = inputs[0].size(2);
    let x = b.linear("fc1", &inputs[0], STATE, 1.0);
    let mut x = b.transpose(&x, &[1, 0, 2]);
    for name in ["rnn1", "rnn2"] {
        let states = b.recurrent(name, &x, STATE, Cell::Gru);
        x = b.squeeze(&states, 1);
    }
    x = b.transpose(&x, &[1, 0, 2]);
    for name in ["fc2", "fc3"] {
        x = b.linear(name, &x, WIDE, std::f32::consts::SQRT_2);
        x = b.relu(&x);
    }
    let x = b.linear("fc4", &x, bins, 1.0);
    let mask = b.sigmoid(&x);
    single("mask", mask)
}
