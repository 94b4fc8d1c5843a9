//! Operators that move elements about, or make tensors of stated sizes.

use regraft_ir::{Attr, DType, Dim, Shape, TensorType};

use super::{Presumed, layers};
use crate::symbolic::View;

/// The types of the results; empty for operators of other families.
pub(super) fn presume(view: &View<'_>) -> Vec<Option<Presumed>> {
    vec![match view.op_type {
        "Concat" => concat(view),
        "Reshape" => reshape(view),
        "Resize" => resize(view),
        "ConstantOfShape" => constant_of_shape(view),
        "Expand" => expand(view),
        "Transpose" => transpose(view),
        "Unsqueeze" => view.ty(0).zip(view.length(1)).map(|(x, n)| Presumed::ranked(x.dtype, x.rank() + n)),
        "Squeeze" => view.ty(0).zip(view.length(1)).and_then(|(x, n)| Some(Presumed::ranked(x.dtype, x.rank().checked_sub(n)?))),
        "Slice" => slice(view),
        "Pad" | "Tile" | "CenterCropPad" | "Upsample" => view.ty(0).map(|x| Presumed::ranked(x.dtype, x.rank())),
        "Split" => return split(view),
        "Range" => view.ty(0).map(|x| Presumed::ranked(x.dtype, 1)),
        "SpaceToDepth" | "DepthToSpace" => blocks(view),
        "Col2Im" => col2im(view),
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => layers::window_function(view),
        "ImageDecoder" => Some(Presumed::ranked(DType::U8, 3)),
        "Shape" => Some(Presumed::ranked(DType::I64, 1)),
        "DFT" => dft(view),
        "StringSplit" => {
            let Some(x) = view.ty(0) else { return Vec::new() };
            let mut pieces = Presumed::from(x);
            pieces.shape.push(None);
            return vec![Some(pieces), Some(Presumed::from(x).with_dtype(DType::I64))];
        }
        "StringNormalizer" => view
            .ty(0)
            .map(|x| Presumed::ranked(DType::Str, x.rank()))
            .map(|y| if y.shape.len() == 2 { y.with_size(0, Some(Dim::from(1))) } else { y }),
        _ => return Vec::new(),
    }]
}

/// Sizes across the axis are those of the first input that knows them as numbers, or else of the
/// first input.
fn concat(view: &View<'_>) -> Option<Presumed> {
    let inputs: Vec<&TensorType> = view.types.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let first = *inputs.first()?;
    let axis = view.axis(view.int("axis").unwrap_or(1), first.rank())?;
    if inputs.iter().any(|t| t.rank() != first.rank() || t.dtype != first.dtype) {
        return None;
    }
    let known = |at: usize| inputs.iter().map(|t| &t.shape[at]).find(|d| d.known().is_some()).unwrap_or(&first.shape[at]).clone();
    let along = inputs.iter().fold(Dim::from(0), |sum, t| sum + t.shape[axis].clone());
    Some(Presumed::sized(first.dtype, (0..first.rank()).map(|at| if at == axis { along.clone() } else { known(at) })))
}

fn reshape(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    match reshaped(view, x) {
        Some(shape) => Some(Presumed::sized(x.dtype, shape)),
        None => view.length(1).map(|rank| Presumed::ranked(x.dtype, rank)),
    }
}

fn reshaped(view: &View<'_>, x: &TensorType) -> Option<Vec<Dim>> {
    let zero_copies = view.int("allowzero").unwrap_or(0) == 0;
    let wanted = view.list(1)?;
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
    Some(shape)
}

/// Exact only where the sizes are given: scales are rounded in ways that differ between opsets.
fn resize(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let stated = || -> Option<Shape> {
        let axes = match view.ints("axes") {
            Some(axes) => axes.into_iter().map(|a| view.axis(a, x.rank())).collect::<Option<_>>()?,
            None => (0..x.rank()).collect::<Vec<usize>>(),
        };
        let policy = view.word("keep_aspect_ratio_policy").is_some_and(|word| word != "stretch");
        let stated = view.stated_sizes(3).filter(|s| s.len() == axes.len() && !policy)?;
        let mut shape: Shape = x.shape.clone();
        for (axis, size) in axes.iter().zip(stated) {
            *shape.get_mut(*axis)? = size;
        }
        Some(shape)
    };
    if let Some(shape) = stated() {
        return Some(Presumed::sized(x.dtype, shape));
    }
    // Axes that are not named keep their sizes.
    let Some(axes) = view.ints("axes") else { return Some(Presumed::ranked(x.dtype, x.rank())) };
    let mut result = Presumed::from(x);
    for axis in axes {
        result = result.with_size(view.axis(axis, x.rank())?, None);
    }
    Some(result)
}

fn constant_of_shape(view: &View<'_>) -> Option<Presumed> {
    let dtype = match (view.attr)("value") {
        Some(Attr::Tensor(value)) => value.dtype(),
        Some(_) => return None,
        None => DType::F32,
    };
    match view.stated_sizes(0) {
        Some(sizes) => Some(Presumed::sized(dtype, sizes)),
        None => view.length(0).map(|rank| Presumed::ranked(dtype, rank)),
    }
}

