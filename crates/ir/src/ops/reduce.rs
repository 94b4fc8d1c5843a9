//! Reductions along a set of axes.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::dim::Dim;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{int_div, int_order, only, pick, zip};
use crate::scalar::{Function, Scalar};
use crate::tensor::{Tensor, Value, wrap_int};
use crate::ty::TensorType;
use crate::{Attr, Op};

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

impl Kind {
    /// Reducing along no axis changes nothing (it does not even take a logarithm, say).
    fn trivial_without_axes(self) -> bool {
        matches!(self, Kind::Sum | Kind::Mean | Kind::Max | Kind::Min | Kind::Prod)
    }

    /// The opset from which the axes are an input.
    fn axes_input_since(self) -> i64 {
        if self == Kind::Sum { 13 } else { 18 }
    }
}

const NUMBERS: &[Since] = &[(1, Types::FLOATS.and(Types::WIDE_INTS)), (13, Types::BF16)];
const REALS: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];
const EXTREMES: &[Since] =
    &[(1, Types::FLOATS.and(Types::WIDE_INTS)), (12, Types::I8.and(Types::U8)), (13, Types::BF16), (20, Types::BOOL)];

macro_rules! reduction {
    ($($(#[$doc:meta])* $name:ident, $kind:ident, $types:expr, $kernel:ident, $flops:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {
            /// Axes to reduce: ≥ 0, ascending. If empty, nothing is reduced.
            pub axes: Vec<i64>,
            /// Reduced axes stay, with size 1.
            pub keepdims: bool
        } }

        impl Operator for $name {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                infer(stringify!($name), $types, &self.axes, self.keepdims, inputs)
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                eval(Kind::$kind, &self.axes, self.keepdims, inputs, context.output_types[0].dtype)
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                let (axes, keepdims) = import(node, Kind::$kind)?;
                Ok(node.import_with(Op::$name($name { axes, keepdims }), &[0]))
            }
            fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                accepts::spelled(stringify!($name), $types, version, inputs[0].dtype)?;
                spell(stringify!($name), Kind::$kind, &self.axes, self.keepdims, inputs, version)
            }
            fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
                let elements: f64 = inputs.iter().map(|s| s.iter().product::<usize>() as f64).sum();
                Work { flops: $flops * elements, extra_bytes: 0.0, kernel: Kernel::$kernel }
            }
        }
    )*};
}

reduction! {
    /// The sum.
    ReduceSum, Sum, NUMBERS, Window, 1.0;
    /// The arithmetic mean; of integers, truncated.
    ReduceMean, Mean, NUMBERS, Window, 1.0;
    /// The largest element; not-a-number if there is one. Over no elements: the type's minimum.
    ReduceMax, Max, EXTREMES, Window, 1.0;
    /// The smallest element; not-a-number if there is one. Over no elements: the type's maximum.
    ReduceMin, Min, EXTREMES, Window, 1.0;
    /// The product.
    ReduceProd, Prod, NUMBERS, Window, 1.0;
    /// The sum of magnitudes.
    ReduceL1, L1, NUMBERS, Window, 2.0;
    /// The square root of the sum of squares.
    ReduceL2, L2, REALS, Window, 2.0;
    /// The logarithm of the sum.
    ReduceLogSum, LogSum, REALS, Window, 1.0;
    /// The logarithm of the sum of exponentials.
    ReduceLogSumExp, LogSumExp, REALS, Transcendental, 10.0;
    /// The sum of squares.
    ReduceSumSquare, SumSquare, NUMBERS, Window, 2.0;
}

fn infer(name: &str, types: &[Since], axes: &[i64], keepdims: bool, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
    let operand = only(name, inputs)?;
    accepts::check(name, types, operand.dtype)?;
    if axes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(TypeError::invalid(format!("the axes {axes:?} of {name} do not ascend")));
    }
    if let Some(axis) = axes.iter().find(|axis| !(0..operand.rank() as i64).contains(*axis)) {
        return Err(TypeError::invalid(format!("{name} of {operand} has no axis {axis}")));
    }
    let shape = operand.shape.iter().enumerate().filter_map(|(at, d)| match (axes.contains(&(at as i64)), keepdims) {
        (false, _) => Some(d.clone()),
        (true, true) => Some(Dim::from(1)),
        (true, false) => None,
    });
    Ok(vec![TensorType { dtype: operand.dtype, shape: shape.collect() }])
}

