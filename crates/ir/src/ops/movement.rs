//! Shared by data-movement operators: strided block copies on any kind of value, checks of axes,
//! sizes bound at run time.

use crate::attr::Attr;
use crate::dim::{Bindings, Dim};
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{NoSpelling, OnnxNode, Opaque};
use crate::op::{EvalContext, Kernel, Work};
use crate::ops::strided::transposed;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::TensorType;

/// The value of the same kind whose tensor is `$body` of the tensor `$t` inside `$value`.
macro_rules! moved {
    ($value:expr, |$t:ident| $body:expr) => {
        match $value {
            $crate::Value::Real($t) => $crate::Value::real($body),
            $crate::Value::Int($t) => $crate::Value::int($body),
            $crate::Value::Bool($t) => $crate::Value::bool($body),
        }
    };
}
pub(crate) use moved;

/// Exactly `N` operand types.
pub(crate) fn operands<'a, const N: usize>(name: &str, inputs: &'a [TensorType]) -> Result<&'a [TensorType; N], TypeError> {
    inputs.try_into().map_err(|_| TypeError::invalid(format!("{name} takes {N} operands, not {}", inputs.len())))
}

/// Exactly `N` operand values.
pub(crate) fn values<'a, const N: usize, S>(name: &str, inputs: &'a [Value<S>]) -> Result<&'a [Value<S>; N], EvalError> {
    inputs.try_into().map_err(|_| EvalError::value(format!("{name} takes {N} operands, not {}", inputs.len())))
}

/// `axis` as an index below `rank`.
pub(crate) fn axis_below(name: &str, axis: i64, rank: usize) -> Result<usize, TypeError> {
    usize::try_from(axis)
        .ok()
        .filter(|a| *a < rank)
        .ok_or_else(|| TypeError::invalid(format!("{name} has the axis {axis}, but rank {rank} allows 0 to {}", rank as i64 - 1)))
}

/// `axes` as ascending indices below `rank`, without duplicates.
pub(crate) fn axes_below(name: &str, axes: &[i64], rank: usize) -> Result<Vec<usize>, TypeError> {
    if axes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(TypeError::invalid(format!("{name} needs ascending axes, none twice, not {axes:?}")));
    }
    axes.iter().map(|a| axis_below(name, *a, rank)).collect()
}

/// Shows that two sizes are equal for all symbol values; otherwise `what` starts the message. Only
/// for sizes that every runtime compares: the model does not run where they differ.
pub(crate) fn equal_sizes(a: &Dim, b: &Dim, what: impl Fn() -> String) -> Result<(), TypeError> {
    if a == b {
        return Ok(());
    }
    let message = format!("{}, not {a} and {b}", what());
    Err(if (a.clone() - b.clone()).known().is_some() { TypeError::Invalid(message) } else { TypeError::undecided(message).needing(a, b) })
}

/// Shows that a size is at least 0 for all symbol values ≥ 1; otherwise `what` names it in the
/// message.
pub(crate) fn not_negative(size: &Dim, what: impl Fn() -> String) -> Result<(), TypeError> {
    if size.at_least(0) {
        return Ok(());
    }
    let message = format!("{} must not be negative, but is {size}", what());
    Err(if size.known().is_some() { TypeError::Invalid(message) } else { TypeError::undecided(message) })
}

/// Product of sizes.
pub(crate) fn product(dims: &[Dim]) -> Dim {
    dims.iter().fold(Dim::from(1), |n, d| n * d.clone())
}