fn expand(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let exact = view.stated_sizes(1).and_then(|wanted| regraft_ir::broadcast_shapes([x.shape.as_slice(), wanted.as_slice()]));
    match exact {
        Some(shape) => Some(Presumed::sized(x.dtype, shape)),
        None => {
            // A size other than 1 stays.
            let fixed = x.shape.iter().map(|d| d.known().filter(|n| *n != 1).map(Dim::from));
            let added = view.length(1)?.saturating_sub(x.rank());
            Some(Presumed::new(x.dtype, std::iter::repeat_n(None, added).chain(fixed)))
        }
    }
}

fn transpose(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let perm = view.ints("perm").unwrap_or_else(|| (0..x.rank() as i64).rev().collect());
    let sizes: Vec<Dim> = perm.into_iter().map(|a| view.axis(a, x.rank()).map(|axis| x.shape[axis].clone())).collect::<Option<_>>()?;
    Some(Presumed::sized(x.dtype, sizes))
}

/// Axes that are known not to be cut keep their sizes.
fn slice(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let axes = if view.given(3) { view.numbers(3) } else { view.length(1).map(|n| (0..n as i64).collect()) };
    let Some(axes) = axes else { return Some(Presumed::ranked(x.dtype, x.rank())) };
    let mut result = Presumed::from(x);
    for axis in axes {
        result = result.with_size(view.axis(axis, x.rank())?, None);
    }
    Some(result)
}

fn split(view: &View<'_>) -> Vec<Option<Presumed>> {
    let part = |at: usize, parts: usize| -> Option<Presumed> {
        let x = view.ty(0)?;
        let axis = view.axis(view.int("axis").unwrap_or(0), x.rank())?;
        let size = if view.given(1) {
            view.list(1).and_then(|sizes| sizes.get(at)).cloned()
        } else {
            let whole = &x.shape[axis];
            let (count, last) = (Dim::from(parts as i64), at + 1 == parts);
            // Equal parts, of which the last may be smaller.
            let chunk = whole.ceil_div(&count);
            Some(if last { whole.clone() - chunk * Dim::from(parts as i64 - 1) } else { chunk })
        };
        Some(Presumed::from(x).with_size(axis, size))
    };
    (0..view.results).map(|at| part(at, view.results)).collect()
}

fn blocks(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let [n, c, h, w] = x.shape.as_slice() else { return None };
    let block = Dim::from(view.int("blocksize").filter(|b| *b > 0)?);
    let area = block.clone() * block.clone();
    let sizes = if view.op_type == "SpaceToDepth" {
        [n.clone(), c.clone() * area, h.floor_div(&block), w.floor_div(&block)]
    } else {
        [n.clone(), c.floor_div(&area), h.clone() * block.clone(), w.clone() * block]
    };
    Some(Presumed::sized(x.dtype, sizes))
}

fn col2im(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let image = view.stated_sizes(1).map(|s| s.into_iter().map(Some).collect::<Vec<_>>());
    let named = || ["dilations", "pads", "strides"].into_iter().find_map(|name| Some((name, view.ints(name)?.len())));
    let rank = view.length(1).or_else(|| named().map(|(name, n)| if name == "pads" { n / 2 } else { n }));
    let image = image.or_else(|| rank.map(|n| vec![None; n]))?;
    let block = view.numbers(2).map(|sizes| Dim::from(sizes.into_iter().product::<i64>()));
    let channels = block.zip(x.shape.get(1)).map(|(block, c)| c.floor_div(&block));
    Some(Presumed::new(x.dtype, [Some(x.shape.first()?.clone()), channels].into_iter().chain(image)))
}

fn dft(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let flag = |name: &str| view.int(name).is_some_and(|v| v != 0);
    let (inverse, onesided) = (flag("inverse"), flag("onesided"));
    let axis = match view.version {
        ..20 => Some(view.int("axis").unwrap_or(1)),
        _ if view.given(2) => view.numbers(2).and_then(|axis| axis.first().copied()),
        _ => Some(-2),
    };
    let last = Some(Dim::from(if inverse && onesided { 1 } else { 2 }));
    if !view.given(1) && !onesided {
        return Some(Presumed::from(x).with_size(x.rank().checked_sub(1)?, last));
    }
    let Some(axis) = axis.and_then(|axis| view.axis(axis, x.rank())) else {
        return Some(Presumed::ranked(x.dtype, x.rank()).with_size(x.rank().checked_sub(1)?, last));
    };
    let length = if view.given(1) {
        view.sizes.get(1).and_then(Option::as_ref).and_then(|s| s.dims.first().cloned())
    } else if inverse && onesided {
        Some((x.shape[axis].clone() - Dim::from(1)) * Dim::from(2))
    } else {
        Some(x.shape[axis].clone())
    };
    let size = if onesided && !inverse { length.map(|n| n.floor_div(&Dim::from(2)) + Dim::from(1)) } else { length };
    Some(Presumed::from(x).with_size(axis, size).with_size(x.rank().checked_sub(1)?, last))
}
