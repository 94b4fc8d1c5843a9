//! The extreme elements along an axis, in order.

use std::cmp::Ordering;

use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{int_order, only};
use crate::ops::movement::{axis_below, no_spelling};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (11, Types::INTS), (24, Types::BF16)];

operator! {
    /// The `k` largest elements along an axis, the largest first, and their indices as `i64`. Of
    /// equal elements, the one with the smallest index comes first.
    ///
    /// Elements that are not numbers are an evaluation error.
    pub struct TopK {
        /// The axis searched, ≥ 0.
        pub axis: i64,
        /// How many elements, at least 0 and at most the size of the axis.
        pub k: i64,
        /// Otherwise it is the smallest elements, the smallest first.
        pub largest: bool,
    }
}

impl Operator for TopK {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let x = only("TopK", inputs)?;
        accepts::check("TopK", TYPES, x.dtype)?;
        let axis = axis_below("TopK", self.axis, x.rank())?;
        let mut values = x.clone();
        values.shape[axis] = Dim::from(self.k);
        let types = vec![values.clone(), values.with_dtype(DType::I64)];
        let message = || format!("TopK of {} out of {} elements", self.k, x.shape[axis]);
        if self.k >= 0 && (x.shape[axis].clone() - Dim::from(self.k)).at_least(0) {
            Ok(types)
        } else if self.k < 0 || x.shape[axis].known().is_some() {
            Err(TypeError::Invalid(message()))
        } else {
            Err(TypeError::undecided(message()).with_types(types))
        }
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = inputs else { return Err(EvalError::value("TopK takes one operand")) };
        let axis = usize::try_from(self.axis).ok().filter(|axis| *axis < x.shape().len());
        let k = usize::try_from(self.k).ok();
        let Some((axis, k)) = axis.zip(k).filter(|(axis, k)| *k <= x.shape()[*axis]) else {
            return Err(EvalError::value(format!("TopK of {} elements along axis {} of {:?}", self.k, self.axis, x.shape())));
        };
        let wanted = if self.largest { Ordering::Greater } else { Ordering::Less };
        let unordered = || EvalError::value("TopK of elements that are not numbers");
        match x {
            Value::Real(x) => {
                let (values, indices) = search(x, axis, k, |a, b| Ok(a.compare(b)?.ok_or_else(unordered)? == wanted))?;
                Ok(vec![Value::real(values), Value::int(indices)])
            }
            Value::Int(x) => {
                let dtype = context.input_types[0].dtype;
                let (values, indices) = search(x, axis, k, |a, b| Ok(int_order(dtype, *a, *b) == wanted))?;
                Ok(vec![Value::int(values), Value::int(indices)])
            }
            Value::Bool(_) => Err(EvalError::value("TopK is defined for numbers")),
        }
    }

    fn onnx_types() -> &'static [&'static str] {
        &["TopK"]
    }

    /// The number is an attribute before opset 10 and an input from then on.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let axis = node.axis(node.int("axis").unwrap_or(-1), node.ty(0)?.rank())?;
        let k = match node.version {
            ..10 => node.int("k"),
            _ => node.constant(1)?.filter(|k| k.shape() == [1]).and_then(|k| k.to_i64()?.first().copied()),
        };
        let k = k.ok_or_else(|| Opaque("TopK without a number of elements".into()))?;
        let (largest, sorted) = match node.version {
            ..11 => (true, true),
            _ => (node.flag("largest", true)?, node.flag("sorted", true)?),
        };
        if !sorted && k > 1 {
            return Err(Opaque("TopK in any order".into()));
        }
        Ok(node.import_with(crate::Op::TopK(TopK { axis, k, largest }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("TopK", TYPES, version, inputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("TopK", 1).with("axis", Attr::Int(self.axis));
        match (version, self.largest) {
            (..11, false) => Err(no_spelling("TopK", format!("it finds the smallest since opset 11, the model has {version}"))),
            (..10, true) => Ok(spelling.with("k", Attr::Int(self.k))),
            (..11, true) => Ok(spelling.with_ints(&[self.k])),
            (_, largest) => Ok(spelling.with("largest", Attr::Int(i64::from(largest))).with_ints(&[self.k])),
        }
    }

    fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        let elements: f64 = inputs.iter().flatten().map(|size| *size as f64).product();
        Work { flops: elements * (2.0 + (self.k.max(1) as f64).log2()), extra_bytes: 0.0, kernel: Kernel::Window }
    }
}

/// The first `k` elements along `axis`, if those that are `before` others come first, and their
/// indices.
fn search<T: Clone>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    before: impl Fn(&T, &T) -> Result<bool, EvalError>,
) -> Result<(Tensor<T>, Tensor<i64>), EvalError> {
    let (length, inner) = (x.shape[axis], x.shape[axis + 1..].iter().product::<usize>());
    let outer: usize = x.shape[..axis].iter().product();
    let mut indices = vec![0; outer * k * inner];
    for lane in 0..outer * inner {
        let (block, at) = (lane / inner, lane % inner);
        let element = |index: usize| &x.data[(block * length + index) * inner + at];
        for (rank, index) in extremes(length, k, |a, b| before(element(a), element(b)))?.into_iter().enumerate() {
            indices[(block * k + rank) * inner + at] = index;
        }
    }
    let element = |(place, index): (usize, &usize)| x.data[(place / (k * inner) * length + index) * inner + place % inner].clone();
    let values = indices.iter().enumerate().map(element).collect();
    let mut shape = x.shape.clone();
    shape[axis] = k;
    Ok((Tensor::new(shape.clone(), values), Tensor::new(shape, indices.into_iter().map(|index| index as i64).collect())))
}

/// The first `k` indices below `length` in an order that may not be total; equal ones ascend.
fn extremes(length: usize, k: usize, before: impl Fn(usize, usize) -> Result<bool, EvalError>) -> Result<Vec<usize>, EvalError> {
    let mut found: Vec<usize> = Vec::with_capacity(k + 1);
    for index in 0..length {
        let (mut low, mut high) = (0, found.len());
        if high == k && high > 0 && !before(index, found[high - 1])? {
            continue;
        }
        while low < high {
            let middle = (low + high) / 2;
            if before(index, found[middle])? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        found.insert(low, index);
        found.truncate(k);
    }
    Ok(found)
}