/// The numbers behind symbolic sizes at run time.
///
/// Symbols are bound by the context, else from the operands' sizes if a size of an operand's type
/// tells the symbol.
pub(crate) fn concrete<S: Scalar>(dims: &[Dim], inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<i64>, EvalError> {
    let at_once: Option<Vec<i64>> = dims.iter().map(|d| d.eval(context.bindings)).collect();
    if let Some(found) = at_once {
        return Ok(found);
    }
    let mut bindings: Bindings = context.bindings.clone();
    for (value, ty) in inputs.iter().zip(context.input_types) {
        for (size, d) in value.shape().iter().zip(&ty.shape) {
            if let Some((symbol, number)) = d.solve_number(*size as i64) {
                bindings.entry(symbol.to_string()).or_insert(number);
            }
        }
    }
    dims.iter().map(|d| d.eval(&bindings).ok_or_else(|| EvalError::Unbound(d.to_string()))).collect()
}

/// [`concrete`] for a shape: every number is at least 0.
pub(crate) fn concrete_shape<S: Scalar>(dims: &[Dim], inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<usize>, EvalError> {
    let negative = |d: &i64| EvalError::value(format!("a size is negative: {d}"));
    concrete(dims, inputs, context)?.iter().map(|d| usize::try_from(*d).map_err(|_| negative(d))).collect()
}

/// Copies a strided view out of `data`: the element at index `i` of `shape` is `data[offset + Σ
/// i·steps]`.
///
/// Contiguous runs are copied as blocks. Every index that the view reaches must be inside `data`.
pub(crate) fn read_strided<T: Clone>(data: &[T], shape: &[usize], steps: &[isize], offset: usize) -> Vec<T> {
    let total: usize = shape.iter().product();
    let mut out = Vec::with_capacity(total);
    if total == 0 {
        return out;
    }
    let mut axes: Vec<(usize, isize)> = Vec::with_capacity(shape.len());
    for (&size, &step) in shape.iter().zip(steps).filter(|(size, _)| **size != 1) {
        match axes.last_mut() {
            Some((outer, outer_step)) if *outer_step == step * size as isize => (*outer, *outer_step) = (*outer * size, step),
            _ => axes.push((size, step)),
        }
    }
    // A plain transpose: tile by tile.
    if let [(rows, 1), (columns, step)] = axes[..]
        && step == rows as isize
    {
        return transposed(&data[offset..offset + total], columns, rows);
    }
    let (run, run_step) = axes.pop().unwrap_or((1, 1));
    let mut index = vec![0; axes.len()];
    let mut at = offset as isize;
    loop {
        let start = at as usize;
        match run_step {
            1 => out.extend_from_slice(&data[start..start + run]),
            0 => out.extend(std::iter::repeat_n(&data[start], run).cloned()),
            step => out.extend((0..run as isize).map(|i| data[(at + i * step) as usize].clone())),
        }
        let mut axis = axes.len();
        loop {
            if axis == 0 {
                return out;
            }
            axis -= 1;
            index[axis] += 1;
            at += axes[axis].1;
            if index[axis] < axes[axis].0 {
                break;
            }
            at -= axes[axis].1 * axes[axis].0 as isize;
            index[axis] = 0;
        }
    }
}

/// Row-major strides as signed steps.
pub(crate) fn steps(shape: &[usize]) -> Vec<isize> {
    strides(shape).into_iter().map(|s| s as isize).collect()
}

/// The block of `tensor` that starts at `start` along `axis` and is `size` long there.
pub(crate) fn block<T: Clone>(tensor: &Tensor<T>, axis: usize, start: usize, size: usize) -> Tensor<T> {
    let mut shape = tensor.shape.clone();
    shape[axis] = size;
    let data = read_strided(&tensor.data, &shape, &steps(&tensor.shape), start * strides(&tensor.shape)[axis]);
    Tensor::new(shape, data)
}

/// The same elements under another shape.
///
/// # Errors
/// The number of elements differs.
pub(crate) fn reshaped<S: Scalar>(name: &str, value: &Value<S>, shape: &[usize]) -> Result<Value<S>, EvalError> {
    if value.shape().iter().product::<usize>() != shape.iter().product::<usize>() {
        return Err(EvalError::value(format!("{name} cannot view {:?} as {shape:?}", value.shape())));
    }
    Ok(moved!(value, |t| Tensor::new(shape.to_vec(), t.data.clone())))
}

/// The cost features of pure data movement.
pub(crate) fn copy() -> Work {
    Work { flops: 0.0, extra_bytes: 0.0, kernel: Kernel::Copy }
}

/// The cost features of a view.
pub(crate) fn free() -> Work {
    Work { flops: 0.0, extra_bytes: 0.0, kernel: Kernel::Free }
}

/// [`NoSpelling`] with a reason.
pub(crate) fn no_spelling(op: &'static str, why: impl Into<String>) -> NoSpelling {
    NoSpelling { op, why: why.into() }
}

/// Refuses element types beyond floats in opsets before `version`.
pub(crate) fn floats_before(op: &'static str, dtype: DType, version: i64, first: i64) -> Result<(), NoSpelling> {
    if version < first && !dtype.is_float() {
        return Err(no_spelling(op, format!("it takes {dtype} since opset {first}, the model has {version}")));
    }
    Ok(())
}

/// Input `at` of an ONNX node as sizes: a constant, or a computed shape that is known; `None` if
/// left out.
pub(crate) fn sizes_of(node: &OnnxNode, at: usize) -> Result<Option<Vec<Dim>>, Opaque> {
    let Some(input) = node.inputs.get(at).and_then(Option::as_ref) else { return Ok(None) };
    match (&input.value, &input.dims) {
        (None, Some(dims)) => Ok(Some(dims.clone())),
        _ => Ok(node.constant_ints(at)?.map(|v| v.into_iter().map(Dim::from).collect())),
    }
}

/// Input `at` of an ONNX node as sizes; an input that is left out keeps the node opaque.
pub(crate) fn required_sizes(node: &OnnxNode, at: usize) -> Result<Vec<Dim>, Opaque> {
    sizes_of(node, at)?.ok_or_else(|| Opaque(format!("{} leaves out input {at}", node.op_type)))
}

/// The axes of a node that takes them as an attribute before opset 13 and as input 1 from then on;
/// `None` if left out.
pub(crate) fn axes_of(node: &OnnxNode) -> Result<Option<Vec<i64>>, Opaque> {
    if node.version < 13 { Ok(node.ints("axes")) } else { node.constant_ints(1) }
}

/// `axes` counted from the front of `rank` dimensions, ascending; an axis given twice keeps the
/// node opaque.
pub(crate) fn ascending(node: &OnnxNode, axes: &[i64], rank: usize) -> Result<Vec<i64>, Opaque> {
    let mut axes = axes.iter().map(|a| node.axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if axes.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Opaque(format!("{} names an axis twice", node.op_type)));
    }
    Ok(axes)
}

/// A list of integers as an attribute.
pub(crate) fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}
