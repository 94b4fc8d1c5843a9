//! Integers as the reals they stand for.

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{pass, since};
use crate::ops::quantization::{Grain, SINCE_BLOCKS, SINCE_PRECISION, integers};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Types of the operand by opset.
const INTEGERS: &[Since] = &[(10, Types::U8.and(Types::I8).and(Types::I32)), (SINCE_BLOCKS, Types::U16.and(Types::I16))];
/// Types of scales and results by opset.
const REALS: &[Since] = &[(10, Types::F32), (19, Types::F16.and(Types::BF16))];

operator! {
    /// `x, scale(, zero) → (x - zero) * scale`; 0 is the zero point if none is given.
    ///
    /// `scale` and `zero` are one for the whole tensor, or a vector along `axis`, or have the shape
    /// of `x` but for `axis`, along which each is for a block.
    pub struct DequantizeLinear {
        /// The axis of the scales, ≥ 0; none if there is one scale.
        pub axis: Option<i64>,
        /// Elements along `axis` that share a scale, if each outer and inner index has its own.
        pub block_size: Option<i64>,
        /// Type of the result.
        pub output_dtype: DType,
    }
}

impl Operator for DequantizeLinear {
    const FOLDS: bool = false;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x, scale, zero @ ..] = inputs else { return Err(TypeError::invalid("DequantizeLinear needs a tensor and scales")) };
        accepts::check("DequantizeLinear", INTEGERS, x.dtype)?;
        accepts::check("the scales of DequantizeLinear", REALS, scale.dtype)?;
        accepts::check("the result of DequantizeLinear", REALS, self.output_dtype)?;
        // Differences of 32-bit integers may not fit their type.
        if zero.len() > 1 || zero.iter().any(|zero| zero.dtype != x.dtype || x.dtype == DType::I32) {
            return Err(TypeError::invalid(format!("DequantizeLinear of {x} by {scale} with another zero point")));
        }
        let grain = Grain::new(self.axis, self.block_size)?;
        let types = vec![x.with_dtype(self.output_dtype)];
        let fit = inputs[1..].iter().try_for_each(|parameters| grain.check("DequantizeLinear", x, parameters));
        fit.map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let name = "DequantizeLinear";
        let [Value::Int(x), Value::Real(scale), zero @ ..] = inputs else {
            return Err(EvalError::value("DequantizeLinear is defined for integers and real scales"));
        };
        let grain = Grain::new(self.axis, self.block_size).map_err(|e| EvalError::value(e.to_string()))?;
        let places = grain.places(name, &x.shape, &scale.shape)?;
        let zero = if zero.is_empty() { None } else { Some(integers(name, inputs, 2)?) };
        if let Some(zero) = zero {
            grain.places(name, &x.shape, &zero.shape)?;
        }
        let element = |(at, x): (usize, &i64)| {
            let place = places.of(at);
            let difference = x.wrapping_sub(zero.map_or(0, |zero| zero.data[place]));
            S::from_f64(difference as f64).mul(&scale.data[place])
        };
        Ok(vec![Value::real(Tensor::new(x.shape.clone(), x.data.iter().enumerate().map(element).collect()))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["DequantizeLinear"]
    }

    /// 32-bit integers have no zero point, or one that is 0.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let scale = node.ty(1)?.dtype;
        let named = if node.version >= SINCE_PRECISION { node.int("output_dtype").filter(|code| *code != 0) } else { None };
        let named = named.map(|code| i32::try_from(code).map_or(DType::Other(0), DType::from_onnx));
        let (axis, block_size) = Grain::import(node)?.attributes();
        node.attrs.ignore(&["axis"]);
        let op = crate::Op::DequantizeLinear(DequantizeLinear { axis, block_size, output_dtype: named.unwrap_or(scale) });
        if node.ty(0)?.dtype != DType::I32 || !node.has(2) {
            return node.import(op);
        }
        match node.constant_ints(2)? {
            Some(zeros) if zeros.iter().all(|zero| *zero == 0) => Ok(node.import_with(op, &[0, 1])),
            _ => Err(Opaque("DequantizeLinear of 32-bit integers with a zero point".into())),
        }
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let name = "DequantizeLinear";
        accepts::spelled(name, INTEGERS, version, inputs[0].dtype)?;
        accepts::spelled(name, REALS, version, inputs[1].dtype)?;
        let grain = Grain::new(self.axis, self.block_size).map_err(|e| NoSpelling { op: name, why: e.to_string() })?;
        since(name, version, grain.since())?;
        let mut spelling = OnnxSpelling::plain(name, inputs.len());
        if let Some(axis) = self.axis {
            spelling = spelling.with("axis", Attr::Int(axis));
        }
        if let Some(size) = self.block_size {
            spelling = spelling.with("block_size", Attr::Int(size));
        }
        if self.output_dtype != inputs[1].dtype {
            since(name, version, SINCE_PRECISION)?;
            spelling = spelling.with("output_dtype", Attr::Int(i64::from(self.output_dtype.to_onnx())));
        }
        Ok(spelling)
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Elementwise, 2.0)
    }
}