/// Axes and `keepdims` of an ONNX node. Missing axes mean all axes, unless `noop_with_empty_axes`
/// asks for none.
fn import(node: &OnnxNode, kind: Kind) -> Result<(Vec<i64>, bool), Opaque> {
    let ty = node.ty(0)?;
    let given = if node.version < kind.axes_input_since() { node.ints("axes") } else { node.constant_ints(1)? };
    let mut axes = given.unwrap_or_default().into_iter().map(|axis| node.axis(axis, ty.rank())).collect::<Result<Vec<i64>, Opaque>>()?;
    axes.sort_unstable();
    axes.dedup();
    let none = node.flag("noop_with_empty_axes", false)?;
    if axes.is_empty() && !none {
        axes = (0..ty.rank() as i64).collect();
    }
    if axes.is_empty() && none && !kind.trivial_without_axes() {
        return Err(Opaque(format!("{} along no axes", node.op_type)));
    }
    if ty.dtype.class() == Class::Int && matches!(kind, Kind::L2 | Kind::LogSum | Kind::LogSumExp) {
        return Err(Opaque(format!("{} of integers", node.op_type)));
    }
    Ok((axes, node.flag("keepdims", true)?))
}

fn spell(
    name: &'static str,
    kind: Kind,
    axes: &[i64],
    keepdims: bool,
    inputs: &[TensorType],
    version: i64,
) -> Result<OnnxSpelling, NoSpelling> {
    let spelling = OnnxSpelling::plain(name, 1).with("keepdims", Attr::Int(i64::from(keepdims)));
    let as_input = version >= kind.axes_input_since();
    match (axes.is_empty(), inputs[0].rank()) {
        // For a scalar, all axes are no axes, which omitting them expresses.
        (true, 0) => Ok(spelling),
        (true, _) if as_input && kind.trivial_without_axes() => Ok(spelling.with("noop_with_empty_axes", Attr::Int(1))),
        (true, _) => Err(NoSpelling { op: name, why: format!("reducing along no axes has no form at opset {version}") }),
        (false, _) if as_input => Ok(spelling.with_ints(axes)),
        (false, _) => Ok(spelling.with("axes", Attr::Ints(axes.to_vec()))),
    }
}

fn eval<S: Scalar>(kind: Kind, axes: &[i64], keepdims: bool, inputs: &[Value<S>], dtype: DType) -> Result<Vec<Value<S>>, EvalError> {
    let [operand] = inputs else { return Err(EvalError::value("a reduction takes one operand")) };
    let reduced = |at: usize| axes.contains(&(at as i64));
    let kept: Vec<usize> = operand.shape().iter().enumerate().map(|(at, d)| if reduced(at) { 1 } else { *d }).collect();
    let count: usize = operand.shape().iter().enumerate().filter(|(at, _)| reduced(*at)).map(|(_, d)| *d).product();
    let result = match operand {
        Value::Real(x) => Value::real(Tensor::new(kept.clone(), reals(kind, x, axes, &kept, count)?)),
        Value::Int(x) => Value::int(Tensor::new(kept.clone(), ints(kind, x, axes, count, dtype)?)),
        Value::Bool(x) => {
            let data = match kind {
                Kind::Max => fold(&x.data, &x.shape, axes, &false, &|a, b| Ok(*a || *b))?,
                Kind::Min => fold(&x.data, &x.shape, axes, &true, &|a, b| Ok(*a && *b))?,
                _ => return Err(EvalError::value("this reduction is not defined for booleans")),
            };
            Value::bool(Tensor::new(kept.clone(), data))
        }
    };
    if keepdims {
        return Ok(vec![result]);
    }
    let shape: Vec<usize> = operand.shape().iter().enumerate().filter(|(at, _)| !reduced(*at)).map(|(_, d)| *d).collect();
    Ok(vec![match result {
        Value::Real(t) => Value::real(Tensor::new(shape, t.data.clone())),
        Value::Int(t) => Value::int(Tensor::new(shape, t.data.clone())),
        Value::Bool(t) => Value::bool(Tensor::new(shape, t.data.clone())),
    }])
}

