//! Operators that pick elements; how many may depend on their values.

use regraft_ir::{Attr, DType, Dim};

use super::Presumed;
use crate::symbolic::View;

/// The types of the results; empty for operators of other families.
pub(super) fn presume(view: &View<'_>) -> Vec<Option<Presumed>> {
    match view.op_type {
        "Gather" => vec![gather(view)],
        "GatherElements" => vec![view.ty(0).zip(view.ty(1)).map(|(x, at)| Presumed::from(at).with_dtype(x.dtype))],
        "GatherND" => vec![gather_nd(view)],
        "OneHot" => vec![one_hot(view)],
        "TopK" => {
            let values = top_k(view);
            vec![values.clone(), values.map(|v| v.with_dtype(DType::I64))]
        }
        "Unique" => {
            let index = Some(Presumed::ranked(DType::I64, 1));
            vec![along(view), index.clone(), index.clone(), index]
        }
        "Compress" => vec![along(view)],
        "NonZero" => vec![view.ty(0).map(|x| Presumed::new(DType::I64, [Some(Dim::from(x.rank() as i64)), None]))],
        "NonMaxSuppression" => vec![Some(Presumed::new(DType::I64, [None, Some(Dim::from(3))]))],
        "ai.onnx.ml:ArrayFeatureExtractor" => vec![features(view)],
        "TfIdfVectorizer" => vec![tf_idf(view)],
        _ => Vec::new(),
    }
}

fn gather(view: &View<'_>) -> Option<Presumed> {
    let (x, indices) = (view.ty(0)?, view.ty(1)?);
    let axis = view.axis(view.int("axis").unwrap_or(0), x.rank())?;
    let sizes = x.shape[..axis].iter().chain(&indices.shape).chain(&x.shape[axis + 1..]);
    Some(Presumed::sized(x.dtype, sizes.cloned()))
}

fn gather_nd(view: &View<'_>) -> Option<Presumed> {
    let (x, indices) = (view.ty(0)?, view.ty(1)?);
    let batch = usize::try_from(view.int("batch_dims").unwrap_or(0)).ok()?;
    let (depth, outer) = indices.shape.split_last()?;
    let inner = x.shape.get(batch + usize::try_from(depth.known()?).ok()?..)?;
    Some(Presumed::sized(x.dtype, outer.iter().chain(inner).cloned()))
}

fn one_hot(view: &View<'_>) -> Option<Presumed> {
    let (indices, values) = (view.ty(0)?, view.ty(2)?);
    let axis = view.axis(view.int("axis").unwrap_or(-1), indices.rank() + 1)?;
    let depth = view.sizes.get(1).and_then(Option::as_ref).and_then(|s| s.dims.first().cloned());
    let mut shape: Vec<Option<Dim>> = indices.shape.iter().cloned().map(Some).collect();
    shape.insert(axis, depth);
    Some(Presumed::new(values.dtype, shape))
}

fn top_k(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let axis = view.axis(view.int("axis").unwrap_or(-1), x.rank())?;
    let count = view.int("k").map(Dim::from).or_else(|| view.list(1)?.first().cloned());
    Some(Presumed::from(x).with_size(axis, count))
}

/// Some of the slices along an axis, or of all elements where no axis is named.
fn along(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    match view.int("axis") {
        Some(axis) => Some(Presumed::from(x).with_size(view.axis(axis, x.rank())?, None)),
        None => Some(Presumed::ranked(x.dtype, 1)),
    }
}

fn tf_idf(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let Some(Attr::Ints(indexes)) = (view.attr)("ngram_indexes") else { return None };
    let width = indexes.iter().max()?.checked_add(1)?;
    let outer = x.shape.get(..x.rank().checked_sub(1)?)?;
    Some(Presumed::sized(DType::F32, outer.iter().cloned().chain([Dim::from(width)])))
}

/// Columns by their numbers.
fn features(view: &View<'_>) -> Option<Presumed> {
    let (x, columns) = (view.ty(0)?, view.ty(1)?);
    let outer = x.shape.get(..x.rank().checked_sub(1)?).filter(|outer| !outer.is_empty())?;
    Some(Presumed::sized(x.dtype, outer.iter().chain(columns.shape.last()).cloned()))
}
