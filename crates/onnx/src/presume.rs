//! Result types of nodes that stay opaque, by the meaning of their operators: true whenever the node runs without an error.
//!
//! Some nodes are opaque only because a condition on symbolic sizes cannot be shown (a `Concat` of sizes that are equal at run time, or
//! else the model fails). With a type for their results, the graph below them is still optimized.

use regraft_ir::{Attr, DType, Dim, Shape, TensorType};

use crate::symbolic::View;

/// Operators whose first result has the type of the first input.
const LIKE_FIRST: [&str; 17] = [
    "BatchNormalization",
    "Clip",
    "CumSum",
    "Dropout",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LpNormalization",
    "MeanVarianceNormalization",
    "QLinearSigmoid",
    "Relu",
    "ReverseSequence",
    "ScatterElements",
    "ScatterND",
    "Shrink",
    "Softmax",
    "Trilu",
];

/// The type of the node's first result; `None` where nothing is sure.
pub(crate) fn presume(view: &View<'_>) -> Option<TensorType> {
    let ty = |at: usize| view.types.get(at).and_then(Option::as_ref);
    match view.op_type {
        name if LIKE_FIRST.contains(&name) => ty(0).cloned(),
        "Concat" => concat(view),
        "Reshape" => reshape(view),
        "MatMul" => matmul(ty(0)?, ty(1)?),
        "Resize" => resize(view),
        "GatherElements" => Some(TensorType { dtype: ty(0)?.dtype, shape: ty(1)?.shape.clone() }),
        "CastLike" | "DequantizeLinear" => Some(ty(0)?.with_dtype(ty(1)?.dtype)),
        "QuantizeLinear" if view.given(2) => Some(ty(0)?.with_dtype(ty(2)?.dtype)),
        "ConstantOfShape" => {
            let dtype = match (view.attr)("value") {
                Some(Attr::Tensor(value)) => value.dtype(),
                Some(_) => return None,
                None => DType::F32,
            };
            Some(TensorType { dtype, shape: sizes(view, 0)?.into() })
        }
        "Expand" => {
            let x = ty(0)?;
            let wanted = sizes(view, 1)?;
            Some(TensorType { dtype: x.dtype, shape: regraft_ir::broadcast_shapes([x.shape.as_slice(), wanted.as_slice()])? })
        }
        _ => None,
    }
}

/// The elements of a 1-D size tensor, none of them negative for sure.
fn sizes(view: &View<'_>, input: usize) -> Option<Vec<Dim>> {
    let sizes = view.sizes.get(input)?.as_ref().filter(|s| !s.scalar)?;
    sizes.dims.iter().all(|d| d.known().is_none_or(|n| n >= 0)).then(|| sizes.dims.clone())
}

fn int(view: &View<'_>, name: &str) -> Option<i64> {
    match (view.attr)(name)? {
        Attr::Int(v) => Some(v),
        _ => None,
    }
}

/// Sizes across the axis are those of the first input that knows them as numbers, or else of the first input.
fn concat(view: &View<'_>) -> Option<TensorType> {
    let inputs: Vec<&TensorType> = view.types.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let first = *inputs.first()?;
    let rank = first.rank() as i64;
    let axis = int(view, "axis").unwrap_or(1);
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok().filter(|a| *a < first.rank())?;
    if inputs.iter().any(|t| t.rank() != first.rank() || t.dtype != first.dtype) {
        return None;
    }
    let known = |at: usize| inputs.iter().map(|t| &t.shape[at]).find(|d| d.known().is_some()).unwrap_or(&first.shape[at]).clone();
    let along = inputs.iter().fold(Dim::from(0), |sum, t| sum + t.shape[axis].clone());
    let shape = (0..first.rank()).map(|at| if at == axis { along.clone() } else { known(at) }).collect();
    Some(TensorType { dtype: first.dtype, shape })
}

fn reshape(view: &View<'_>) -> Option<TensorType> {
    let x = view.types.first()?.as_ref()?;
    let wanted = &view.sizes.get(1)?.as_ref().filter(|s| !s.scalar)?.dims;
    let zero_copies = int(view, "allowzero").unwrap_or(0) == 0;
    let mut shape: Vec<Dim> = Vec::with_capacity(wanted.len());
    for (at, d) in wanted.iter().enumerate() {
        shape.push(if d.is(0) && zero_copies { x.shape.get(at)?.clone() } else { d.clone() });
    }
    let open: Vec<usize> = (0..shape.len()).filter(|at| shape[*at].known().is_some_and(|n| n < 0)).collect();
    match open.as_slice() {
        [] => {}
        [at] if shape[*at].is(-1) => {
            let others = shape.iter().enumerate().filter(|(i, _)| i != at).fold(Dim::from(1), |p, (_, d)| p * d.clone());
            shape[*at] = x.elements().floor_div(&others);
        }
        _ => return None,
    }
    Some(TensorType { dtype: x.dtype, shape: shape.into() })
}

fn matmul(a: &TensorType, b: &TensorType) -> Option<TensorType> {
    let (ra, rb) = (a.rank(), b.rank());
    if ra < 2 || rb < 2 || a.dtype != b.dtype {
        return None;
    }
    let mut shape = regraft_ir::broadcast_shapes([&a.shape[..ra - 2], &b.shape[..rb - 2]])?;
    shape.extend([a.shape[ra - 2].clone(), b.shape[rb - 1].clone()]);
    Some(TensorType { dtype: a.dtype, shape })
}

/// Only where the sizes are given: scales are rounded in ways that differ between opsets.
fn resize(view: &View<'_>) -> Option<TensorType> {
    let x = view.types.first()?.as_ref()?;
    let axes = match (view.attr)("axes") {
        Some(Attr::Ints(axes)) => {
            axes.iter().map(|a| usize::try_from(if *a < 0 { a + x.rank() as i64 } else { *a }).ok()).collect::<Option<_>>()?
        }
        Some(_) => return None,
        None => (0..x.rank()).collect::<Vec<usize>>(),
    };
    let policy = matches!((view.attr)("keep_aspect_ratio_policy"), Some(Attr::Str(word)) if word != "stretch");
    let stated = sizes(view, 3).filter(|s| s.len() == axes.len() && !policy)?;
    let mut shape: Shape = x.shape.clone();
    for (axis, size) in axes.iter().zip(stated) {
        *shape.get_mut(*axis)? = size;
    }
    Some(TensorType { dtype: x.dtype, shape })
}
