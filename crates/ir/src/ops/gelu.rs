//! Gaussian error linear units and their approximations.

use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::activation::sigmoid;
use crate::ops::arithmetic::Add;
use crate::ops::elementwise::{each, float_attr, only, pass};
use crate::scalar::{Function, Scalar, Unsupported};
use crate::tensor::Value;
use crate::ty::TensorType;
use crate::{Attr, Float, Op};

/// The domain of ONNX Runtime's own operators.
const MICROSOFT: &str = "com.microsoft";
const GELU: &[Since] = &[(20, Types::FLOATS.and(Types::BF16))];
const CONTRIBUTED: &[Since] = &[(1, Types::FLOATS.and(Types::BF16))];

operator! {
    /// `x/2 * (1 + erf(x / √2))`, or with `approximate = "tanh"` the form of [`FastGelu`].
    pub struct Gelu {
        /// `none` or `tanh`.
        pub approximate: String
    }
}

impl Operator for Gelu {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("Gelu", inputs)?;
        accepts::check("Gelu", GELU, operand.dtype)?;
        if !matches!(self.approximate.as_str(), "none" | "tanh") {
            return Err(TypeError::invalid(format!("Gelu has no approximation {:?}", self.approximate)));
        }
        Ok(vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let form = if self.approximate == "tanh" { tanh_gelu } else { erf_gelu };
        each("Gelu", inputs, context.output_types[0].dtype, |x| Ok(form(x)?), None)
    }
    fn onnx_types() -> &'static [&'static str] {
        &["Gelu", "com.microsoft:Gelu"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let approximate = if node.domain == MICROSOFT { "none" } else { node.str("approximate").unwrap_or("none") };
        node.import(Op::Gelu(Gelu { approximate: approximate.to_string() }))
    }
    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Gelu", GELU, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("Gelu", 1).with("approximate", Attr::Str(self.approximate.clone())))
    }
    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Transcendental, 18.0)
    }
}

operator! {
    /// `x/2 * (1 + tanh(√(2/π) * (x + 0.044715 x³)))`: ONNX Runtime's operator of this name.
    pub struct FastGelu {}
}

impl Operator for FastGelu {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("FastGelu", inputs)?;
        accepts::check("FastGelu", CONTRIBUTED, operand.dtype)?;
        Ok(vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        each("FastGelu", inputs, context.output_types[0].dtype, |x| Ok(tanh_gelu(x)?), None)
    }
    fn onnx_types() -> &'static [&'static str] {
        &["com.microsoft:FastGelu"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let op = Op::FastGelu(FastGelu {});
        if !node.has(1) {
            return Ok(node.import_with(op, &[0]));
        }
        let biased = node.import_with(Op::Add(Add {}), &[0, 1]);
        Ok(Imported { op, operands: vec![ImportOperand::Node(Box::new(biased))] })
    }
    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling { domain: MICROSOFT, ..OnnxSpelling::plain("FastGelu", 1) })
    }
    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Transcendental, 18.0)
    }
}

operator! {
    /// `x * sigmoid(alpha * x)`: ONNX Runtime's operator of this name; with `alpha = 1` it is SiLU.
    pub struct QuickGelu {
        /// Steepness.
        pub alpha: Float
    }
}

impl Operator for QuickGelu {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("QuickGelu", inputs)?;
        accepts::check("QuickGelu", CONTRIBUTED, operand.dtype)?;
        Ok(vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let alpha = S::from_f64(self.alpha.0);
        each("QuickGelu", inputs, context.output_types[0].dtype, |x| Ok(x.mul(&sigmoid(&alpha.mul(x))?)), None)
    }
    fn onnx_types() -> &'static [&'static str] {
        &["com.microsoft:QuickGelu"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(Op::QuickGelu(QuickGelu { alpha: float_attr(node, "alpha", 1.702) }))
    }
    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling { domain: MICROSOFT, ..OnnxSpelling::plain("QuickGelu", 1).with("alpha", Attr::Float(self.alpha)) })
    }
    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Transcendental, 12.0)
    }
}

fn half_of<S: Scalar>(x: &S, gate: &S) -> S {
    S::from_f64(0.5).mul(x).mul(&S::one().add(gate))
}

fn erf_gelu<S: Scalar>(x: &S) -> Result<S, Unsupported> {
    let gate = x.mul(&S::from_f64(std::f64::consts::FRAC_1_SQRT_2)).apply(Function::Erf)?;
    Ok(half_of(x, &gate))
}

fn tanh_gelu<S: Scalar>(x: &S) -> Result<S, Unsupported> {
    let bent = x.add(&S::from_f64(0.044_715).mul(&x.mul(x).mul(x)));
    let gate = S::from_f64((2.0 / std::f64::consts::PI).sqrt()).mul(&bent).apply(Function::Tanh)?;
    Ok(half_of(x, &gate))
}
