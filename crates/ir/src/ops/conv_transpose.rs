//! Transposed convolution: the adjoint of [`Conv`](crate::ops::conv::Conv) in its input.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::conv::{biased, block_columns, known_kernel};
use crate::ops::operands::{LARGEST_SIZE, channel_vectors, divided, enforced_sizes, floats, one_result, per_channel, reals};
use crate::ops::strided::transposed;
use crate::ops::window::{Grid, MOST_SPATIAL, Window, ints_or, spelled, split_pad, weight_kernel};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::{Shape, TensorType};

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..], w[C, M / group, kernel..] (, b[M]) → [N, M, out..]`: every element
    /// scatters the kernel, scaled by it.
    ///
    /// `out = stride * (in - 1) + output_padding + dilation * (kernel - 1) + 1 - pads` along each
    /// of 1 to 3 spatial axes.
    pub struct ConvTranspose {
        /// Step between scattered kernels, one per spatial axis.
        pub strides: Vec<i64>,
        /// Positions cut off the result: all begins, then all ends.
        pub pads: Vec<i64>,
        /// Step between taps, one per spatial axis.
        pub dilations: Vec<i64>,
        /// Number of groups of channels, which do not mix.
        pub group: i64,
        /// Positions added at the end, one per spatial axis; less than the stride or the dilation.
        pub output_padding: Vec<i64>,
    }
}

impl ConvTranspose {
    fn window<'a>(&'a self, kernel: &'a [i64]) -> Window<'a> {
        Window { kernel, strides: &self.strides, pads: &self.pads, dilations: &self.dilations }
    }

    fn check(&self, kernel: &[i64]) -> Result<(), TypeError> {
        self.window(kernel).check("ConvTranspose", kernel.len())?;
        let fits = |(axis, p): (usize, &i64)| (0..self.strides[axis].max(self.dilations[axis])).contains(p);
        if self.output_padding.len() != kernel.len() || !self.output_padding.iter().enumerate().all(fits) {
            return Err(TypeError::invalid(format!("ConvTranspose cannot pad its output by {:?}", self.output_padding)));
        }
        Ok(())
    }

    fn output(&self, window: &Window<'_>, axis: usize, size: &Dim) -> Result<Dim, TypeError> {
        let cut = self.pads[axis] + self.pads[axis + self.strides.len()];
        let added = self.output_padding[axis] + window.extent(axis) - cut;
        let out = (size.clone() - Dim::from(1)) * Dim::from(self.strides[axis]) + Dim::from(added);
        if out.known().is_some_and(|v| v < 1) || size.is(0) {
            return Err(TypeError::invalid(format!("ConvTranspose of size {size} leaves {out} after cutting {cut}")));
        }
        Ok(out)
    }
}

impl Operator for ConvTranspose {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let dtype = floats("ConvTranspose", inputs, 2..=3)?;
        let (x, w) = (&inputs[0], &inputs[1]);
        let kernel = known_kernel("ConvTranspose", x, w, self.group)?;
        self.check(&kernel)?;
        let results = w.shape[1].clone() * Dim::from(self.group);
        let window = self.window(&kernel);
        let mut shape = Shape::from_iter([x.shape[0].clone(), results.clone()]);
        for (axis, size) in x.shape[2..].iter().enumerate() {
            shape.push(self.output(&window, axis, size)?);
        }
        let types = vec![TensorType { dtype, shape }];
        enforced_sizes("ConvTranspose", "channels that fit the weights", &x.shape[1], &w.shape[0])
            .and_then(|()| divided("ConvTranspose", &w.shape[0], self.group))
            .and_then(|_| per_channel("ConvTranspose", inputs, 2, &results))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("ConvTranspose", inputs)?;
        let [x, w, rest @ ..] = tensors.as_slice() else { return Err(EvalError::value("ConvTranspose takes two or three operands")) };
        let group = usize::try_from(self.group).unwrap_or(0);
        let fits = (3..=2 + MOST_SPATIAL).contains(&x.shape.len()) && x.shape.len() == w.shape.len() && group > 0;
        if !fits || x.shape[1] != w.shape[0] || !w.shape[0].is_multiple_of(group) {
            return Err(EvalError::value(format!("ConvTranspose of {:?} with weights {:?} in {group} groups", x.shape, w.shape)));
        }
        let results = w.shape[1] * group;
        channel_vectors("ConvTranspose", &tensors, 2, results)?;
        let kernel: Vec<i64> = w.shape[2..].iter().map(|k| *k as i64).collect();
        self.check(&kernel).map_err(|e| EvalError::value(e.to_string()))?;
        let window = self.window(&kernel);
        let mut sizes = Vec::with_capacity(kernel.len());
        for (axis, size) in x.shape[2..].iter().enumerate() {
            let out = self.output(&window, axis, &Dim::from(*size as i64)).map_err(|e| EvalError::value(e.to_string()))?;
            sizes.push(out.known().and_then(|v| usize::try_from(v).ok()).ok_or_else(|| EvalError::value("ConvTranspose is too large"))?);
        }
        let grid = window.grid_between(&sizes, &x.shape[2..]);
        let mut shape = vec![x.shape[0], results];
        shape.extend(sizes);
        Ok(vec![Value::real(Tensor::new(shape, scatter(x, w, rest.first().map(|b| b.data.as_slice()), &grid, group)))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["ConvTranspose"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        let kernel = weight_kernel(node, 1)?;
        let rank = kernel.len();
        let (strides, dilations) = (ints_or(node, "strides", rank, 1)?, ints_or(node, "dilations", rank, 1)?);
        let output_padding = ints_or(node, "output_padding", rank, 0)?;
        let in_range = [&kernel, &strides, &dilations, &output_padding].into_iter().flatten().all(|v| (0..=LARGEST_SIZE).contains(v));
        if !in_range {
            return Err(Opaque("ConvTranspose with attributes out of range".into()));
        }
        let extent = |axis: usize| dilations[axis] * (kernel[axis] - 1) + 1;
        let given = ints_or(node, "pads", 2 * rank, 0)?;
        let auto_pad = node.str("auto_pad").unwrap_or("NOTSET");
        let wanted = node.ints("output_shape").filter(|s| !s.is_empty());
        // Total padding along each axis if it is implicit.
        let total = |axis: usize| match &wanted {
            Some(sizes) => {
                let size = node.ty(0)?.shape.get(axis + 2).and_then(Dim::known);
                match (size, sizes.get(axis).filter(|_| sizes.len() == rank)) {
                    (Some(n), Some(out)) if (1..=LARGEST_SIZE).contains(&n) && (1..=LARGEST_SIZE).contains(out) => {
                        Ok(strides[axis] * (n - 1) + output_padding[axis] + extent(axis) - out)
                    }
                    _ => Err(Opaque("ConvTranspose with an output_shape on symbolic sizes".into())),
                }
            }
            None => Ok((output_padding[axis] + extent(axis) - strides[axis]).max(0)),
        };
        let pads = match (auto_pad, &wanted) {
            ("NOTSET", None) => given,
            _ if given.iter().any(|p| *p != 0) => return Err(Opaque("ConvTranspose has both explicit and implicit pads".into())),
            ("VALID", None) => given,
            ("NOTSET" | "SAME_UPPER" | "SAME_LOWER", _) => {
                let mut pads = vec![0; 2 * rank];
                for axis in 0..rank {
                    let total = total(axis)?;
                    if total < 0 {
                        return Err(Opaque("ConvTranspose with an output_shape beyond its result".into()));
                    }
                    // Before opset 11, the standard and runtimes disagree on an odd pad's side.
                    if node.version < 11 && total % 2 != 0 {
                        return Err(Opaque(format!("ConvTranspose of opset {} with an odd implicit pad", node.version)));
                    }
                    (pads[axis], pads[rank + axis]) = split_pad(total, auto_pad == "SAME_UPPER");
                }
                pads
            }
            (other, _) => return Err(Opaque(format!("ConvTranspose with auto_pad {other}"))),
        };
        let group = node.int("group").unwrap_or(1);
        node.import(crate::Op::ConvTranspose(ConvTranspose { strides, pads, dilations, group, output_padding }))
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("ConvTranspose", TYPES, version, outputs[0].dtype)?;
        let kernel: Option<Vec<i64>> = inputs.get(1).and_then(|w| w.shape.iter().skip(2).map(Dim::known).collect());
        let Some(kernel) = kernel else { return Err(NoSpelling { op: "ConvTranspose", why: "its weights have symbolic sizes".into() }) };
        let mut spelling = OnnxSpelling::plain("ConvTranspose", inputs.len());
        spelling.attrs = spelled(&self.window(&kernel));
        if self.output_padding.iter().any(|p| *p != 0) {
            spelling = spelling.with("output_padding", Attr::Ints(self.output_padding.clone()));
        }
        Ok(spelling.with("group", Attr::Int(self.group)))
    }

    fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        let (x, w) = (inputs.first().map_or(0, |x| x.iter().product()), inputs.get(1).map_or(0, |w| w.iter().skip(1).product::<usize>()));
        Work { flops: 2.0 * x as f64 * w as f64, extra_bytes: 0.0, kernel: if self.group == 1 { Kernel::Dense } else { Kernel::Thin } }
    }
}

/// Elements of the transposed convolution; in `grid`, `output` is the operand's side and `input`
/// the result's.
fn scatter<S: Scalar>(x: &Tensor<S>, w: &Tensor<S>, bias: Option<&[S]>, grid: &Grid, group: usize) -> Vec<S> {
    let (batch, outer) = (x.shape[0], w.shape[1]);
    let inner = x.shape[1] / group;
    let (plane, positions) = (grid.input_size(), grid.output_size());
    let depth = outer * grid.taps();
    let mut out = biased(bias, batch, outer * group, plane);
    if out.is_empty() || inner * depth == 0 || positions == 0 {
        return out;
    }
    let taps = grid.tap_list();
    let block = block_columns::<S>(depth, positions);
    let mut columns = vec![S::zero(); depth * block];
    let mut gathered = Vec::new();
    for g in 0..group {
        let weights = transposed(&w.data[g * inner * depth..][..inner * depth], inner, depth);
        for n in 0..batch {
            let source = &x.data[(n * group + g) * inner * positions..][..inner * positions];
            let part = &mut out[(n * group + g) * outer * plane..][..outer * plane];
            for start in (0..positions).step_by(block) {
                let count = block.min(positions - start);
                let columns = &mut columns[..depth * count];
                columns.fill(S::zero());
                if count == positions {
                    S::gemm(depth, inner, count, &weights, source, columns);
                } else {
                    gathered.clear();
                    source.chunks_exact(positions).for_each(|row| gathered.extend_from_slice(&row[start..start + count]));
                    S::gemm(depth, inner, count, &weights, &gathered, columns);
                }
                for (at, column) in columns.chunks_exact(count).enumerate() {
                    fold(column, taps[at % taps.len()], grid, start, &mut part[at / taps.len() * plane..][..plane]);
                }
            }
        }
    }
    out
}

/// Adds what the positions from `start` on scatter through `tap`.
fn fold<S: Scalar>(column: &[S], tap: [usize; 3], grid: &Grid, start: usize, plane: &mut [S]) {
    let width = &grid.axes[2];
    let span = width.span(tap[2]);
    let (mut position, end) = (start, start + column.len());
    while position < end {
        let (row, from) = (position / width.output, position % width.output);
        let to = width.output.min(from + end - position);
        let line = &column[position - start..][..to - from];
        position += to - from;
        let (low, high) = (span.start.clamp(from, to), span.end.clamp(from, to));
        let target = grid.source_row(row, tap).filter(|_| low < high).zip(width.source(low, tap[2]));
        let Some((base, first)) = target else { continue };
        let line = &line[low - from..high - from];
        plane[base + first..].iter_mut().step_by(width.stride).zip(line).for_each(|(sum, x)| *sum = sum.add(x));
    }
}
