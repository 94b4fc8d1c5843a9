//! Convolution and pooling along one axis.

use super::{Builder, Dim, Value, attribute};
use crate::builder::conv::{AFTER_RELU, uniform_bound};
use crate::catalog::Element;

impl Builder {
    /// Convolves `x` (batch, channels, length), padding each end by `pad`, with the weights and the
    /// bias called `name`.
    pub(crate) fn conv_1d(&mut self, name: &str, x: &Value, out: i64, (kernel, stride, pad): (i64, i64, i64)) -> Value {
        let channels = x.size(1);
        let shape = vec![x.shape[0], Dim::Fixed(out), Dim::Fixed((x.size(2) + 2 * pad - kernel) / stride + 1)];
        let attributes = vec![
            attribute::ints("dilations", &[1]),
            attribute::int("group", 1),
            attribute::ints("kernel_shape", &[kernel]),
            attribute::ints("pads", &[pad, pad]),
            attribute::ints("strides", &[stride]),
        ];
        self.within(name, |b| {
            let weight = b.filters("weight", &[out, channels, kernel], uniform_bound(AFTER_RELU, channels * kernel));
            let bias = b.weight("bias", &[out], -0.1, 0.1);
            b.node("Conv", &[x, &weight, &bias], attributes, x.element, shape)
        })
    }

    /// The largest value of each window of `x` (batch, channels, length), both ends padded by
    /// `pad`.
    pub(crate) fn max_pool_1d(&mut self, x: &Value, kernel: i64, stride: i64, pad: i64) -> Value {
        let shape = vec![x.shape[0], x.shape[1], Dim::Fixed((x.size(2) + 2 * pad - kernel) / stride + 1)];
        let attributes = vec![
            attribute::int("ceil_mode", 0),
            attribute::ints("kernel_shape", &[kernel]),
            attribute::ints("pads", &[pad, pad]),
            attribute::ints("strides", &[stride]),
        ];
        self.node("MaxPool", &[x], attributes, x.element, shape)
    }

    /// The `count` largest values of each channel of `x` (batch, channels, length), the largest
    /// first.
    pub(crate) fn largest(&mut self, x: &Value, count: i64) -> Value {
        let (count, shape) = (self.ints(&[count]), vec![x.shape[0], x.shape[1], Dim::Fixed(count)]);
        let attributes = vec![attribute::int("axis", 2), attribute::int("largest", 1), attribute::int("sorted", 1)];
        let mut results = self.node_with_results("TopK", &[x, &count], attributes, vec![(x.element, shape.clone()), (Element::I64, shape)]);
        results.swap_remove(0)
    }
}