fn reals<S: Scalar>(kind: Kind, x: &Tensor<S>, axes: &[i64], kept: &[usize], count: usize) -> Result<Vec<S>, EvalError> {
    let sum = |data: &[S]| fold(data, &x.shape, axes, &S::zero(), &|a: &S, b: &S| Ok(a.add(b)));
    let each = |data: &[S], f: &dyn Fn(&S) -> Result<S, EvalError>| data.iter().map(f).collect::<Result<Vec<S>, EvalError>>();
    let squares = |data: &[S]| each(data, &|v| Ok(v.mul(v)));
    let extreme = |order: Ordering, empty: f64| fold(&x.data, &x.shape, axes, &S::from_f64(empty), &|a: &S, b: &S| Ok(pick(order, a, b)?));
    match kind {
        Kind::Sum => sum(&x.data),
        Kind::Mean => {
            let count = S::from_f64(count as f64);
            each(&sum(&x.data)?, &|v| Ok(v.div(&count)?))
        }
        Kind::Max => extreme(Ordering::Greater, f64::NEG_INFINITY),
        Kind::Min => extreme(Ordering::Less, f64::INFINITY),
        Kind::Prod => fold(&x.data, &x.shape, axes, &S::one(), &|a: &S, b: &S| Ok(a.mul(b))),
        Kind::L1 => sum(&each(&x.data, &|v| Ok(v.apply(Function::Abs)?))?),
        Kind::SumSquare => sum(&squares(&x.data)?),
        Kind::L2 => each(&sum(&squares(&x.data)?)?, &|v| Ok(v.apply(Function::Sqrt)?)),
        Kind::LogSum => each(&sum(&x.data)?, &|v| Ok(v.apply(Function::Log)?)),
        Kind::LogSumExp => {
            // Shifted by the largest element so that nothing overflows; not if it is infinite or
            // values have no order.
            let zero = S::zero();
            let shift = match extreme(Ordering::Greater, f64::NEG_INFINITY) {
                Ok(largest) => largest.into_iter().map(|v| if v.sub(&v) == zero { v } else { zero.clone() }).collect(),
                Err(EvalError::Scalar(_)) => vec![zero.clone(); kept.iter().product()],
                Err(other) => return Err(other),
            };
            let shift = Tensor::new(kept.to_vec(), shift);
            let exponentials = zip(x, &shift, |v, s| Ok(v.sub(s).apply(Function::Exp)?))?;
            let logs = each(&sum(&exponentials.data)?, &|v| Ok(v.apply(Function::Log)?))?;
            Ok(logs.iter().zip(&shift.data).map(|(l, s)| l.add(s)).collect())
        }
    }
}

