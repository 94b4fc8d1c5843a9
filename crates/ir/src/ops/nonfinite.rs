//! Tests for values that are not finite numbers.

use std::cmp::Ordering;

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::only;
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;
use crate::{Attr, Op};

const IS_NAN: &[Since] = &[(9, Types::FLOATS), (13, Types::BF16)];
const IS_INF: &[Since] = &[(10, Types::F32.and(Types::F64)), (20, Types::F16.and(Types::BF16))];

operator! {
    /// True where the element is not a number.
    pub struct IsNaN {}
}

impl Operator for IsNaN {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("IsNaN", inputs)?;
        accepts::check("IsNaN", IS_NAN, operand.dtype)?;
        Ok(vec![operand.with_dtype(DType::Bool)])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Real(x)] = inputs else { return Err(EvalError::value("IsNaN is defined for reals")) };
        Ok(vec![Value::bool(x.map(|v| Ok::<_, EvalError>(v.compare(v)?.is_none()))?)])
    }
    fn onnx_types() -> &'static [&'static str] {
        &["IsNaN"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(Op::IsNaN(IsNaN {}))
    }
    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("IsNaN", IS_NAN, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("IsNaN", 1))
    }
}

operator! {
    /// True where the element is infinite.
    pub struct IsInf {
        /// Negative infinity counts.
        pub detect_negative: bool,
        /// Positive infinity counts.
        pub detect_positive: bool
    }
}

impl Operator for IsInf {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("IsInf", inputs)?;
        accepts::check("IsInf", IS_INF, operand.dtype)?;
        Ok(vec![operand.with_dtype(DType::Bool)])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Real(x)] = inputs else { return Err(EvalError::value("IsInf is defined for reals")) };
        let (low, high) = (S::from_f64(f64::NEG_INFINITY), S::from_f64(f64::INFINITY));
        let is = |v: &S, bound: &S| Ok::<_, EvalError>(v.compare(bound)? == Some(Ordering::Equal));
        let found = x.map(|v| Ok::<_, EvalError>((self.detect_negative && is(v, &low)?) || (self.detect_positive && is(v, &high)?)))?;
        Ok(vec![Value::bool(found)])
    }
    fn onnx_types() -> &'static [&'static str] {
        &["IsInf"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let (detect_negative, detect_positive) = (node.flag("detect_negative", true)?, node.flag("detect_positive", true)?);
        node.import(Op::IsInf(IsInf { detect_negative, detect_positive }))
    }
    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("IsInf", IS_INF, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("IsInf", 1)
            .with("detect_negative", Attr::Int(i64::from(self.detect_negative)))
            .with("detect_positive", Attr::Int(i64::from(self.detect_positive))))
    }
}
