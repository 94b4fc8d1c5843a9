//! Mean over windows.

use crate::attr::Attr;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::max_pool::{pool_kernel, pool_shape, pool_type, pool_work};
use crate::ops::operands::{floats, reals};
use crate::ops::window::{Grid, Window, import_window, spelled};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..] → [N, C, out..]`: the mean of each window. Sizes as for
    /// [`MaxPool`](crate::ops::max_pool::MaxPool).
    ///
    /// The divisor is the number of taps on elements; with `count_include_pad`, of taps on elements
    /// and pads. Taps that hang over the padded end, which `ceil_mode` allows, never count. A
    /// window without any counted tap is undefined.
    pub struct AveragePool {
        /// Sizes of the window.
        pub kernel: Vec<i64>,
        /// Step between windows.
        pub strides: Vec<i64>,
        /// Padding: all begins, then all ends.
        pub pads: Vec<i64>,
        /// Step between taps.
        pub dilations: Vec<i64>,
        /// Round the number of windows up.
        pub ceil_mode: bool,
        /// Pads count as zeros.
        pub count_include_pad: bool,
    }
}

impl AveragePool {
    fn window(&self) -> Window<'_> {
        Window { kernel: &self.kernel, strides: &self.strides, pads: &self.pads, dilations: &self.dilations }
    }
}

impl Operator for AveragePool {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("AveragePool", inputs, 1..=1)?;
        pool_type("AveragePool", &inputs[0], &self.window(), self.ceil_mode)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("AveragePool", inputs)?;
        let [x] = tensors.as_slice() else { return Err(EvalError::value("AveragePool takes one operand")) };
        let grid = self.window().grid("AveragePool", x.shape.get(2..).unwrap_or_default(), self.ceil_mode)?;
        Ok(vec![Value::real(means(x, &grid, self.count_include_pad)?)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["AveragePool"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let kernel = pool_kernel(node)?;
        let window = import_window(node, &kernel, node.ty(0).ok(), true)?;
        let (strides, pads, dilations) = (window.strides, window.pads, window.dilations);
        let count_include_pad = node.flag("count_include_pad", false)?;
        let op = AveragePool { kernel, strides, pads, dilations, ceil_mode: window.ceil_mode, count_include_pad };
        node.import(crate::Op::AveragePool(op))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("AveragePool", TYPES, version, outputs[0].dtype)?;
        let first = match self {
            _ if self.dilations.iter().any(|d| *d != 1) => 19,
            _ if self.ceil_mode => 10,
            _ if self.count_include_pad => 7,
            _ => 1,
        };
        crate::ops::elementwise::since("AveragePool", version, first)?;
        let mut spelling = OnnxSpelling::plain("AveragePool", 1);
        spelling.attrs = spelled(&self.window());
        if self.ceil_mode {
            spelling = spelling.with("ceil_mode", Attr::Int(1));
        }
        Ok(if self.count_include_pad { spelling.with("count_include_pad", Attr::Int(1)) } else { spelling })
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pool_work(&self.kernel, outputs)
    }
}

fn means<S: Scalar>(x: &Tensor<S>, grid: &Grid, include_pad: bool) -> Result<Tensor<S>, EvalError> {
    let shape = pool_shape(&x.shape, grid);
    let (size, positions) = (grid.input_size(), grid.output_size());
    let mut data = vec![S::zero(); shape.iter().product()];
    if data.is_empty() {
        return Ok(Tensor::new(shape, data));
    }
    let divisors = divisors::<S>(grid, include_pad)?;
    let width = &grid.axes[2];
    let taps = grid.tap_list();
    for (plane, result) in x.data.chunks_exact(size).zip(data.chunks_exact_mut(positions)) {
        for (row, line) in result.chunks_exact_mut(width.output).enumerate() {
            for tap in &taps {
                let Some(base) = grid.source_row(row, *tap) else { continue };
                let span = width.span(tap[2]);
                let Some(first) = width.source(span.start, tap[2]).filter(|_| !span.is_empty()) else { continue };
                let (line, from) = (&mut line[span], &plane[base + first..]);
                if width.stride == 1 {
                    line.iter_mut().zip(from).for_each(|(sum, x)| *sum = sum.add(x));
                } else {
                    line.iter_mut().zip(from.iter().step_by(width.stride)).for_each(|(sum, x)| *sum = sum.add(x));
                }
            }
        }
        for (sum, divisor) in result.iter_mut().zip(&divisors) {
            *sum = sum.div(divisor)?;
        }
    }
    Ok(Tensor::new(shape, data))
}

/// The divisor of every window of a plane.
fn divisors<S: Scalar>(grid: &Grid, include_pad: bool) -> Result<Vec<S>, EvalError> {
    let counts = grid.axes.map(|a| (0..a.output).map(|at| a.counted(at, include_pad)).collect::<Vec<_>>());
    if counts.iter().flatten().any(|c| *c == 0) {
        return Err(EvalError::value("a window of AveragePool lies in the padding as a whole"));
    }
    let [depths, heights, widths] = &counts;
    let mut divisors = Vec::with_capacity(grid.output_size());
    for d in depths {
        for h in heights {
            divisors.extend(widths.iter().map(|w| S::from_f64((d * h * w) as f64)));
        }
    }
    Ok(divisors)
}
