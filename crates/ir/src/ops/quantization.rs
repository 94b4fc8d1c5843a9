//! Shared by quantizing operators: which scale and zero point belong to an element, rounding and
//! saturation, and products of integers on which runtimes agree.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{OnnxNode, Opaque};
use crate::ops::operands::{LARGEST_SIZE, equal_sizes};
use crate::scalar::{Function, Scalar, Unsupported};
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// The first opset with scales per axis.
pub(crate) const SINCE_AXIS: i64 = 13;
/// The first opset with blocks, 16-bit integers, and the type of the result of `QuantizeLinear` as
/// an attribute.
pub(crate) const SINCE_BLOCKS: i64 = 21;
/// The first opset with the type of the result of `DequantizeLinear` and the precision of
/// `QuantizeLinear` as attributes.
pub(crate) const SINCE_PRECISION: i64 = 23;

/// The largest sum of two products that processors without instructions for such products hold.
const LARGEST_PAIR: u64 = i16::MAX as u64;

/// How finely a tensor is quantized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// One scale.
    Tensor,
    /// A scale per index along this axis.
    Axis(i64),
    /// A scale per block of so many elements along this axis.
    Blocks(i64, i64),
}

impl Grain {
    /// The grain that the attributes of an operator say.
    pub fn new(axis: Option<i64>, block_size: Option<i64>) -> Result<Grain, TypeError> {
        match (axis, block_size) {
            (None, None) => Ok(Grain::Tensor),
            (Some(axis), None) => Ok(Grain::Axis(axis)),
            (Some(axis), Some(size)) if (1..=LARGEST_SIZE).contains(&size) => Ok(Grain::Blocks(axis, size)),
            _ => Err(TypeError::invalid(format!("blocks of {block_size:?} elements along the axis {axis:?}"))),
        }
    }

    /// The grain of a node whose first two inputs are a tensor and its scales. A vector of one
    /// scale is one scale.
    pub fn import(node: &OnnxNode) -> Result<Grain, Opaque> {
        let (x, scale) = (node.ty(0)?, node.ty(1)?);
        let axis = if node.version >= SINCE_AXIS { node.int("axis") } else { None };
        let block_size = if node.version >= SINCE_BLOCKS { node.int("block_size").filter(|size| *size != 0) } else { None };
        let axis = || node.axis(axis.unwrap_or(1), x.rank());
        match (block_size, scale.shape.as_slice()) {
            (Some(size), _) if scale.rank() == x.rank() && x.rank() > 0 && (1..=LARGEST_SIZE).contains(&size) => {
                Ok(Grain::Blocks(axis()?, size))
            }
            (None, []) => Ok(Grain::Tensor),
            (None, [one]) if one.is(1) => Ok(Grain::Tensor),
            (None, [_]) if node.version >= SINCE_AXIS => Ok(Grain::Axis(axis()?)),
            (size, _) => Err(Opaque(format!("{} of {x} by scales {scale} in blocks of {size:?}", node.op_type))),
        }
    }

    /// The attributes `axis` and `block_size`.
    pub fn attributes(self) -> (Option<i64>, Option<i64>) {
        match self {
            Grain::Tensor => (None, None),
            Grain::Axis(axis) => (Some(axis), None),
            Grain::Blocks(axis, size) => (Some(axis), Some(size)),
        }
    }

    /// The first opset with such grains.
    pub fn since(self) -> i64 {
        match self {
            Grain::Tensor => 1,
            Grain::Axis(_) => SINCE_AXIS,
            Grain::Blocks(..) => SINCE_BLOCKS,
        }
    }

    /// Fails unless scales or zero points of this type fit a tensor of type `x`.
    pub fn check(self, name: &str, x: &TensorType, parameters: &TensorType) -> Result<(), TypeError> {
        let unfit = || TypeError::invalid(format!("{name} of {x} with the parameters {parameters}"));
        let size = |axis: i64| usize::try_from(axis).ok().and_then(|axis| x.shape.get(axis)).ok_or_else(unfit);
        match (self, parameters.shape.as_slice()) {
            (Grain::Tensor, []) => Ok(()),
            (Grain::Tensor, [one]) => equal_sizes(name, "one parameter", &Dim::from(1), one),
            (Grain::Axis(axis), [count]) => equal_sizes(name, "one parameter per index", size(axis)?, count),
            (Grain::Blocks(along, length), counts) if counts.len() == x.rank() => {
                let blocks = size(along)?.ceil_div(&Dim::from(length));
                (0..).zip(&x.shape).zip(counts).try_for_each(|((axis, size), count)| {
                    equal_sizes(name, "one parameter per block", if axis == along { &blocks } else { size }, count)
                })
            }
            _ => Err(unfit()),
        }
    }

    /// The places of parameters of the shape `parameters` for a tensor of the shape `x`.
    pub fn places(self, name: &str, x: &[usize], parameters: &[usize]) -> Result<Places, EvalError> {
        let fit = |shape: &[usize]| TensorType::new(DType::F32, shape.iter().map(|size| *size as i64));
        self.check(name, &fit(x), &fit(parameters)).map_err(|e| EvalError::value(e.to_string()))?;
        let inner = |axis: i64| x[axis as usize + 1..].iter().product();
        Ok(match self {
            Grain::Tensor => Places { size: 1, inner: usize::MAX, block: 1, counts: 1, stride: 0 },
            Grain::Axis(axis) => Places { size: x[axis as usize], inner: inner(axis), block: 1, counts: 0, stride: 0 },
            Grain::Blocks(axis, block) => {
                let (counts, inner) = (parameters[axis as usize], inner(axis));
                Places { size: x[axis as usize], inner, block: block as usize, counts, stride: inner }
            }
        })
    }
}

