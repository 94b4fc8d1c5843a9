//! Logic on booleans.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{import_broadcast, infer_broadcast, only, since, zip};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

const LOGIC: &[Since] = &[(1, Types::BOOL)];

macro_rules! connective {
    ($($(#[$doc:meta])* $name:ident, |$x:ident, $y:ident| $meaning:expr;)*) => {$(
        operator! { $(#[$doc])* pub struct $name {} }

        impl Operator for $name {
            const COMMUTATIVE: bool = true;
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                let types = infer_broadcast(stringify!($name), inputs, 2, Some(DType::Bool))?;
                accepts::check(stringify!($name), LOGIC, inputs[0].dtype)?;
                Ok(types)
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                let [Value::Bool(a), Value::Bool(b)] = inputs else {
                    return Err(EvalError::value(concat!(stringify!($name), " is defined for booleans")));
                };
                Ok(vec![Value::bool(zip(a, b, |$x: &bool, $y: &bool| Ok($meaning))?)])
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                import_broadcast(node, crate::Op::$name($name {}))
            }
            fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                since(stringify!($name), version, 7)?;
                Ok(OnnxSpelling::plain(stringify!($name), 2))
            }
        }
    )*};
}

connective! {
    /// Both hold.
    And, |x, y| *x && *y;
    /// At least one holds.
    Or, |x, y| *x || *y;
    /// Exactly one holds.
    Xor, |x, y| x != y;
}

operator! {
    /// It does not hold.
    pub struct Not {}
}

impl Operator for Not {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("Not", inputs)?;
        accepts::check("Not", LOGIC, operand.dtype)?;
        Ok(vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Bool(x)] = inputs else { return Err(EvalError::value("Not is defined for booleans")) };
        Ok(vec![Value::bool(x.map(|v| Ok::<_, EvalError>(!v))?)])
    }
    fn onnx_types() -> &'static [&'static str] {
        &["Not"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(crate::Op::Not(Not {}))
    }
    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("Not", 1))
    }
}
