//! Shared by element-wise operators: broadcasting type rules, loops, integer arithmetic, and ONNX
//! mappings.

use std::cmp::Ordering;

use crate::constant::Const;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, OnnxNode, Opaque};
use crate::op::{Kernel, Op, Work};
use crate::ops::unsqueeze::Unsqueeze;
use crate::scalar::{Scalar, Unsupported};
use crate::tensor::{Tensor, Value, broadcast_concrete, strides, wrap_int};
use crate::ty::{Shape, TensorType, broadcast_shapes};

/// The type rule of `count` broadcast operands with one element type; the result's is `result`, or
/// the same.
pub(crate) fn infer_broadcast(
    name: &str,
    inputs: &[TensorType],
    count: usize,
    result: Option<DType>,
) -> Result<Vec<TensorType>, TypeError> {
    let Some(first) = inputs.first().filter(|_| inputs.len() == count) else {
        return Err(TypeError::invalid(format!("{name} takes {count} operands, not {}", inputs.len())));
    };
    if let Some(other) = inputs.iter().find(|t| t.dtype != first.dtype) {
        return Err(TypeError::invalid(format!("{name} mixes {} and {}", first.dtype, other.dtype)));
    }
    Ok(vec![TensorType { dtype: result.unwrap_or(first.dtype), shape: broadcast(name, inputs)? }])
}

/// The shape that broadcasting all operands gives.
pub(crate) fn broadcast(name: &str, inputs: &[TensorType]) -> Result<Shape, TypeError> {
    broadcast_shapes(inputs.iter().map(|t| t.shape.as_slice())).ok_or_else(|| {
        TypeError::invalid(format!("{name} cannot broadcast {}", inputs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" with ")))
    })
}

/// The only operand of a unary operator.
pub(crate) fn only<'a>(name: &str, inputs: &'a [TensorType]) -> Result<&'a TensorType, TypeError> {
    match inputs {
        [one] => Ok(one),
        _ => Err(TypeError::invalid(format!("{name} takes one operand, not {}", inputs.len()))),
    }
}

/// `f` over two broadcast tensors. The loop is compiled once per element type, not per operator: an
/// indirect call per element costs less than the code of a hundred loops.
pub(crate) fn zip<A: Clone, B: Clone, C: Clone>(
    a: &Tensor<A>,
    b: &Tensor<B>,
    mut f: impl FnMut(&A, &B) -> Result<C, EvalError>,
) -> Result<Tensor<C>, EvalError> {
    zip_dyn(a, b, &mut f)
}

#[inline(never)]
fn zip_dyn<A: Clone, B: Clone, C: Clone>(
    a: &Tensor<A>,
    b: &Tensor<B>,
    f: &mut dyn FnMut(&A, &B) -> Result<C, EvalError>,
) -> Result<Tensor<C>, EvalError> {
    if a.shape == b.shape {
        let mut data = Vec::with_capacity(a.data.len());
        for (x, y) in a.data.iter().zip(&b.data) {
            data.push(f(x, y)?);
        }
        return Ok(Tensor::new(a.shape.clone(), data));
    }
    let shape = broadcast_concrete([a.shape.as_slice(), b.shape.as_slice()])
        .ok_or_else(|| EvalError::value(format!("cannot broadcast {:?} with {:?}", a.shape, b.shape)))?;
    let mut data = Vec::with_capacity(shape.iter().product());
    rows(&shape, [&a.shape, &b.shape], |[i, j], length, [step_i, step_j]| {
        for at in 0..length {
            data.push(f(&a.data[i + at * step_i], &b.data[j + at * step_j])?);
        }
        Ok(())
    })?;
    Ok(Tensor::new(shape, data))
}

