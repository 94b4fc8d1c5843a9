//! Layers of networks: products, convolutions, pooling, recurrences, attention, losses.

use std::collections::BTreeMap;

use regraft_ir::{Attr, DType, Dim, TensorType, broadcast_shapes};

use super::{Presumed, named_type};
use crate::symbolic::View;

/// The types of the results; empty for operators of other families.
pub(super) fn presume(view: &View<'_>) -> Vec<Option<Presumed>> {
    match view.op_type {
        "MatMul" => vec![product(view, 0, 1, view.ty(0).map(|t| t.dtype))],
        "MatMulInteger" => vec![product(view, 0, 1, Some(DType::I32))],
        "QLinearMatMul" => vec![product(view, 0, 3, view.ty(7).map(|t| t.dtype))],
        "Gemm" => vec![gemm(view)],
        "Einsum" => vec![einsum(view)],
        "Conv" | "DeformConv" => vec![conv(view, 1, view.ty(0).map(|t| t.dtype))],
        "ConvInteger" => vec![conv(view, 1, Some(DType::I32))],
        "QLinearConv" => vec![conv(view, 3, view.ty(7).map(|t| t.dtype))],
        "ConvTranspose" => vec![conv_transpose(view)],
        "MaxPool" => {
            let pooled = pool(view);
            vec![pooled.clone(), pooled.map(|p| p.with_dtype(DType::I64))]
        }
        "AveragePool" | "LpPool" => vec![pool(view)],
        "MaxUnpool" => vec![unpool(view)],
        "LSTM" | "GRU" | "RNN" => recurrence(view),
        "Attention" => attention(view),
        "LinearAttention" => linear_attention(view),
        "ai.onnx.preview:FlexAttention" => vec![attention(view).into_iter().next().flatten()],
        "NegativeLogLikelihoodLoss" => vec![loss(view)],
        "SoftmaxCrossEntropyLoss" => vec![loss(view), view.ty(0).map(Presumed::from)],
        "SwiGLU" => vec![gated(view)],
        "RoiAlign" => vec![roi_align(view)],
        "GridSample" => vec![grid_sample(view)],
        "AffineGrid" => vec![affine_grid(view)],
        "ai.onnx.ml:TreeEnsemble" => vec![tree_ensemble(view)],
        "ai.onnx.preview.training:Momentum" | "ai.onnx.preview.training:Adagrad" => trained(view, 3),
        "ai.onnx.preview.training:Adam" => trained(view, 4),
        _ => Vec::new(),
    }
}

fn product(view: &View<'_>, a: usize, b: usize, dtype: Option<DType>) -> Option<Presumed> {
    let (a, b, dtype) = (view.ty(a)?, view.ty(b)?, dtype?);
    let (rows, columns) = (a.rank() >= 2, b.rank() >= 2);
    if a.rank() == 0 || b.rank() == 0 {
        return None;
    }
    let batch = |t: &TensorType| t.shape[..t.rank().saturating_sub(2)].to_vec();
    let (x, y) = (batch(a), batch(b));
    let mut shape: Vec<Option<Dim>> = match broadcast_shapes([x.as_slice(), y.as_slice()]) {
        Some(shape) => shape.into_iter().map(Some).collect(),
        None => vec![None; x.len().max(y.len())],
    };
    shape.extend(rows.then(|| Some(a.shape[a.rank() - 2].clone())));
    shape.extend(columns.then(|| Some(b.shape[b.rank() - 1].clone())));
    Some(Presumed::new(dtype, shape))
}

fn gemm(view: &View<'_>) -> Option<Presumed> {
    let (a, b) = (view.ty(0)?, view.ty(1)?);
    let flag = |name: &str| usize::from(view.int(name).is_some_and(|v| v != 0));
    let (rows, columns) = (a.shape.get(flag("transA"))?, b.shape.get(1 - flag("transB"))?);
    Some(Presumed::sized(a.dtype, [rows.clone(), columns.clone()]))
}

