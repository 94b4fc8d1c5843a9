//! Convolutions of 8-bit integers.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::conv::Conv;
use crate::ops::elementwise::{since, zip};
use crate::ops::matmul_integer::{all_given, bytes, differences, factors, rescaled, whole, zeros_given};
use crate::ops::movement::no_spelling;
use crate::ops::operands::{equal_sizes, one_result};
use crate::ops::quantization::{agreed_products, integers, numbers, one_parameter, only_element};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, wrap_int};
use crate::ty::TensorType;

operator! {
    /// `x[N, C, spatial..] * w[M, C / group, kernel..] (, zero of x, zero of w) → [N, M, out..]`:
    /// the convolution of two operands of 8-bit integers, less their zero points, as 32-bit
    /// integers, which wrap. What is around `x` is its zero point. Sizes are those of [`Conv`].
    pub struct ConvInteger {
        /// Step between windows, one per spatial axis.
        pub strides: Vec<i64>,
        /// Elements around the input: all begins, then all ends.
        pub pads: Vec<i64>,
        /// Step between taps, one per spatial axis.
        pub dilations: Vec<i64>,
        /// Number of groups of channels, which do not mix.
        pub group: i64,
    }
}

operator! {
    /// `x, scale, zero, w, scale, zero, y scale, y zero(, bias) → y`: [`ConvInteger`] plus the
    /// bias, a 32-bit integer per result channel, times `x scale * w scale / y scale` in single
    /// precision, rounded to the nearest integer, halves to even, plus the zero point of `y`, as
    /// the nearest number of its type.
    ///
    /// Scale and zero point of `w` are one, or one per result channel.
    pub struct QLinearConv {
        /// Step between windows, one per spatial axis.
        pub strides: Vec<i64>,
        /// Elements around the input: all begins, then all ends.
        pub pads: Vec<i64>,
        /// Step between taps, one per spatial axis.
        pub dilations: Vec<i64>,
        /// Number of groups of channels, which do not mix.
        pub group: i64,
    }
}