/// Walks row-major through `shape` with operands that broadcast to it: for each longest run, `f`
/// gets the operands' first flat indices, the length, and the operands' steps.
pub(crate) fn rows<const N: usize>(
    shape: &[usize],
    operands: [&[usize]; N],
    mut f: impl FnMut([usize; N], usize, [usize; N]) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    if shape.contains(&0) {
        return Ok(());
    }
    let steps = operands.map(|own| {
        let offset = shape.len() - own.len();
        let strides = strides(own);
        move |axis: usize| if axis < offset || own[axis - offset] == 1 { 0 } else { strides[axis - offset] }
    });
    // Innermost first; an axis joins the one inside it if every operand is contiguous across both.
    let mut axes: Vec<(usize, [usize; N])> = Vec::new();
    for axis in (0..shape.len()).rev().filter(|axis| shape[*axis] != 1) {
        let step = std::array::from_fn(|at| steps[at](axis));
        match axes.last_mut() {
            Some((size, inside)) if (0..N).all(|at| step[at] == *size * inside[at]) => *size *= shape[axis],
            _ => axes.push((shape[axis], step)),
        }
    }
    let (length, step) = if axes.is_empty() { (1, [0; N]) } else { axes.remove(0) };
    let mut index = vec![0; axes.len()];
    let mut first = [0; N];
    loop {
        f(first, length, step)?;
        let mut axis = 0;
        loop {
            let Some((size, step)) = axes.get(axis) else { return Ok(()) };
            index[axis] += 1;
            if index[axis] < *size {
                first.iter_mut().zip(step).for_each(|(first, step)| *first += step);
                break;
            }
            index[axis] = 0;
            first.iter_mut().zip(step).for_each(|(first, step)| *first -= step * (size - 1));
            axis += 1;
        }
    }
}

/// Arithmetic on two broadcast values: `real` on real elements, `int` on integers (then wrapped to
/// `dtype`).
pub(crate) fn arithmetic<S: Scalar>(
    inputs: &[Value<S>],
    dtype: DType,
    real: impl Fn(&S, &S) -> Result<S, EvalError>,
    int: impl Fn(i64, i64) -> Result<i64, EvalError>,
) -> Result<Vec<Value<S>>, EvalError> {
    match inputs {
        [Value::Real(a), Value::Real(b)] => Ok(vec![Value::real(zip(a, b, real)?)]),
        [Value::Int(a), Value::Int(b)] => Ok(vec![Value::int(zip(a, b, |x, y| int(*x, *y).map(|v| wrap_int(dtype, v)))?)]),
        _ => Err(EvalError::value("operands are not numbers of one kind")),
    }
}

/// Arithmetic on one value: `real` on real elements, `int` on integers (then wrapped to `dtype`).
pub(crate) fn each<S: Scalar>(
    name: &str,
    inputs: &[Value<S>],
    dtype: DType,
    real: impl Fn(&S) -> Result<S, EvalError>,
    int: Option<&fn(DType, i64) -> i64>,
) -> Result<Vec<Value<S>>, EvalError> {
    match (inputs, int) {
        ([Value::Real(x)], _) => Ok(vec![Value::real(x.map(real)?)]),
        ([Value::Int(x)], Some(int)) => Ok(vec![Value::int(x.map(|v| Ok::<_, EvalError>(wrap_int(dtype, int(dtype, *v))))?)]),
        _ => Err(EvalError::value(format!("{name} is not defined for these elements"))),
    }
}

/// Order of two integers of type `dtype` (unsigned 64-bit ones are stored by their bits).
pub(crate) fn int_order(dtype: DType, a: i64, b: i64) -> Ordering {
    if dtype == DType::U64 { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) }
}

/// An integer of type `dtype` as a double.
pub(crate) fn int_to_f64(dtype: DType, value: i64) -> f64 {
    if dtype == DType::U64 { value as u64 as f64 } else { value as f64 }
}

/// A double as an integer of type `dtype`: truncated, and clamped to the type's range; not-a-number
/// becomes 0.
pub(crate) fn f64_to_int(dtype: DType, value: f64) -> i64 {
    let value = value.trunc();
    match dtype {
        DType::I8 => i64::from(value as i8),
        DType::U8 => i64::from(value as u8),
        DType::I16 => i64::from(value as i16),
        DType::U16 => i64::from(value as u16),
        DType::I32 => i64::from(value as i32),
        DType::U32 => i64::from(value as u32),
        DType::U64 => value as u64 as i64,
        _ => value as i64,
    }
}