/// One size per result label and per axis of the ellipsis, sure where every operand says the same.
fn einsum(view: &View<'_>) -> Option<Presumed> {
    let Attr::Str(equation) = (view.attr)("equation")? else { return None };
    // A dot stands for the whole ellipsis.
    let plain: String = equation.replace("...", ".").chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = plain.split_once("->").map_or((plain.as_str(), None), |(left, right)| (left, Some(right)));
    if !left.bytes().chain(right.unwrap_or_default().bytes()).all(|c| c.is_ascii_alphabetic() || matches!(c, b',' | b'.')) {
        return None;
    }
    let mut sizes: BTreeMap<u8, Vec<&Dim>> = BTreeMap::new();
    let mut rest: Vec<&[Dim]> = Vec::new();
    for (at, labels) in left.split(',').enumerate() {
        let ty = view.ty(at)?;
        let mut axes = ty.shape.as_slice();
        let spare = (axes.len() + usize::from(labels.contains('.'))).checked_sub(labels.len())?;
        for (before, label) in labels.bytes().enumerate() {
            let (taken, left) = axes.split_at_checked(if label == b'.' { spare } else { 1 })?;
            axes = left;
            match label {
                b'.' => rest.push(taken),
                // The sizes of a diagonal are equal.
                _ if labels.as_bytes()[..before].contains(&label) => {}
                _ => sizes.entry(label).or_default().push(taken.first()?),
            }
        }
        if !axes.is_empty() {
            return None;
        }
    }
    let rank = rest.iter().map(|axes| axes.len()).max().unwrap_or(0);
    let rest: Vec<Option<Dim>> = broadcast_shapes(rest).map_or(vec![None; rank], |axes| axes.into_iter().map(Some).collect());
    let labels: Vec<u8> = match right {
        Some(right) => right.bytes().collect(),
        None => [b'.'].into_iter().chain(sizes.keys().copied().filter(|label| left.bytes().filter(|c| c == label).count() == 1)).collect(),
    };
    let mut shape = Vec::new();
    for label in labels {
        if label == b'.' {
            shape.extend(rest.iter().cloned());
            continue;
        }
        let said = sizes.get(&label)?;
        shape.push(said.iter().all(|size| *size == said[0]).then(|| said[0].clone()));
    }
    Some(Presumed::new(view.ty(0)?.dtype, shape))
}

fn conv(view: &View<'_>, weight: usize, dtype: Option<DType>) -> Option<Presumed> {
    let (x, w) = (view.ty(0)?, view.ty(weight)?);
    let kernel: Vec<Option<i64>> = match view.ints("kernel_shape") {
        Some(kernel) => kernel.into_iter().map(Some).collect(),
        None => w.shape.iter().skip(2).map(Dim::known).collect(),
    };
    let mut shape = vec![Some(x.shape.first()?.clone()), Some(w.shape.first()?.clone())];
    shape.extend(windows(view, x, &kernel)?);
    Some(Presumed::new(dtype?, shape))
}

/// Batch and channels, and what is stated: the other sizes have many sources.
fn conv_transpose(view: &View<'_>) -> Option<Presumed> {
    let (x, w) = (view.ty(0)?, view.ty(1)?);
    let channels = w.shape.get(1)?.clone() * Dim::from(view.int("group").unwrap_or(1));
    let mut result = Presumed::ranked(x.dtype, x.rank()).with_size(0, x.shape.first().cloned()).with_size(1, Some(channels));
    let stated = view.ints("output_shape").unwrap_or_default();
    for (at, size) in stated.iter().enumerate().filter(|_| stated.len() + 2 == x.rank()) {
        result = result.with_size(2 + at, Some(Dim::from(*size)));
    }
    Some(result)
}

fn pool(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let kernel: Vec<Option<i64>> = view.ints("kernel_shape")?.into_iter().map(Some).collect();
    let mut shape: Vec<Option<Dim>> = x.shape.iter().take(2).cloned().map(Some).collect();
    shape.extend(windows(view, x, &kernel)?);
    Some(Presumed::new(x.dtype, shape))
}

/// The inverse of a pooling, unless another size is asked for at run time.
fn unpool(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let kernel = view.ints("kernel_shape").filter(|k| k.len() + 2 == x.rank())?;
    let spatial = kernel.len();
    let strides = view.ints("strides").unwrap_or(vec![1; spatial]);
    let pads = view.ints("pads").unwrap_or(vec![0; 2 * spatial]);
    if view.given(2) || strides.len() != spatial || pads.len() != 2 * spatial {
        return Some(Presumed::ranked(x.dtype, x.rank()));
    }
    let mut result = Presumed::from(x);
    for at in 0..spatial {
        let whole = (x.shape[2 + at].clone() - Dim::from(1)) * Dim::from(strides[at]);
        result = result.with_size(2 + at, Some(whole + Dim::from(kernel[at] - pads[at] - pads[spatial + at])));
    }
    Some(result)
}