impl Operator for ConvInteger {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let name = "ConvInteger";
        let [x, w, zeros @ ..] = inputs else { return Err(TypeError::invalid("ConvInteger takes two to four operands")) };
        bytes(name, &[x, w])?;
        if zeros.len() > 2 || !zeros.iter().zip([x, w]).all(|(zero, of)| zero.dtype == of.dtype) {
            return Err(TypeError::invalid(format!("{name} of {x} and {w} with zero points of other types")));
        }
        let (types, fits) = self.conv().results(name, x, w, DType::I32)?;
        fits.and_then(|()| zeros.iter().try_for_each(|zero| one_parameter(name, zero))).map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "ConvInteger";
        let zero = |at: usize| if inputs.len() > at { integers(name, inputs, at).map(Some) } else { Ok(None) };
        let (x, w) = (integers(name, inputs, 0)?, integers(name, inputs, 1)?);
        Ok(vec![Value::int(sums(name, &self.conv(), x, zero(2)?, w, zero(3)?)?)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["ConvInteger"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        agreed_products(node, 0, 1)?;
        let Conv { strides, pads, dilations, group } = Conv::of_node(node, 1)?;
        let op = crate::Op::ConvInteger(ConvInteger { strides, pads, dilations, group });
        zeros_given(node, op, node.ty(0)?.dtype)
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("ConvInteger", version, 10)?;
        let mut spelling = OnnxSpelling::plain("ConvInteger", inputs.len());
        spelling.attrs = self.conv().spelled("ConvInteger", inputs.get(1))?;
        Ok(spelling)
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        self.conv().effort(inputs.get(1), outputs)
    }
}

impl ConvInteger {
    /// The same convolution of reals.
    pub fn conv(&self) -> Conv {
        let ConvInteger { strides, pads, dilations, group } = self.clone();
        Conv { strides, pads, dilations, group }
    }
}

impl Operator for QLinearConv {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let name = "QLinearConv";
        let [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias @ ..] = inputs else {
            return Err(TypeError::invalid("QLinearConv takes eight or nine operands"));
        };
        bytes(name, &[x, w, y_zero])?;
        let typed = x_zero.dtype == x.dtype && w_zero.dtype == w.dtype && bias.iter().all(|bias| bias.dtype == DType::I32);
        if !typed || bias.len() > 1 || [x_scale, w_scale, y_scale].iter().any(|scale| scale.dtype != DType::F32) {
            return Err(TypeError::invalid(format!("{name} of {x} and {w} with parameters of other types")));
        }
        let (types, fits) = self.conv().results(name, x, w, y_zero.dtype)?;
        let channels = &w.shape[0];
        fits.and_then(|()| [x_scale, x_zero, y_scale, y_zero].iter().try_for_each(|one| one_parameter(name, one)))
            .and_then(|()| [w_scale, w_zero].iter().try_for_each(|parameter| per_result(name, channels, parameter)))
            .and_then(|()| bias.iter().try_for_each(|bias| of_results(name, channels, bias)))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "QLinearConv";
        let int = |at| integers(name, inputs, at);
        let (x, w) = (int(0)?, int(3)?);
        let lifted = |count: usize| [vec![count], vec![1; w.shape.len().saturating_sub(2)]].concat();
        let w_zero = int(5)?.clone();
        let mut sums = sums(name, &self.conv(), x, Some(int(2)?), w, Some(&w_zero))?;
        if inputs.len() > 8 {
            let bias = int(8)?.clone();
            let shape = lifted(bias.data.len());
            sums = zip(&sums, &bias.reshaped(shape), |sum, bias| Ok(wrap_int(DType::I32, sum + bias)))?;
        }
        let (x_scale, w_scale, y_scale) = (numbers(name, inputs, 1)?, numbers(name, inputs, 4)?, numbers(name, inputs, 6)?);
        let factor = factors(name, &x_scale, &w_scale, &y_scale)?;
        let shape = lifted(factor.data.len());
        let (zero, to) = (*only_element(name, int(7)?)?, context.output_types[0].dtype);
        Ok(vec![Value::int(zip(&sums, &factor.reshaped(shape), |sum, factor| Ok(rescaled(*sum, *factor, zero, to)))?)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["QLinearConv"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        all_given(node, 8)?;
        agreed_products(node, 0, 3)?;
        let Conv { strides, pads, dilations, group } = Conv::of_node(node, 3)?;
        node.import(crate::Op::QLinearConv(QLinearConv { strides, pads, dilations, group }))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("QLinearConv", version, 10)?;
        if !(8..=9).contains(&inputs.len()) {
            return Err(no_spelling("QLinearConv", "other operands"));
        }
        let mut spelling = OnnxSpelling::plain("QLinearConv", inputs.len());
        spelling.attrs = self.conv().spelled("QLinearConv", inputs.get(3))?;
        Ok(spelling)
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        self.conv().effort(inputs.get(3), outputs)
    }
}

impl QLinearConv {
    fn conv(&self) -> Conv {
        let QLinearConv { strides, pads, dilations, group } = self.clone();
        Conv { strides, pads, dilations, group }
    }
}

/// Fails unless there is one parameter, or one per result channel.
fn per_result(name: &str, channels: &Dim, parameter: &TensorType) -> Result<(), TypeError> {
    match parameter.shape.as_slice() {
        [] => Ok(()),
        [one] if one.is(1) => Ok(()),
        _ => of_results(name, channels, parameter),
    }
}

/// Fails unless there is one element per result channel.
fn of_results(name: &str, channels: &Dim, vector: &TensorType) -> Result<(), TypeError> {
    match vector.shape.as_slice() {
        [count] => equal_sizes(name, "one value per result channel", channels, count),
        _ => Err(TypeError::invalid(format!("{name} needs one value per result channel, not {vector}"))),
    }
}

/// The sums of a convolution of integers less their zero points; those of `w` are one, or one per
/// result channel.
fn sums(
    name: &str,
    conv: &Conv,
    x: &Tensor<i64>,
    x_zero: Option<&Tensor<i64>>,
    w: &Tensor<i64>,
    w_zero: Option<&Tensor<i64>>,
) -> Result<Tensor<i64>, EvalError> {
    let x_zero = x_zero.map(|zero| only_element(name, zero).map(|zero| Tensor::filled(Vec::new(), *zero))).transpose()?;
    let w_zero = w_zero.map(|zero| {
        let shape = [vec![zero.data.len()], vec![1; w.shape.len().saturating_sub(1)]].concat();
        zero.clone().reshaped(shape)
    });
    let (image, weights) = (differences(x, x_zero.as_ref())?, differences(w, w_zero.as_ref())?);
    if weights.shape != w.shape {
        return Err(EvalError::value(format!("{name} with another number of zero points than result channels")));
    }
    whole(&conv.convolved(name, &image, &weights, None)?)
}
