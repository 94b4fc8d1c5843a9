//! Picking slices by tuples of indices, and writing them.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::Class;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{copy, equal_sizes, moved, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::{Shape, TensorType};

operator! {
    /// `(data, indices)`: the slices of `data` at the tuples along the last axis of `indices`,
    /// whose other axes come first in the result.
    ///
    /// The first `batch_dims` axes are common to both. Negative indices count from the end; an
    /// index outside its axis is an evaluation error.
    pub struct GatherND {
        /// Common leading axes.
        pub batch_dims: i64,
    }
}

operator! {
    /// `(data, indices, updates)`: `data` with the slices at the tuples along the last axis of
    /// `indices` replaced by those of `updates`, in order.
    ///
    /// Negative indices count from the end; an index outside its axis is an evaluation error.
    pub struct ScatterND {}
}

/// How many axes of `data` a tuple of `indices` chooses along, after `batch` common ones; the axes
/// of the slices that are chosen; and those of the tuples.
fn chosen<'a>(name: &str, data: &'a TensorType, indices: &'a TensorType, batch: usize) -> Result<(&'a [Dim], &'a [Dim]), TypeError> {
    let invalid = || TypeError::invalid(format!("{name} of {data} by {indices}"));
    let Some((width, tuples)) = indices.shape.split_last() else { return Err(invalid()) };
    if indices.dtype.class() != Class::Int || batch > tuples.len() || batch > data.rank() {
        return Err(invalid());
    }
    let Some(width) = width.known() else { return Err(TypeError::undecided(format!("{name} by tuples of {width} indices"))) };
    let width = usize::try_from(width).ok().filter(|width| batch + width <= data.rank()).ok_or_else(invalid)?;
    for (own, other) in data.shape[..batch].iter().zip(tuples) {
        equal_sizes(own, other, || format!("{name} needs equal common axes"))?;
    }
    Ok((&data.shape[batch + width..], tuples))
}

/// The first element of the slice of each tuple.
fn starts(name: &str, shape: &[usize], indices: &Tensor<i64>, batch: usize) -> Result<Vec<usize>, EvalError> {
    let refused = || EvalError::value(format!("{name} of {shape:?} by {:?}", indices.shape));
    let Some((&width, tuples)) = indices.shape.split_last() else { return Err(refused()) };
    if batch + width > shape.len() || batch > tuples.len() || shape[..batch] != tuples[..batch] {
        return Err(refused());
    }
    let steps = crate::tensor::strides(shape);
    let (count, per_batch) = (tuples.iter().product::<usize>(), tuples[batch..].iter().product::<usize>().max(1));
    let within: usize = shape[batch..].iter().product();
    (0..count)
        .map(|tuple| {
            let along = |at: usize| {
                let (index, size) = (indices.data[tuple * width + at], shape[batch + at] as i64);
                let from_front = if index < 0 { index + size } else { index };
                let wrong = || EvalError::value(format!("{name} of index {index} along an axis of size {size}"));
                (0..size).contains(&from_front).then_some(from_front as usize * steps[batch + at]).ok_or_else(wrong)
            };
            (0..width).try_fold(tuple / per_batch * within, |start, at| Ok(start + along(at)?))
        })
        .collect()
}

impl Operator for GatherND {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [data, indices] = operands("GatherND", inputs)?;
        let batch = usize::try_from(self.batch_dims).map_err(|_| TypeError::invalid("GatherND with fewer than no common axes"))?;
        let (slices, tuples) = chosen("GatherND", data, indices, batch)?;
        let shape: Shape = tuples.iter().chain(slices).cloned().collect();
        Ok(vec![TensorType { dtype: data.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [data, Value::Int(indices)] = values("GatherND", inputs)? else {
            return Err(EvalError::value("GatherND needs integer indices"));
        };
        let batch = usize::try_from(self.batch_dims).unwrap_or(usize::MAX);
        let starts = starts("GatherND", data.shape(), indices, batch)?;
        let slices = &data.shape()[batch + indices.shape.last().copied().unwrap_or(0)..];
        let (size, shape) = (slices.iter().product::<usize>(), [&indices.shape[..indices.shape.len() - 1], slices].concat());
        Ok(vec![moved!(data, |t| read(t, &starts, size, &shape))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["GatherND"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(crate::Op::GatherND(GatherND { batch_dims: node.int("batch_dims").unwrap_or(0) }))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("GatherND", version, if self.batch_dims == 0 { 11 } else { 12 })?;
        let spelling = OnnxSpelling::plain("GatherND", 2);
        Ok(if self.batch_dims == 0 { spelling } else { spelling.with("batch_dims", Attr::Int(self.batch_dims)) })
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

impl Operator for ScatterND {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [data, indices, updates] = operands("ScatterND", inputs)?;
        let (slices, tuples) = chosen("ScatterND", data, indices, 0)?;
        let wanted: Vec<&Dim> = tuples.iter().chain(slices).collect();
        if updates.dtype != data.dtype || updates.rank() != wanted.len() {
            return Err(TypeError::invalid(format!("ScatterND of {data} by {indices} writes {updates}")));
        }
        for (size, other) in updates.shape.iter().zip(wanted) {
            equal_sizes(size, other, || "ScatterND needs as many updates as indices".into())?;
        }
        Ok(vec![data.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [data, Value::Int(indices), updates] = values("ScatterND", inputs)? else {
            return Err(EvalError::value("ScatterND needs integer indices"));
        };
        let starts = starts("ScatterND", data.shape(), indices, 0)?;
        Ok(vec![match (data, updates) {
            (Value::Real(t), Value::Real(u)) => Value::real(written(t, &starts, u)?),
            (Value::Int(t), Value::Int(u)) => Value::int(written(t, &starts, u)?),
            (Value::Bool(t), Value::Bool(u)) => Value::bool(written(t, &starts, u)?),
            _ => return Err(EvalError::value("ScatterND of elements of two kinds")),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["ScatterND"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        match node.str("reduction") {
            None | Some("none") => node.import(crate::Op::ScatterND(ScatterND {})),
            Some(other) => Err(Opaque(format!("ScatterND that reduces by `{other}`"))),
        }
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("ScatterND", version, 11)?;
        Ok(OnnxSpelling::plain("ScatterND", 3))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

fn read<T: Clone>(data: &Tensor<T>, starts: &[usize], size: usize, shape: &[usize]) -> Tensor<T> {
    Tensor::new(shape.to_vec(), starts.iter().flat_map(|start| data.data[*start..start + size].iter().cloned()).collect())
}

fn written<T: Clone>(data: &Tensor<T>, starts: &[usize], updates: &Tensor<T>) -> Result<Tensor<T>, EvalError> {
    let size = updates.data.len() / starts.len().max(1);
    let mut result = data.clone();
    for (start, slice) in starts.iter().zip(updates.data.chunks(size.max(1))) {
        let place = result.data.get_mut(*start..start + slice.len());
        place.ok_or_else(|| EvalError::value("ScatterND past the end"))?.clone_from_slice(slice);
    }
    Ok(result)
}
