//! CRNN, which reads a line of text: convolutions, then recurrent layers over the columns.

use super::{Outputs, single};
use crate::builder::{Builder, Cell, Conv, Pool, Value};

/// Units of a recurrent layer in each direction.
const STATE: i64 = 256;
/// Letters, digits, and the blank.
const SYMBOLS: i64 = 37;

/// The whole network.
pub(crate) fn build(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let mut x = inputs[0].clone();
    for (at, channels) in [64, 128, 256, 256, 512, 512, 512].into_iter().enumerate() {
        let conv = if at < 6 { Conv::new(channels, 3).pad(1) } else { Conv::new(channels, 2) };
        x = b.conv(&format!("conv{at}"), &x, conv.bias());
        if matches!(at, 2 | 4 | 6) {
            x = b.batch_norm(&format!("batchnorm{at}"), &x, 1e-5, 1.0);
        }
        x = b.relu(&x);
        match at {
            0 | 1 => x = b.pool(&x, Pool::max(2, 2)),
            3 | 5 => x = b.pool(&x, Pool::max(2, 2).column_by_column()),
            _ => {}
        }
    }
    // One row is left: its columns are the steps.
    let columns = b.squeeze(&x, 2);
    let mut x = b.transpose(&columns, &[2, 0, 1]);
    for (name, out) in [("rnn0", STATE), ("rnn1", SYMBOLS)] {
        let states = b.recurrent(name, &x, STATE, Cell::BothWaysLstm);
        let states = b.transpose(&states, &[0, 2, 1, 3]);
        let joined = [states.shape[0], states.shape[1], states.shape[2].times(STATE)];
        let states = b.reshape(&states, &joined);
        x = b.linear(&format!("{name}.embedding"), &states, out, 1.0);
    }
    let x = b.transpose(&x, &[1, 0, 2]);
    let scores = b.softmax(&x);
    single("symbols", scores)
}