/// Sizes of the axes after the second one under windows.
fn windows(view: &View<'_>, x: &TensorType, kernel: &[Option<i64>]) -> Option<Vec<Option<Dim>>> {
    let spatial = x.rank().checked_sub(2).filter(|n| *n == kernel.len())?;
    let ints = |name: &str, default: i64, count: usize| view.ints(name).unwrap_or(vec![default; count]);
    let (strides, dilations, pads) = (ints("strides", 1, spatial), ints("dilations", 1, spatial), ints("pads", 0, 2 * spatial));
    if strides.len() != spatial || dilations.len() != spatial || pads.len() != 2 * spatial || strides.iter().any(|s| *s < 1) {
        return None;
    }
    let auto = view.word("auto_pad").filter(|word| word != "NOTSET");
    let ceil = view.int("ceil_mode").is_some_and(|v| v != 0);
    let size = |at: usize| -> Option<Dim> {
        let (input, stride) = (&x.shape[2 + at], strides[at]);
        let pads = match auto.as_deref() {
            None => (pads[at], pads[spatial + at]),
            Some("VALID") => (0, 0),
            Some("SAME_UPPER" | "SAME_LOWER") => return Some(input.ceil_div(&Dim::from(stride))),
            Some(_) => return None,
        };
        let extent = dilations[at].checked_mul(kernel[at]? - 1)?.checked_add(1)?;
        let room = input.clone() + Dim::from(pads.0 + pads.1 - extent);
        if !ceil {
            return Some(room.floor_div(&Dim::from(stride)) + Dim::from(1));
        }
        // A window that would start in the padding behind the input is left out.
        let (input, room) = (input.known()?, room.known()?);
        let count = (room + stride - 1).div_euclid(stride) + 1;
        Some(Dim::from(if (count - 1) * stride >= input + pads.0 { count - 1 } else { count }))
    };
    Some((0..spatial).map(size).collect())
}

/// The inputs that a causal convolution keeps for its next step.
pub(super) fn window_state(view: &View<'_>) -> Option<Presumed> {
    let (x, w) = (view.ty(0)?, view.ty(1)?);
    let kept = w.shape.last()?.clone() - Dim::from(1);
    Some(Presumed::sized(x.dtype, [x.shape.first()?.clone(), x.shape.get(1)?.clone(), kept]))
}

fn recurrence(view: &View<'_>) -> Vec<Option<Presumed>> {
    let types = || -> Option<[Presumed; 3]> {
        let x = view.ty(0).filter(|x| x.rank() == 3)?;
        let hidden = match view.int("hidden_size") {
            Some(size) => Dim::from(size),
            None => view.ty(2)?.shape.last()?.clone(),
        };
        let directions = Dim::from(if view.word("direction").as_deref() == Some("bidirectional") { 2 } else { 1 });
        let (a, b) = (x.shape[0].clone(), x.shape[1].clone());
        let (all, last) = if view.int("layout").is_some_and(|v| v != 0) {
            ([a.clone(), b, directions.clone(), hidden.clone()], [a, directions, hidden])
        } else {
            ([a, directions.clone(), b.clone(), hidden.clone()], [directions, b, hidden])
        };
        let last = Presumed::sized(x.dtype, last);
        Some([Presumed::sized(x.dtype, all), last.clone(), last])
    };
    types().map_or_else(Vec::new, |types| types.into_iter().map(Some).collect())
}

/// Batch, heads, length and head size of a query, key or value, in either layout.
fn heads(view: &View<'_>, input: usize, count: &str) -> Option<[Option<Dim>; 4]> {
    let x = view.ty(input)?;
    match x.shape.as_slice() {
        [batch, heads, length, size] => Some([batch, heads, length, size].map(|d| Some(d.clone()))),
        [batch, length, width] => {
            let heads = Dim::from(view.int(count)?);
            let size = width.floor_div(&heads);
            Some([Some(batch.clone()), Some(heads), Some(length.clone()), Some(size)])
        }
        _ => None,
    }
}

fn attention(view: &View<'_>) -> Vec<Option<Presumed>> {
    let types = || -> Option<Vec<Option<Presumed>>> {
        let [batch, q_heads, q_length, _] = heads(view, 0, "q_num_heads")?;
        let [_, k_heads, k_length, k_size] = heads(view, 1, "kv_num_heads")?;
        let [_, v_heads, v_length, v_size] = heads(view, 2, "kv_num_heads")?;
        let past = |input: usize, length: Option<Dim>| match view.given(input) {
            true => Some(view.ty(input)?.shape.get(2)?.clone() + length?),
            false => length,
        };
        let (total, v_total) = (past(4, k_length), past(5, v_length));
        let (q, k, v) = (view.ty(0)?.dtype, view.ty(1)?.dtype, view.ty(2)?.dtype);
        let y = match view.ty(0)?.rank() {
            3 => vec![batch.clone(), q_length.clone(), q_heads.clone().zip(v_size.clone()).map(|(heads, size)| heads * size)],
            _ => vec![batch.clone(), q_heads.clone(), q_length.clone(), v_size.clone()],
        };
        Some(vec![
            Some(Presumed::new(q, y)),
            Some(Presumed::new(k, [batch.clone(), k_heads, total.clone(), k_size])),
            Some(Presumed::new(v, [batch.clone(), v_heads, v_total, v_size])),
            Some(Presumed::new(q, [batch, q_heads, q_length, total])),
        ])
    };
    types().unwrap_or_default()
}