fn ints(kind: Kind, x: &Tensor<i64>, axes: &[i64], count: usize, dtype: DType) -> Result<Vec<i64>, EvalError> {
    let sum = |data: &[i64]| fold(data, &x.shape, axes, &0, &|a: &i64, b: &i64| Ok(wrap_int(dtype, a.wrapping_add(*b))));
    let extreme = |order: Ordering, empty: i64| {
        fold(&x.data, &x.shape, axes, &empty, &|a: &i64, b: &i64| Ok(if int_order(dtype, *b, *a) == order { *b } else { *a }))
    };
    let (least, greatest) = int_range(dtype);
    match kind {
        Kind::Sum => sum(&x.data),
        Kind::Mean => sum(&x.data)?.into_iter().map(|v| int_div(dtype, v, count as i64)).collect(),
        Kind::Max => extreme(Ordering::Greater, least),
        Kind::Min => extreme(Ordering::Less, greatest),
        Kind::Prod => fold(&x.data, &x.shape, axes, &1, &|a: &i64, b: &i64| Ok(wrap_int(dtype, a.wrapping_mul(*b)))),
        Kind::L1 if dtype == DType::U64 => sum(&x.data),
        Kind::L1 => sum(&x.data.iter().map(|v| wrap_int(dtype, v.wrapping_abs())).collect::<Vec<_>>()),
        Kind::SumSquare => sum(&x.data.iter().map(|v| wrap_int(dtype, v.wrapping_mul(*v))).collect::<Vec<_>>()),
        Kind::L2 | Kind::LogSum | Kind::LogSumExp => Err(EvalError::value("this reduction is not defined for integers")),
    }
}

/// Minimum and maximum of an integer type, as 64-bit integers (the unsigned 64-bit type by its
/// bits).
fn int_range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::U8 => (0, i64::from(u8::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::U16 => (0, i64::from(u16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::U32 => (0, i64::from(u32::MAX)),
        DType::U64 => (0, -1),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Elements combined along `axes` of row-major `data`; `empty` where an axis has size 0.
///
/// Long runs are combined pairwise by halves, so that sums lose few digits.
fn fold<T: Clone>(
    data: &[T],
    shape: &[usize],
    axes: &[i64],
    empty: &T,
    combine: &impl Fn(&T, &T) -> Result<T, EvalError>,
) -> Result<Vec<T>, EvalError> {
    // Neighbouring axes with the same role count as one axis.
    let mut groups: Vec<(usize, bool)> = Vec::new();
    for (at, size) in shape.iter().enumerate() {
        let reduced = axes.contains(&(at as i64));
        match groups.last_mut() {
            Some(last) if last.1 == reduced => last.0 *= size,
            _ => groups.push((*size, reduced)),
        }
    }
    let mut data = Cow::Borrowed(data);
    while let Some(at) = groups.iter().rposition(|group| group.1) {
        let product = |part: &[(usize, bool)]| part.iter().map(|group| group.0).product::<usize>();
        let (outer, window, inner) = (product(&groups[..at]), groups[at].0, product(&groups[at + 1..]));
        let mut folded = Vec::with_capacity(outer * inner);
        if window == 0 {
            folded.resize(outer * inner, empty.clone());
        } else if inner > 0 {
            for block in data.chunks_exact(window * inner) {
                if inner == 1 {
                    folded.push(run(block, combine)?);
                } else {
                    folded.extend(columns(block, inner, combine)?);
                }
            }
        }
        data = Cow::Owned(folded);
        groups.remove(at);
    }
    Ok(data.into_owned())
}

/// Below this length, elements are combined one after the other.
const RUN: usize = 64;

fn run<T: Clone>(line: &[T], combine: &impl Fn(&T, &T) -> Result<T, EvalError>) -> Result<T, EvalError> {
    if line.len() > RUN {
        let (left, right) = line.split_at(line.len() / 2);
        return combine(&run(left, combine)?, &run(right, combine)?);
    }
    let mut total = line[0].clone();
    for element in &line[1..] {
        total = combine(&total, element)?;
    }
    Ok(total)
}

fn columns<T: Clone>(block: &[T], inner: usize, combine: &impl Fn(&T, &T) -> Result<T, EvalError>) -> Result<Vec<T>, EvalError> {
    let rows = block.len() / inner;
    let (mut totals, rest) = if rows > RUN {
        let (left, right) = block.split_at(rows / 2 * inner);
        (columns(left, inner, combine)?, Cow::Owned(columns(right, inner, combine)?))
    } else {
        let (first, rest) = block.split_at(inner);
        (first.to_vec(), Cow::Borrowed(rest))
    };
    for row in rest.chunks_exact(inner) {
        for (total, element) in totals.iter_mut().zip(row) {
            *total = combine(total, element)?;
        }
    }
    Ok(totals)
}
