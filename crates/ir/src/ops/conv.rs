//! Convolution in one to three dimensions, with groups, dilations and asymmetric pads.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::{channel_vectors, divided, enforced_sizes, floats, one_result, per_channel, reals};
use crate::ops::window::{Grid, Window, import_window, spelled, weight_kernel};
use crate::scalar::{Scalar, zeros};
use crate::tensor::{Tensor, Value};
use crate::ty::{Shape, TensorType};

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..] * w[M, C / group, kernel..] (+ b[M]) → [N, M, out..]`, a correlation:
    /// the kernel is not flipped.
    ///
    /// `out = floor((in + pads - dilation * (kernel - 1) - 1) / stride) + 1` along each of 1 to 3
    /// spatial axes.
    pub struct Conv {
        /// Step between windows, one per spatial axis.
        pub strides: Vec<i64>,
        /// Zeros around the input: all begins, then all ends.
        pub pads: Vec<i64>,
        /// Step between taps, one per spatial axis.
        pub dilations: Vec<i64>,
        /// Number of groups of channels, which do not mix.
        pub group: i64,
    }
}

impl Conv {
    fn window<'a>(&'a self, kernel: &'a [i64]) -> Window<'a> {
        Window { kernel, strides: &self.strides, pads: &self.pads, dilations: &self.dilations }
    }

    /// The convolution of a node whose weights are its input `weights`.
    pub(crate) fn of_node(node: &OnnxNode, weights: usize) -> Result<Conv, Opaque> {
        let kernel = weight_kernel(node, weights)?;
        let window = import_window(node, &kernel, node.ty(0).ok(), false)?;
        let group = node.int("group").unwrap_or(1);
        Ok(Conv { strides: window.strides, pads: window.pads, dilations: window.dilations, group })
    }

    /// The attributes in ONNX, for weights of this type.
    pub(crate) fn spelled(&self, name: &'static str, w: Option<&TensorType>) -> Result<Vec<(&'static str, Attr)>, NoSpelling> {
        let kernel: Option<Vec<i64>> = w.and_then(|w| w.shape.iter().skip(2).map(Dim::known).collect());
        let Some(kernel) = kernel else { return Err(NoSpelling { op: name, why: "its weights have symbolic sizes".into() }) };
        let mut attrs = spelled(&self.window(&kernel));
        attrs.push(("group", Attr::Int(self.group)));
        Ok(attrs)
    }

    /// The types of the result with elements of type `dtype`; whether the sizes of `x` and `w` fit
    /// each other comes second.
    pub(crate) fn results(
        &self,
        name: &str,
        x: &TensorType,
        w: &TensorType,
        dtype: DType,
    ) -> Result<(Vec<TensorType>, Result<(), TypeError>), TypeError> {
        let kernel = known_kernel(name, x, w, self.group)?;
        let window = self.window(&kernel);
        window.check(name, kernel.len())?;
        let mut shape = Shape::from_iter([x.shape[0].clone(), w.shape[0].clone()]);
        shape.extend(window.outputs(name, &x.shape[2..], false)?);
        let fits = enforced_sizes(name, "channels that fit the weights", &x.shape[1], &(w.shape[1].clone() * Dim::from(self.group)))
            .and_then(|()| divided(name, &w.shape[0], self.group).map(|_| ()));
        Ok((vec![TensorType { dtype, shape }], fits))
    }

    /// The convolution of two tensors, plus a number per result channel.
    pub(crate) fn convolved<S: Scalar>(
        &self,
        name: &str,
        x: &Tensor<S>,
        w: &Tensor<S>,
        bias: Option<&[S]>,
    ) -> Result<Tensor<S>, EvalError> {
        let group = usize::try_from(self.group).unwrap_or(0);
        let fits = x.shape.len() >= 3 && x.shape.len() == w.shape.len() && group > 0;
        if !fits || x.shape[1] != w.shape[1] * group || !w.shape[0].is_multiple_of(group) {
            return Err(EvalError::value(format!("{name} of {:?} with weights {:?} in {group} groups", x.shape, w.shape)));
        }
        let kernel: Vec<i64> = w.shape[2..].iter().map(|k| *k as i64).collect();
        let grid = self.window(&kernel).grid(name, &x.shape[2..], false)?;
        let mut shape = vec![x.shape[0], w.shape[0]];
        shape.extend(&grid.axes.map(|a| a.output)[5 - x.shape.len()..]);
        Ok(Tensor::new(shape, convolve(x, w, bias, &grid, group)))
    }

    /// Cost features: `w` is the shape of the weights.
    pub(crate) fn effort(&self, w: Option<&Vec<usize>>, outputs: &[Vec<usize>]) -> Work {
        let depth: usize = w.map_or(0, |w| w.iter().skip(1).product());
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work {
            flops: 2.0 * depth as f64 * out as f64,
            extra_bytes: 0.0,
            kernel: if self.group == 1 { Kernel::Dense } else { Kernel::Thin },
        }
    }
}

impl Operator for Conv {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let dtype = floats("Conv", inputs, 2..=3)?;
        let (types, fits) = self.results("Conv", &inputs[0], &inputs[1], dtype)?;
        fits.and_then(|()| per_channel("Conv", inputs, 2, &inputs[1].shape[0])).map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("Conv", inputs)?;
        let [x, w, rest @ ..] = tensors.as_slice() else { return Err(EvalError::value("Conv takes two or three operands")) };
        channel_vectors("Conv", &tensors, 2, w.shape.first().copied().unwrap_or(0))?;
        Ok(vec![Value::real(self.convolved("Conv", x, w, rest.first().map(|b| b.data.as_slice()))?)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Conv"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        node.import(crate::Op::Conv(Conv::of_node(node, 1)?))
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Conv", TYPES, version, outputs[0].dtype)?;
        let mut spelling = OnnxSpelling::plain("Conv", inputs.len());
        spelling.attrs = self.spelled("Conv", inputs.get(1))?;
        Ok(spelling)
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        self.effort(inputs.get(1), outputs)
    }
}

/// The kernel sizes of weights `[.., .., kernel..]` that fit the rank of `x`; checks the ranks and
/// the number of groups.
pub(crate) fn known_kernel(name: &str, x: &TensorType, w: &TensorType, group: i64) -> Result<Vec<i64>, TypeError> {
    if x.rank() < 3 || x.rank() != w.rank() {
        return Err(TypeError::invalid(format!("{name} of {x} with weights {w}")));
    }
    if !(1..=crate::ops::operands::LARGEST_SIZE).contains(&group) {
        return Err(TypeError::invalid(format!("{name} in {group} groups")));
    }
    let kernel: Option<Vec<i64>> = w.shape[2..].iter().map(Dim::known).collect();
    kernel.ok_or_else(|| TypeError::undecided(format!("{name} with weights {w}")))
}

/// The column buffer of one block stays below this many bytes.
pub(crate) const COLUMN_BYTES: usize = 8 << 20;

/// How many columns of `depth` elements fit into the column buffer; whole cache-friendly runs where
/// possible.
pub(crate) fn block_columns<S>(depth: usize, columns: usize) -> usize {
    const RUN: usize = 64;
    let fitting = COLUMN_BYTES / size_of::<S>().max(1) / depth.max(1);
    if fitting >= columns {
        columns.max(1)
    } else if fitting >= RUN {
        fitting / RUN * RUN
    } else {
        fitting.max(1)
    }
}

/// Elements of the convolution, `[N, M, out..]`; shapes match each other and the grid.
fn convolve<S: Scalar>(x: &Tensor<S>, w: &Tensor<S>, bias: Option<&[S]>, grid: &Grid, group: usize) -> Vec<S> {
    let (batch, results) = (x.shape[0], w.shape[0]);
    let (inner, outer) = (w.shape[1], results / group);
    let (plane, positions) = (grid.input_size(), grid.output_size());
    let depth = inner * grid.taps();
    let mut out = biased(bias, batch, results, positions);
    if out.is_empty() || depth == 0 {
        return out;
    }
    let taps = grid.tap_list();
    for (at, part) in out.chunks_exact_mut(outer * positions).enumerate() {
        let source = &x.data[at * inner * plane..][..inner * plane];
        let weights = &w.data[at % group * outer * depth..][..outer * depth];
        if inner == 1 {
            for (result, taps_of) in part.chunks_exact_mut(positions).zip(weights.chunks_exact(depth)) {
                direct(source, taps_of, &taps, grid, result);
            }
        } else if grid.is_pointwise() {
            S::gemm(outer, depth, positions, weights, source, part);
        } else {
            through_columns(source, weights, &taps, grid, [inner, outer], part);
        }
    }
    out
}

/// `[batch, results, positions]` filled with the bias of each result, or zeros.
pub(crate) fn biased<S: Scalar>(bias: Option<&[S]>, batch: usize, results: usize, positions: usize) -> Vec<S> {
    let Some(bias) = bias else { return zeros(batch * results * positions) };
    let mut out = Vec::with_capacity(batch * results * positions);
    for _ in 0..batch {
        for b in bias {
            out.extend(std::iter::repeat_n(b, positions).cloned());
        }
    }
    out
}

/// One plane convolved with one kernel, added to `result`.
fn direct<S: Scalar>(plane: &[S], weights: &[S], taps: &[[usize; 3]], grid: &Grid, result: &mut [S]) {
    let width = &grid.axes[2];
    for (row, line) in result.chunks_exact_mut(width.output).enumerate() {
        for (weight, tap) in weights.iter().zip(taps) {
            let Some(base) = grid.source_row(row, *tap) else { continue };
            let span = width.span(tap[2]);
            let Some(first) = width.source(span.start, tap[2]).filter(|_| !span.is_empty()) else { continue };
            let (line, from) = (&mut line[span], &plane[base + first..]);
            if width.stride == 1 {
                line.iter_mut().zip(from).for_each(|(sum, x)| *sum = sum.add(&x.mul(weight)));
            } else {
                line.iter_mut().zip(from.iter().step_by(width.stride)).for_each(|(sum, x)| *sum = sum.add(&x.mul(weight)));
            }
        }
    }
}

/// One group of one image as matrix products over blocks of positions.
fn through_columns<S: Scalar>(source: &[S], weights: &[S], taps: &[[usize; 3]], grid: &Grid, sizes: [usize; 2], part: &mut [S]) {
    let [inner, outer] = sizes;
    let (plane, positions) = (grid.input_size(), grid.output_size());
    let depth = inner * taps.len();
    let block = block_columns::<S>(depth, positions);
    let mut columns = vec![S::zero(); depth * block];
    let mut sums = Vec::new();
    for start in (0..positions).step_by(block) {
        let count = block.min(positions - start);
        for (at, column) in columns.chunks_exact_mut(count).take(depth).enumerate() {
            unfold(&source[at / taps.len() * plane..][..plane], taps[at % taps.len()], grid, start, column);
        }
        if count == positions {
            S::gemm(outer, depth, count, weights, &columns, part);
            return;
        }
        sums.clear();
        part.chunks_exact(positions).for_each(|row| sums.extend_from_slice(&row[start..start + count]));
        S::gemm(outer, depth, count, weights, &columns, &mut sums);
        for (row, sum) in part.chunks_exact_mut(positions).zip(sums.chunks_exact(count)) {
            row[start..start + count].clone_from_slice(sum);
        }
    }
}

/// What `tap` reads at the positions from `start` on; zeros in the padding.
fn unfold<S: Scalar>(plane: &[S], tap: [usize; 3], grid: &Grid, start: usize, column: &mut [S]) {
    let width = &grid.axes[2];
    let span = width.span(tap[2]);
    let (mut position, end) = (start, start + column.len());
    while position < end {
        let (row, from) = (position / width.output, position % width.output);
        let to = width.output.min(from + end - position);
        let line = &mut column[position - start..][..to - from];
        position += to - from;
        let (low, high) = (span.start.clamp(from, to), span.end.clamp(from, to));
        let source = grid.source_row(row, tap).filter(|_| low < high).zip(width.source(low, tap[2]));
        let Some((base, first)) = source else {
            line.fill(S::zero());
            continue;
        };
        line[..low - from].fill(S::zero());
        line[high - from..].fill(S::zero());
        let (inside, elements) = (&mut line[low - from..high - from], &plane[base + first..]);
        if width.stride == 1 {
            inside.clone_from_slice(&elements[..high - low]);
        } else {
            inside.iter_mut().zip(elements.iter().step_by(width.stride)).for_each(|(to, x)| to.clone_from(x));
        }
    }
}