/// Where the parameter of an element is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Elements along the axis.
    size: usize,
    /// Elements from one index along the axis to the next.
    inner: usize,
    /// Indices along the axis that share a parameter.
    block: usize,
    /// Parameters along the axis for each outer index; 0 if all outer indices share them.
    counts: usize,
    /// Parameters from one along the axis to the next; 0 if all inner indices share them.
    stride: usize,
}

impl Places {
    /// The place of the parameter of the element `at`, in row-major order.
    pub fn of(self, at: usize) -> usize {
        let (row, inside) = (at / self.inner, at % self.inner);
        let (outer, index) = (row / self.size, row % self.size);
        match self.stride {
            0 => index,
            stride => (outer * self.counts + index / self.block) * stride + inside,
        }
    }
}

/// `x / scale` in single precision, rounded to the nearest integer, halves to even, plus `zero`, as
/// the nearest number of type `to`; not-a-number becomes the least one.
pub(crate) fn quantized<S: Scalar>(x: &S, scale: &S, zero: i64, to: DType) -> Result<i64, Unsupported> {
    let ratio = x.div(scale)?;
    let whole = match ratio.to_f64() {
        // Operands of a wider precision stand for those that a runtime has.
        Ok(_) => single(single(x.to_f64()?) / single(scale.to_f64()?)).round_ties_even(),
        // What is known of the ratio may be enough to round it.
        Err(_) => ratio.apply(Function::Round)?.to_f64()?,
    };
    Ok(saturated(whole, zero, to))
}

/// `whole + zero` as the nearest number of an integer type; not-a-number becomes the least one.
pub(crate) fn saturated(whole: f64, zero: i64, to: DType) -> i64 {
    let (low, high): (f64, f64) = match to {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65_535.0),
        _ => (-32_768.0, 32_767.0),
    };
    // Another order would keep what is not a number.
    low.max(whole + zero as f64).min(high) as i64
}

/// The nearest number of single precision.
pub(crate) fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

/// Fails unless a scale or zero point is one for the whole tensor.
pub(crate) fn one_parameter(name: &str, parameter: &TensorType) -> Result<(), TypeError> {
    match parameter.shape.as_slice() {
        [] => Ok(()),
        [one] => equal_sizes(name, "one parameter", &Dim::from(1), one),
        _ => Err(TypeError::invalid(format!("{name} needs one parameter for the whole tensor, not {parameter}"))),
    }
}

/// The only element of a tensor.
pub(crate) fn only_element<'a, T>(name: &str, tensor: &'a Tensor<T>) -> Result<&'a T, EvalError> {
    match tensor.data.as_slice() {
        [one] => Ok(one),
        all => Err(EvalError::value(format!("{name} needs one parameter, not {}", all.len()))),
    }
}

/// The integers of an operand.
pub(crate) fn integers<'a, S>(name: &str, inputs: &'a [Value<S>], at: usize) -> Result<&'a Tensor<i64>, EvalError> {
    match inputs.get(at) {
        Some(Value::Int(tensor)) => Ok(tensor),
        _ => Err(EvalError::value(format!("{name} needs integers as its operand {at}"))),
    }
}

/// The numbers of a real operand, as doubles.
pub(crate) fn numbers<S: Scalar>(name: &str, inputs: &[Value<S>], at: usize) -> Result<Tensor<f64>, EvalError> {
    match inputs.get(at) {
        Some(Value::Real(tensor)) => tensor.map(|v| Ok::<_, EvalError>(v.to_f64()?)),
        _ => Err(EvalError::value(format!("{name} needs reals as its operand {at}"))),
    }
}

/// Fails if runtimes disagree on sums of products of two inputs of 8-bit integers.
///
/// Where one is unsigned and the other signed, a processor without instructions for their products
/// adds them in pairs of 16 bits, which saturate. Pairs of products with small constants do not.
pub(crate) fn agreed_products(node: &OnnxNode, a: usize, b: usize) -> Result<(), Opaque> {
    let (left, right) = (node.ty(a)?.dtype, node.ty(b)?.dtype);
    if left == right {
        return Ok(());
    }
    let most = |at: usize, dtype: DType| {
        let constant = node.inputs.get(at).and_then(Option::as_ref).and_then(|input| input.value.as_ref());
        match (constant, dtype) {
            (Some(value), DType::I8) => value.bytes().iter().map(|v| u64::from((*v as i8).unsigned_abs())).max().unwrap_or(0),
            (Some(value), _) => value.bytes().iter().map(|v| u64::from(*v)).max().unwrap_or(0),
            (None, DType::I8) => 128,
            (None, _) => 255,
        }
    };
    if 2 * most(a, left) * most(b, right) > LARGEST_PAIR {
        return Err(Opaque(format!("{} of {left} and {right}, whose products saturate on some processors", node.op_type)));
    }
    Ok(())
}