/// `[batch, length, heads × size]` and the state `[batch, heads, key size, value size]`.
fn linear_attention(view: &View<'_>) -> Vec<Option<Presumed>> {
    let types = || -> Option<Vec<Option<Presumed>>> {
        let [batch, q_heads, q_length, _] = heads(view, 0, "q_num_heads")?;
        let [_, _, _, k_size] = heads(view, 1, "kv_num_heads")?;
        let [_, v_heads, _, v_size] = heads(view, 2, "kv_num_heads")?;
        let width = q_heads.zip(v_size.clone()).map(|(heads, size)| heads * size);
        let (q, v) = (view.ty(0)?.dtype, view.ty(2)?.dtype);
        let state = view.ty(3).map_or(v, |past| past.dtype);
        Some(vec![Some(Presumed::new(q, [batch.clone(), q_length, width])), Some(Presumed::new(state, [batch, v_heads, k_size, v_size]))])
    };
    types().unwrap_or_default()
}

fn loss(view: &View<'_>) -> Option<Presumed> {
    let dtype = view.ty(0)?.dtype;
    match view.word("reduction").as_deref() {
        Some("none") => Some(Presumed::from(view.ty(1)?).with_dtype(dtype)),
        _ => Some(Presumed::ranked(dtype, 0)),
    }
}

/// One half gates the other.
fn gated(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    if view.given(1) {
        return Some(Presumed::from(x));
    }
    let axis = view.axis(view.int("axis").unwrap_or(-1), x.rank())?;
    Some(Presumed::from(x).with_size(axis, Some(x.shape[axis].floor_div(&Dim::from(2)))))
}

fn roi_align(view: &View<'_>) -> Option<Presumed> {
    let (x, rois) = (view.ty(0)?, view.ty(1)?);
    let side = |name: &str| Dim::from(view.int(name).unwrap_or(1));
    let sizes = [rois.shape.first()?.clone(), x.shape.get(1)?.clone(), side("output_height"), side("output_width")];
    Some(Presumed::sized(x.dtype, sizes))
}

fn grid_sample(view: &View<'_>) -> Option<Presumed> {
    let (x, grid) = (view.ty(0)?, view.ty(1)?);
    let inner = grid.shape.get(1..grid.rank().checked_sub(1)?)?;
    Some(Presumed::sized(x.dtype, x.shape.get(..2)?.iter().chain(inner).cloned()))
}

fn affine_grid(view: &View<'_>) -> Option<Presumed> {
    let dtype = view.ty(0)?.dtype;
    let stated = view.stated_sizes(1).map(|s| s.into_iter().map(Some).collect::<Vec<_>>());
    let sizes = stated.or_else(|| view.length(1).map(|n| vec![None; n]))?;
    let spatial = sizes.get(2..)?;
    let coordinates = Some(Dim::from(spatial.len() as i64));
    Some(Presumed::new(dtype, std::iter::once(sizes[0].clone()).chain(spatial.iter().cloned()).chain([coordinates])))
}

fn tree_ensemble(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    Some(Presumed::sized(x.dtype, [x.shape.first()?.clone(), Dim::from(view.int("n_targets")?)]))
}

/// Optimizer steps: after rate and time, `groups` groups of equal length; all but the gradients
/// (the second group) come back.
fn trained(view: &View<'_>, groups: usize) -> Vec<Option<Presumed>> {
    let Some(count) = view.types.len().checked_sub(2).map(|n| n / groups) else { return Vec::new() };
    let kept = (0..groups).filter(|group| *group != 1);
    kept.flat_map(|group| (0..count).map(move |at| 2 + group * count + at)).map(|input| view.ty(input).map(Presumed::from)).collect()
}

/// Values of a window function.
pub(super) fn window_function(view: &View<'_>) -> Option<Presumed> {
    let sizes = view.sizes.first()?.as_ref().map(|s| s.dims.as_slice());
    let size = match sizes {
        Some([size]) => Some(size.clone()),
        _ => None,
    };
    Some(Presumed::new(named_type(view, "output_datatype").unwrap_or(DType::F32), [size]))
}
