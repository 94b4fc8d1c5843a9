//! Matrix products of 8-bit integers.

use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::{since, zip};
use crate::ops::matmul::{MatMul, product, product_types};
use crate::ops::movement::no_spelling;
use crate::ops::operands::equal_sizes;
use crate::ops::quantization::{agreed_products, integers, numbers, one_parameter, only_element, saturated, single};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, wrap_int};
use crate::ty::TensorType;

operator! {
    /// `[.., M, K] × [.., K, N] (, zero of a, zero of b) → [.., M, N]`: the product of two operands
    /// of 8-bit integers, less their zero points, as 32-bit integers, which wrap.
    ///
    /// The zero point of `b` is one, or one per column: `[N]` if `b` has rank 2, or `[.., 1, N]`.
    /// Both operands have rank ≥ 2.
    pub struct MatMulInteger {}
}

operator! {
    /// `a, scale, zero, b, scale, zero, y scale, y zero → y`: [`MatMulInteger`] times `a scale * b
    /// scale / y scale` in single precision, rounded to the nearest integer, halves to even, plus
    /// the zero point of `y`, as the nearest number of its type.
    ///
    /// Scale and zero point of `b` are one, or one per column, as for [`MatMulInteger`].
    pub struct QLinearMatMul {}
}

impl Operator for MatMulInteger {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [a, b, zeros @ ..] = inputs else { return Err(TypeError::invalid("MatMulInteger takes two to four operands")) };
        bytes("MatMulInteger", &[a, b])?;
        let typed = zeros.iter().zip([a, b]).all(|(zero, of)| zero.dtype == of.dtype);
        if zeros.len() > 2 || !typed {
            return Err(TypeError::invalid(format!("MatMulInteger of {a} and {b} with zero points of other types")));
        }
        let types = product_types("MatMulInteger", a, b, DType::I32)?;
        let fit = zeros.first().map_or(Ok(()), |zero| one_parameter("MatMulInteger", zero));
        fit.and_then(|()| zeros.get(1).map_or(Ok(()), |zero| per_column("MatMulInteger", b, zero)))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "MatMulInteger";
        let zero = |at: usize| if inputs.len() > at { integers(name, inputs, at).map(Some) } else { Ok(None) };
        let sums = sums(name, integers(name, inputs, 0)?, zero(2)?, integers(name, inputs, 1)?, zero(3)?)?;
        Ok(vec![Value::int(sums)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["MatMulInteger"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        matrices(node, 0, 1)?;
        let op = crate::Op::MatMulInteger(MatMulInteger {});
        zeros_given(node, op, node.ty(0)?.dtype)
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("MatMulInteger", version, 10)?;
        Ok(OnnxSpelling::plain("MatMulInteger", inputs.len()))
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        MatMul {}.work(inputs, outputs)
    }
}

impl Operator for QLinearMatMul {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let name = "QLinearMatMul";
        let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = inputs else {
            return Err(TypeError::invalid("QLinearMatMul takes eight operands"));
        };
        bytes(name, &[a, b, y_zero])?;
        let typed = a_zero.dtype == a.dtype && b_zero.dtype == b.dtype;
        if !typed || [a_scale, b_scale, y_scale].iter().any(|scale| scale.dtype != DType::F32) {
            return Err(TypeError::invalid(format!("{name} of {a} and {b} with parameters of other types")));
        }
        let types = product_types(name, a, b, y_zero.dtype)?;
        let ones = [a_scale, a_zero, y_scale, y_zero].iter().try_for_each(|one| one_parameter(name, one));
        ones.and_then(|()| [b_scale, b_zero].iter().try_for_each(|parameter| per_column(name, b, parameter)))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "QLinearMatMul";
        let int = |at| integers(name, inputs, at);
        let sums = sums(name, int(0)?, Some(int(2)?), int(3)?, Some(int(5)?))?;
        let (a, b, y) = (numbers(name, inputs, 1)?, numbers(name, inputs, 4)?, numbers(name, inputs, 6)?);
        let factor = factors(name, &a, &b, &y)?;
        let (zero, to) = (*only_element(name, int(7)?)?, context.output_types[0].dtype);
        Ok(vec![Value::int(zip(&sums, &factor, |sum, factor| Ok(rescaled(*sum, *factor, zero, to)))?)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["QLinearMatMul"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        matrices(node, 0, 3)?;
        all_given(node, 8)?;
        node.import(crate::Op::QLinearMatMul(QLinearMatMul {}))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("QLinearMatMul", version, 10)?;
        if inputs.len() != 8 {
            return Err(no_spelling("QLinearMatMul", "other operands"));
        }
        Ok(OnnxSpelling::plain("QLinearMatMul", 8))
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        MatMul {}.work(inputs, outputs)
    }
}

/// Fails unless these operands hold 8-bit integers.
pub(crate) fn bytes(name: &str, operands: &[&TensorType]) -> Result<(), TypeError> {
    match operands.iter().find(|ty| !matches!(ty.dtype, DType::U8 | DType::I8)) {
        Some(other) => Err(TypeError::invalid(format!("{name} is defined for 8-bit integers, not {other}"))),
        None => Ok(()),
    }
}

/// Fails unless there is one parameter for all columns of `b`, or one for each.
fn per_column(name: &str, b: &TensorType, parameter: &TensorType) -> Result<(), TypeError> {
    let unfit = || TypeError::invalid(format!("{name} with parameters {parameter} for the columns of {b}"));
    let (rank, what) = (b.rank(), "one parameter per column");
    match parameter.shape.as_slice() {
        [] => Ok(()),
        [one] if one.is(1) => Ok(()),
        [count] if rank == 2 => equal_sizes(name, what, &b.shape[1], count),
        counts if counts.len() == rank && rank >= 2 => (0..).zip(&b.shape).zip(counts).try_for_each(|((axis, size), count)| {
            let one = Dim::from(1);
            equal_sizes(name, what, if axis == rank - 2 { &one } else { size }, count)
        }),
        _ => Err(unfit()),
    }
}

/// Fails unless two inputs are matrices of 8-bit integers on whose products runtimes agree.
fn matrices(node: &OnnxNode, a: usize, b: usize) -> Result<(), Opaque> {
    if node.ty(a)?.rank() < 2 || node.ty(b)?.rank() < 2 {
        return Err(Opaque(format!("{} of a vector", node.op_type)));
    }
    agreed_products(node, a, b)
}

/// Fails unless the first `count` inputs are all given.
pub(crate) fn all_given(node: &OnnxNode, count: usize) -> Result<(), Opaque> {
    match (0..count).find(|at| !node.has(*at)) {
        Some(at) => Err(Opaque(format!("{} without its input {at}", node.op_type))),
        None => Ok(()),
    }
}

/// The operator on a node's first two inputs and the zero points that are given; a zero point of
/// the type `first` that is left out before another one is 0.
pub(crate) fn zeros_given(node: &OnnxNode, op: crate::Op, first: DType) -> Result<Imported, Opaque> {
    if !node.has(3) || node.has(2) {
        return node.import(op);
    }
    let zero = Const::from_i64(first, &[], &[0]).ok_or_else(|| Opaque(format!("{} of {first}", node.op_type)))?;
    let operands = vec![ImportOperand::Input(0), ImportOperand::Input(1), ImportOperand::Const(zero), ImportOperand::Input(3)];
    Ok(Imported { op, operands })
}

/// Integers less their zero points. Doubles hold them, and sums of their products.
pub(crate) fn differences(x: &Tensor<i64>, zero: Option<&Tensor<i64>>) -> Result<Tensor<f64>, EvalError> {
    match zero {
        Some(zero) => zip(x, zero, |x, zero| Ok((x - zero) as f64)),
        None => x.map(|x| Ok::<_, EvalError>(*x as f64)),
    }
}

/// Whole doubles as 32-bit integers, which wrap.
pub(crate) fn whole(sums: &Tensor<f64>) -> Result<Tensor<i64>, EvalError> {
    sums.map(|sum| Ok::<_, EvalError>(wrap_int(DType::I32, *sum as i64)))
}

fn sums(
    name: &str,
    a: &Tensor<i64>,
    a_zero: Option<&Tensor<i64>>,
    b: &Tensor<i64>,
    b_zero: Option<&Tensor<i64>>,
) -> Result<Tensor<i64>, EvalError> {
    let a_zero = a_zero.map(|zero| only_element(name, zero).map(|zero| Tensor::filled(Vec::new(), *zero))).transpose()?;
    let (left, right) = (differences(a, a_zero.as_ref())?, differences(b, b_zero)?);
    if left.shape != a.shape || right.shape != b.shape || a.shape.len() < 2 || b.shape.len() < 2 {
        return Err(EvalError::value(format!("{name} of {:?} and {:?}", a.shape, b.shape)));
    }
    whole(&product(&left, &right)?)
}

/// `a * b / y` in single precision, where `a` and `y` have one element.
pub(crate) fn factors(name: &str, a: &Tensor<f64>, b: &Tensor<f64>, y: &Tensor<f64>) -> Result<Tensor<f64>, EvalError> {
    let (a, y) = (*only_element(name, a)?, *only_element(name, y)?);
    b.map(|b| Ok::<_, EvalError>(single(single(a * b) / y)))
}

/// `sum * factor` in single precision, rounded to the nearest integer, plus `zero`, saturated.
pub(crate) fn rescaled(sum: i64, factor: f64, zero: i64, to: DType) -> i64 {
    saturated(single(single(sum as f64) * factor).round_ties_even(), zero, to)
}
