//! Maximum over windows.

use crate::attr::Attr;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::one_result;
use crate::ops::window::{Grid, Window, import_window, spelled};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::{Shape, TensorType};

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (12, Types::I8.and(Types::U8)), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..] → [N, C, out..]`: the largest element of each window; padding never
    /// wins. Reals, `i8` and `u8`.
    ///
    /// Sizes as for [`Conv`](crate::ops::conv::Conv); with `ceil_mode` rounded up, except for
    /// windows that would start beyond the last element. Every pad is smaller than the kernel. A
    /// window without any element is undefined.
    pub struct MaxPool {
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
    }
}

impl MaxPool {
    fn window(&self) -> Window<'_> {
        Window { kernel: &self.kernel, strides: &self.strides, pads: &self.pads, dilations: &self.dilations }
    }
}

impl Operator for MaxPool {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = inputs else { return Err(TypeError::invalid("MaxPool takes one operand")) };
        accepts::check("MaxPool", TYPES, x.dtype)?;
        pool_type("MaxPool", x, &self.window(), self.ceil_mode)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = inputs else { return Err(EvalError::value("MaxPool takes one operand")) };
        let spatial = x.shape().get(2..).unwrap_or_default();
        let grid = self.window().grid("MaxPool", spatial, self.ceil_mode)?;
        grid.check_windows("MaxPool")?;
        Ok(vec![match x {
            Value::Real(t) => Value::real(largest(t, &grid, |best, x| Ok(best.raise(x)?))?),
            Value::Int(t) => Value::int(largest(t, &grid, |best, x| {
                *best = *x.max(best);
                Ok(())
            })?),
            Value::Bool(_) => return Err(EvalError::value("MaxPool of booleans")),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["MaxPool"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        // It concerns the indices, which are the second result.
        node.attrs.ignore(&["storage_order"]);
        let kernel = pool_kernel(node)?;
        let window = import_window(node, &kernel, node.ty(0).ok(), true)?;
        let (strides, pads, dilations) = (window.strides, window.pads, window.dilations);
        node.import(crate::Op::MaxPool(MaxPool { kernel, strides, pads, dilations, ceil_mode: window.ceil_mode }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("MaxPool", TYPES, version, outputs[0].dtype)?;
        if self.ceil_mode || self.dilations.iter().any(|d| *d != 1) {
            crate::ops::elementwise::since("MaxPool with ceil_mode or dilations", version, 10)?;
        }
        let mut spelling = OnnxSpelling::plain("MaxPool", 1);
        spelling.attrs = spelled(&self.window());
        Ok(if self.ceil_mode { spelling.with("ceil_mode", Attr::Int(1)) } else { spelling })
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pool_work(&self.kernel, outputs)
    }
}

/// The type rule of pools: `[N, C, spatial..]` of any element type.
pub(crate) fn pool_type(name: &str, x: &TensorType, window: &Window<'_>, ceil: bool) -> Result<Vec<TensorType>, TypeError> {
    if x.rank() < 3 {
        return Err(TypeError::invalid(format!("{name} of {x}")));
    }
    window.check(name, x.rank() - 2)?;
    window.check_pool_pads(name)?;
    let mut shape = Shape::from_iter(x.shape[..2].iter().cloned());
    shape.extend(window.outputs(name, &x.shape[2..], ceil)?);
    Ok(vec![TensorType { dtype: x.dtype, shape }])
}

/// The `kernel_shape` of an ONNX pool.
pub(crate) fn pool_kernel(node: &OnnxNode) -> Result<Vec<i64>, Opaque> {
    node.ints("kernel_shape").ok_or_else(|| Opaque(format!("{} without kernel_shape", node.op_type)))
}

/// One operation per tap.
pub(crate) fn pool_work(kernel: &[i64], outputs: &[Vec<usize>]) -> Work {
    let taps: f64 = kernel.iter().map(|k| *k as f64).product();
    let out: usize = outputs.first().map_or(0, |o| o.iter().product());
    Work { flops: taps * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
}

/// The shape of a pool's result.
pub(crate) fn pool_shape(input: &[usize], grid: &Grid) -> Vec<usize> {
    let mut shape = input[..2].to_vec();
    shape.extend(&grid.axes[5 - input.len()..].iter().map(|a| a.output).collect::<Vec<_>>());
    shape
}

fn largest<T: Clone>(
    x: &Tensor<T>,
    grid: &Grid,
    raised: impl Fn(&mut T, &T) -> Result<(), EvalError> + Copy,
) -> Result<Tensor<T>, EvalError> {
    let shape = pool_shape(&x.shape, grid);
    let mut data = Vec::with_capacity(shape.iter().product());
    let [depth, height, width] = &grid.axes;
    let (taps, size) = (grid.tap_list(), grid.input_size());
    let first_columns: Vec<usize> = (0..width.output).filter_map(|at| width.first(at)).collect();
    for plane in x.data.chunks_exact(size.max(1)) {
        for row in 0..grid.rows() {
            let (Some(d), Some(h)) = (depth.first(row / height.output), height.first(row % height.output)) else {
                return Err(EvalError::value("a window of MaxPool lies in the padding as a whole"));
            };
            let (start, base) = (data.len(), (d * height.input + h) * width.input);
            data.extend(first_columns.iter().map(|w| plane[base + w].clone()));
            let line: &mut [T] = &mut data[start..];
            for tap in &taps {
                let Some(base) = grid.source_row(row, *tap) else { continue };
                let span = width.span(tap[2]);
                let Some(first) = width.source(span.start, tap[2]).filter(|_| !span.is_empty()) else { continue };
                raise(&mut line[span], &plane[base + first..], width.stride, raised)?;
            }
        }
    }
    Ok(Tensor::new(shape, data))
}

/// Raises each of `best` to the element of `from`, read at `stride`, if that is greater.
fn raise<T>(best: &mut [T], from: &[T], stride: usize, raised: impl Fn(&mut T, &T) -> Result<(), EvalError>) -> Result<(), EvalError> {
    if stride == 1 {
        return best.iter_mut().zip(from).try_for_each(|(best, x)| raised(best, x));
    }
    best.iter_mut().zip(from.iter().step_by(stride)).try_for_each(|(best, x)| raised(best, x))
}
