//! Two-dimensional convolution.

use std::f32::consts::SQRT_2;

use super::{Builder, Dim, SHORT_FILTER, Value, attribute};

/// Gain that keeps the scale of a signal through centered filters and ReLUs: the variance after a
/// ReLU is 0.34 of the mean square before it.
pub(super) const AFTER_RELU: f32 = 1.7;

/// How the borders are padded.
#[derive(Clone, Copy)]
pub(super) enum Padding {
    /// Rows above and below, columns left and right.
    Symmetric([i64; 2]),
    /// `ceil(size / stride)` results, any odd row or column of padding going to the end. Written as
    /// explicit pads.
    Same,
}

impl Padding {
    /// ONNX pads (top, left, bottom, right) for an image of `size`.
    pub(super) fn pads(self, size: [i64; 2], kernel: [i64; 2], stride: i64) -> [i64; 4] {
        match self {
            Self::Symmetric([rows, columns]) => [rows, columns, rows, columns],
            Self::Same => {
                let total = |axis: usize| {
                    let results = (size[axis] + stride - 1) / stride;
                    ((results - 1) * stride + kernel[axis] - size[axis]).max(0)
                };
                let [rows, columns] = [total(0), total(1)];
                [rows / 2, columns / 2, rows - rows / 2, columns - columns / 2]
            }
        }
    }
}

/// The geometry and the weight scale of a convolution.
#[derive(Clone, Copy)]
pub(crate) struct Conv {
    out: i64,
    kernel: [i64; 2],
    stride: i64,
    padding: Padding,
    groups: i64,
    bias: bool,
    gain: Option<f32>,
}

impl Conv {
    /// `out` channels, a square kernel, stride 1, no padding, no bias.
    pub(crate) fn new(out: i64, kernel: i64) -> Self {
        Self::rect(out, kernel, kernel)
    }

    /// `out` channels and a kernel of `rows` by `columns`.
    pub(crate) fn rect(out: i64, rows: i64, columns: i64) -> Self {
        let padding = Padding::Symmetric([0, 0]);
        Self { out, kernel: [rows, columns], stride: 1, padding, groups: 1, bias: false, gain: None }
    }

    /// Sets the stride of both axes.
    pub(crate) fn stride(self, stride: i64) -> Self {
        Self { stride, ..self }
    }

    /// Pads each side by `pad`.
    pub(crate) fn pad(self, pad: i64) -> Self {
        Self { padding: Padding::Symmetric([pad, pad]), ..self }
    }

    /// Pads each side by half the (odd) kernel.
    pub(crate) fn centered(self) -> Self {
        Self { padding: Padding::Symmetric([self.kernel[0] / 2, self.kernel[1] / 2]), ..self }
    }

    /// Pads so that the result has `ceil(size / stride)` rows and columns.
    pub(crate) fn same(self) -> Self {
        Self { padding: Padding::Same, ..self }
    }

    /// Sets the number of groups.
    pub(crate) fn groups(self, groups: i64) -> Self {
        Self { groups, ..self }
    }

    /// Adds a bias.
    pub(crate) fn bias(self) -> Self {
        Self { bias: true, ..self }
    }

    /// Scales the weights for a result with `gain` times the root mean square of the argument. The
    /// default suits an argument from a ReLU and a result that feeds one.
    pub(crate) fn gain(self, gain: f32) -> Self {
        Self { gain: Some(gain), ..self }
    }
}

impl Builder {
    /// Convolves `x` (batch, channels, rows, columns) with the weights called `name`.
    pub(crate) fn conv(&mut self, name: &str, x: &Value, conv: Conv) -> Value {
        let Conv { out, kernel, stride, groups, .. } = conv;
        let channels = x.size(1);
        assert!(channels % groups == 0 && out % groups == 0, "{channels} to {out} channels in {groups} groups");
        let size = [x.size(2), x.size(3)];
        let pads = conv.padding.pads(size, kernel, stride);
        let mut shape = vec![x.shape[0], Dim::Fixed(out)];
        for axis in 0..2 {
            let room = size[axis] + pads[axis] + pads[axis + 2] - kernel[axis];
            assert!(room >= 0, "the kernel of `{name}` is larger than its image");
            shape.push(Dim::Fixed(room / stride + 1));
        }
        let attributes = vec![
            attribute::ints("dilations", &[1, 1]),
            attribute::int("group", groups),
            attribute::ints("kernel_shape", &kernel),
            attribute::ints("pads", &pads),
            attribute::ints("strides", &[stride, stride]),
        ];
        self.within(name, |b| {
            let fan_in = channels / groups * kernel[0] * kernel[1];
            let default = if fan_in < SHORT_FILTER { SQRT_2 } else { AFTER_RELU };
            let bound = uniform_bound(conv.gain.unwrap_or(default), fan_in);
            let dims = [out, channels / groups, kernel[0], kernel[1]];
            let weight = b.filters("weight", &dims, bound);
            let bias = conv.bias.then(|| b.weight("bias", &[out], -0.1, 0.1));
            let inputs: Vec<_> = [x, &weight].into_iter().chain(&bias).collect();
            b.node("Conv", &inputs, attributes, x.element, shape)
        })
    }
}

/// The bound of a uniform distribution whose sums of `fan_in` products have `gain` times the scale
/// of their arguments.
pub(super) fn uniform_bound(gain: f32, fan_in: i64) -> f32 {
    gain * (3.0 / fan_in as f32).sqrt()
}