/// Integer quotient, truncated towards zero.
pub(crate) fn int_div(dtype: DType, a: i64, b: i64) -> Result<i64, EvalError> {
    match (dtype, b) {
        (_, 0) => Err(EvalError::value("integer division by zero")),
        (DType::U64, _) => Ok((a as u64 / b as u64) as i64),
        _ => Ok(a.wrapping_div(b)),
    }
}

/// The one of two values that comes first in `order`: the second only if it is strictly better;
/// not-a-number wins over numbers.
pub(crate) fn pick<S: Scalar>(order: Ordering, a: &S, b: &S) -> Result<S, Unsupported> {
    S::extreme(order, a, b)
}

/// `x` clamped between two bounds that are numbers, the upper one winning; not-a-number stays.
pub(crate) fn clamp<S: Scalar>(x: &S, low: &S, high: &S) -> Result<S, Unsupported> {
    S::extreme(Ordering::Less, &S::extreme(Ordering::Greater, x, low)?, high)
}

/// One pass over the results, `flops` operations each.
pub(crate) fn pass(outputs: &[Vec<usize>], kernel: Kernel, flops: f64) -> Work {
    let elements: f64 = outputs.iter().map(|s| s.iter().product::<usize>() as f64).sum();
    Work { flops: flops * elements, extra_bytes: 0.0, kernel }
}

/// Declares broadcast arithmetic operators on two numbers: name, whether commutative, element
/// types, kernel, meaning on reals and on integers of a type.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident, $commutative:expr, $types:expr, |$x:ident, $y:ident| $real:expr, |$dtype:ident, $i:ident, $j:ident| $int:expr;)*) => {$(
        $crate::operator! { $(#[$doc])* pub struct $name {} }

        impl $crate::op::Operator for $name {
            const COMMUTATIVE: bool = $commutative;
            const ELEMENTWISE: bool = true;
            fn infer(&self, inputs: &[$crate::TensorType]) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
                let types = $crate::ops::elementwise::infer_broadcast(stringify!($name), inputs, 2, None)?;
                $crate::ops::accepts::check(stringify!($name), $types, inputs[0].dtype)?;
                Ok(types)
            }
            fn eval<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                let $dtype = context.output_types[0].dtype;
                $crate::ops::elementwise::arithmetic(inputs, $dtype, |$x: &S, $y: &S| $real, |$i: i64, $j: i64| $int)
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &$crate::onnx::OnnxNode) -> Result<$crate::onnx::Imported, $crate::onnx::Opaque> {
                $crate::ops::elementwise::import_broadcast(node, $crate::Op::$name($name {}))
            }
            fn spell(&self, inputs: &[$crate::TensorType], _: &[$crate::TensorType], version: i64) -> Result<$crate::onnx::OnnxSpelling, $crate::onnx::NoSpelling> {
                $crate::ops::elementwise::since(stringify!($name), version, 7)?;
                $crate::ops::accepts::spelled(stringify!($name), $types, version, inputs[0].dtype)?;
                Ok($crate::onnx::OnnxSpelling::plain(stringify!($name), 2))
            }
        }
    )*};
}
pub(crate) use binary;

