//! Reals as integers.

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{pass, since};
use crate::ops::quantization::{Grain, SINCE_BLOCKS, SINCE_PRECISION, integers, quantized};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Types of the result by opset.
const RESULTS: &[Since] = &[(10, Types::U8.and(Types::I8)), (SINCE_BLOCKS, Types::U16.and(Types::I16))];
/// Types of operand and scales by opset. Halves are only defined where the division is in single
/// precision, as an attribute says.
const REALS: &[Since] = &[(10, Types::F32), (SINCE_PRECISION, Types::F16)];
/// The code of single precision.
const SINGLE: i64 = 1;

operator! {
    /// `x, scale(, zero) → saturate(round(x / scale) + zero)`: the quotient is one of single
    /// precision, halves are rounded to even, and 0 is the zero point if none is given.
    ///
    /// `scale` and `zero` are one for the whole tensor, or a vector along `axis`, or have the shape
    /// of `x` but for `axis`, along which each is for a block.
    pub struct QuantizeLinear {
        /// The axis of the scales, ≥ 0; none if there is one scale.
        pub axis: Option<i64>,
        /// Elements along `axis` that share a scale, if each outer and inner index has its own.
        pub block_size: Option<i64>,
        /// Type of the result: an integer of 8 or 16 bits.
        pub output_dtype: DType,
    }
}

impl Operator for QuantizeLinear {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x, scale, zero @ ..] = inputs else { return Err(TypeError::invalid("QuantizeLinear needs a tensor and scales")) };
        accepts::check("QuantizeLinear", REALS, x.dtype)?;
        accepts::check("the result of QuantizeLinear", RESULTS, self.output_dtype)?;
        if scale.dtype != x.dtype || zero.len() > 1 || zero.iter().any(|zero| zero.dtype != self.output_dtype) {
            return Err(TypeError::invalid(format!("QuantizeLinear of {x} by {scale} to {}", self.output_dtype)));
        }
        let grain = Grain::new(self.axis, self.block_size)?;
        let types = vec![x.with_dtype(self.output_dtype)];
        let fit = inputs[1..].iter().try_for_each(|parameters| grain.check("QuantizeLinear", x, parameters));
        fit.map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "QuantizeLinear";
        let [Value::Real(x), Value::Real(scale), zero @ ..] = inputs else {
            return Err(EvalError::value("QuantizeLinear is defined for reals"));
        };
        let grain = Grain::new(self.axis, self.block_size).map_err(|e| EvalError::value(e.to_string()))?;
        let places = grain.places(name, &x.shape, &scale.shape)?;
        let zero = if zero.is_empty() { None } else { Some(integers(name, inputs, 2)?) };
        if let Some(zero) = zero {
            grain.places(name, &x.shape, &zero.shape)?;
        }
        let mut data = Vec::with_capacity(x.data.len());
        for (at, element) in x.data.iter().enumerate() {
            let place = places.of(at);
            data.push(quantized(element, &scale.data[place], zero.map_or(0, |zero| zero.data[place]), self.output_dtype)?);
        }
        Ok(vec![Value::int(Tensor::new(x.shape.clone(), data))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["QuantizeLinear"]
    }

    /// The standard divides halves in half precision unless an attribute says otherwise, and ONNX
    /// Runtime in single precision.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?.dtype;
        let precision = if node.version >= SINCE_PRECISION { node.int("precision").filter(|code| *code != 0) } else { None };
        if x != DType::F32 && precision.is_none() || precision.is_some_and(|code| code != SINGLE) {
            return Err(Opaque(format!("QuantizeLinear of {x} that does not divide in single precision")));
        }
        let named = if node.version >= SINCE_BLOCKS { node.int("output_dtype").filter(|code| *code != 0) } else { None };
        let named = named.map(|code| i32::try_from(code).map_or(DType::Other(0), DType::from_onnx));
        let zero = if node.has(2) { Some(node.ty(2)?.dtype) } else { None };
        if zero.is_some() && named.is_some() && zero != named {
            return Err(Opaque("QuantizeLinear names another type than that of its zero point".into()));
        }
        let output_dtype = zero.or(named).unwrap_or(DType::U8);
        // It concerns 8-bit floats.
        node.attrs.ignore(&["saturate"]);
        let (axis, block_size) = Grain::import(node)?.attributes();
        node.attrs.ignore(&["axis"]);
        node.import(crate::Op::QuantizeLinear(QuantizeLinear { axis, block_size, output_dtype }))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let name = "QuantizeLinear";
        accepts::spelled(name, REALS, version, inputs[0].dtype)?;
        accepts::spelled(name, RESULTS, version, self.output_dtype)?;
        let grain = Grain::new(self.axis, self.block_size).map_err(|e| NoSpelling { op: name, why: e.to_string() })?;
        since(name, version, grain.since())?;
        let mut spelling = OnnxSpelling::plain(name, inputs.len());
        if let Some(axis) = self.axis {
            spelling = spelling.with("axis", Attr::Int(axis));
        }
        if let Some(size) = self.block_size {
            spelling = spelling.with("block_size", Attr::Int(size));
        }
        if inputs[0].dtype != DType::F32 {
            spelling = spelling.with("precision", Attr::Int(SINGLE));
        }
        if inputs.len() == 2 && self.output_dtype != DType::U8 {
            since(name, version, SINCE_BLOCKS)?;
            spelling = spelling.with("output_dtype", Attr::Int(i64::from(self.output_dtype.to_onnx())));
        }
        Ok(spelling)
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Elementwise, 3.0)
    }
}
