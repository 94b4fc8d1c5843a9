//! Recurrent layers as single nodes, in the form of PyTorch's exporter.

use super::{Builder, Dim, Value, attribute};

/// The kind of a recurrent layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Gated recurrent units, whose reset gate applies after the product.
    Gru,
    /// Long short-term memory, in both directions.
    BothWaysLstm,
}

impl Builder {
    /// All states of a layer of `hidden` units over `x` (steps, batch, features): (steps,
    /// directions, batch, hidden).
    pub(crate) fn recurrent(&mut self, name: &str, x: &Value, hidden: i64, cell: Cell) -> Value {
        let (op, gates, directions) = match cell {
            Cell::Gru => ("GRU", 3, 1),
            Cell::BothWaysLstm => ("LSTM", 4, 2),
        };
        let features = x.size(2);
        // PyTorch draws all weights of a layer so.
        let bound = 1.0 / (hidden as f32).sqrt();
        let mut attributes = vec![attribute::int("hidden_size", hidden)];
        match cell {
            Cell::Gru => attributes.push(attribute::int("linear_before_reset", 1)),
            Cell::BothWaysLstm => attributes.push(attribute::text("direction", "bidirectional")),
        }
        let shape = vec![x.shape[0], Dim::Fixed(directions), x.shape[1], Dim::Fixed(hidden)];
        self.within(name, |b| {
            let input = b.weight("weight_ih", &[directions, gates * hidden, features], -bound, bound);
            let state = b.weight("weight_hh", &[directions, gates * hidden, hidden], -bound, bound);
            let bias = b.weight("bias", &[directions, 2 * gates * hidden], -bound, bound);
            b.node(op, &[x, &input, &state, &bias], attributes, x.element, shape)
        })
    }
}