/// Declares operators on one number, with float attributes and their ONNX defaults: element types,
/// kernel, operations per element, meaning on reals and, where accepted, on integers of a type.
macro_rules! pointwise {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident = $default:expr),* $(,)? }, $types:expr, $kernel:expr, $flops:expr,
        |$op:ident, $x:ident| $real:expr $(, |$dtype:pat_param, $i:ident| $int:expr)?;)*) => {$(
        $crate::operator! { $(#[$doc])* pub struct $name { $($(#[$fdoc])* pub $field: $crate::Float),* } }

        impl $crate::op::Operator for $name {
            const ELEMENTWISE: bool = true;
            fn infer(&self, inputs: &[$crate::TensorType]) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
                let operand = $crate::ops::elementwise::only(stringify!($name), inputs)?;
                $crate::ops::accepts::check(stringify!($name), $types, operand.dtype)?;
                Ok(vec![operand.clone()])
            }
            fn eval<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                let $op = self;
                let ints: &[fn($crate::DType, i64) -> i64] = &[$(|$dtype, $i| $int)?];
                $crate::ops::elementwise::each(stringify!($name), inputs, context.output_types[0].dtype, |$x: &S| Ok($real), ints.first())
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &$crate::onnx::OnnxNode) -> Result<$crate::onnx::Imported, $crate::onnx::Opaque> {
                node.import($crate::Op::$name($name { $($field: $crate::ops::elementwise::float_attr(node, stringify!($field), $default)),* }))
            }
            fn spell(&self, inputs: &[$crate::TensorType], _: &[$crate::TensorType], version: i64) -> Result<$crate::onnx::OnnxSpelling, $crate::onnx::NoSpelling> {
                $crate::ops::accepts::spelled(stringify!($name), $types, version, inputs[0].dtype)?;
                Ok($crate::onnx::OnnxSpelling::plain(stringify!($name), 1)$(.with(stringify!($field), $crate::Attr::Float(self.$field)))*)
            }
            fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> $crate::Work {
                $crate::ops::elementwise::pass(outputs, $kernel, $flops)
            }
        }
    )*};
}
pub(crate) use pointwise;

/// The float attribute `name`, or its default, at the precision of ONNX files.
pub(crate) fn float_attr(node: &OnnxNode, name: &str, default: f32) -> crate::Float {
    crate::Float(node.float(name).unwrap_or(f64::from(default)))
}

/// The operator on two broadcast operands. Before opset 7 the attributes `broadcast` and `axis`
/// align the second one.
pub(crate) fn import_broadcast(node: &OnnxNode, op: Op) -> Result<Imported, Opaque> {
    if node.version >= 7 || node.int("broadcast").unwrap_or(0) == 0 {
        return node.import(op);
    }
    let (left, right) = (node.ty(0)?.rank(), node.ty(1)?.rank());
    if right > left {
        return Err(Opaque(format!("{} broadcasts its first input", node.op_type)));
    }
    let first = match node.int("axis") {
        Some(axis) => node.axis(axis, left)? as usize,
        None => left - right,
    };
    if first + right > left {
        return Err(Opaque(format!("axis {first} of {} leaves no room for rank {right}", node.op_type)));
    }
    let second = if right == 0 { ImportOperand::Input(1) } else { lift(node, 1, left - right - first)? };
    Ok(Imported { op, operands: vec![ImportOperand::Input(0), second] })
}

/// The node's input `at` with `trailing` sizes of 1 appended, so that it broadcasts along earlier
/// axes.
pub(crate) fn lift(node: &OnnxNode, at: usize, trailing: usize) -> Result<ImportOperand, Opaque> {
    if trailing == 0 {
        return Ok(ImportOperand::Input(at));
    }
    let rank = node.ty(at)?.rank();
    let constant = node.inputs.get(at).and_then(Option::as_ref).and_then(|input| input.value.as_ref());
    let lifted = constant.and_then(|value| {
        let shape: Vec<i64> = value.shape().iter().copied().chain(std::iter::repeat_n(1, trailing)).collect();
        Const::new(value.dtype(), &shape, value.bytes().clone())
    });
    Ok(match lifted {
        Some(value) => ImportOperand::Const(value),
        None => {
            let axes = (rank..rank + trailing).map(|axis| axis as i64).collect();
            ImportOperand::Node(Box::new(node.import_with(Op::Unsqueeze(Unsqueeze { axes }), &[at])))
        }
    })
}

/// The operator exists from opset `first` on.
pub(crate) fn since(op: &'static str, version: i64, first: i64) -> Result<(), crate::onnx::NoSpelling> {
    if version < first {
        Err(crate::onnx::NoSpelling { op, why: format!("it exists since opset {first}, the model has {version}") })
    } else {
        Ok(())
    }
}
