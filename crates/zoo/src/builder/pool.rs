//! Pooling.

use super::{Builder, Dim, Value, attribute, conv::Padding};

/// The kind and the geometry of a pooling window.
#[derive(Clone, Copy)]
pub(crate) struct Pool {
    average: bool,
    kernel: i64,
    stride: i64,
    by_column: bool,
    padding: Padding,
    ceil: bool,
    count_include_pad: bool,
}

impl Pool {
    /// The largest value of each square window.
    pub(crate) fn max(kernel: i64, stride: i64) -> Self {
        let padding = Padding::Symmetric([0, 0]);
        Self { average: false, kernel, stride, by_column: false, padding, ceil: false, count_include_pad: false }
    }

    /// The mean of each square window, borders excluded.
    pub(crate) fn average(kernel: i64, stride: i64) -> Self {
        Self { average: true, ..Self::max(kernel, stride) }
    }

    /// Pads each side by `pad`.
    pub(crate) fn pad(self, pad: i64) -> Self {
        Self { padding: Padding::Symmetric([pad, pad]), ..self }
    }

    /// Moves the window from each column to the next one, whatever the step between rows, and pads
    /// the columns by one at either end.
    pub(crate) fn column_by_column(self) -> Self {
        Self { by_column: true, padding: Padding::Symmetric([0, 1]), ..self }
    }

    /// Pads so that the result has `ceil(size / stride)` rows and columns.
    pub(crate) fn same(self) -> Self {
        Self { padding: Padding::Same, ..self }
    }

    /// Lets the last window extend over the edge.
    pub(crate) fn ceil(self) -> Self {
        Self { ceil: true, ..self }
    }

    /// Includes the zeros of the border in a mean.
    pub(crate) fn count_include_pad(self) -> Self {
        Self { count_include_pad: true, ..self }
    }
}

impl Builder {
    /// Pools `x` (batch, channels, rows, columns).
    pub(crate) fn pool(&mut self, x: &Value, pool: Pool) -> Value {
        let Pool { kernel, stride, .. } = pool;
        let size = [x.size(2), x.size(3)];
        let pads = pool.padding.pads(size, [kernel, kernel], stride);
        let strides = [stride, if pool.by_column { 1 } else { stride }];
        let mut shape = vec![x.shape[0], x.shape[1]];
        for axis in 0..2 {
            let (room, stride) = (size[axis] + pads[axis] + pads[axis + 2] - kernel, strides[axis]);
            let steps = if pool.ceil { (room + stride - 1) / stride } else { room / stride };
            shape.push(Dim::Fixed(steps + 1));
        }
        let mut attributes = vec![
            attribute::int("ceil_mode", pool.ceil.into()),
            attribute::ints("kernel_shape", &[kernel, kernel]),
            attribute::ints("pads", &pads),
            attribute::ints("strides", &strides),
        ];
        if pool.average {
            attributes.insert(1, attribute::int("count_include_pad", pool.count_include_pad.into()));
        }
        let op = if pool.average { "AveragePool" } else { "MaxPool" };
        self.node(op, &[x], attributes, x.element, shape)
    }

    /// The mean of each channel.
    pub(crate) fn global_average_pool(&mut self, x: &Value) -> Value {
        let mut shape = vec![x.shape[0], x.shape[1]];
        shape.resize(x.rank(), Dim::Fixed(1));
        self.node("GlobalAveragePool", &[x], vec![], x.element, shape)
    }
}
