//! Cast between element types.

use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{f64_to_int, int_to_f64, only};
use crate::scalar::Scalar;
use crate::tensor::{Value, wrap_int};
use crate::ty::TensorType;
use crate::{Attr, Op};

operator! {
    /// Each element as a number of type `to`.
    ///
    /// Floats to integers truncate (outside the type's range: some value of the type); integers to
    /// integers wrap; to boolean is "not zero". Between float types the real number is preserved:
    /// rounding is a matter of storage, not of meaning.
    pub struct Cast {
        /// Element type of the result.
        pub to: DType
    }
}

const CAST: &[Since] = &[(1, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (13, Types::BF16)];

impl Operator for Cast {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("Cast", inputs)?;
        accepts::check("Cast", CAST, operand.dtype)?;
        accepts::check("the result of Cast", CAST, self.to)?;
        Ok(vec![operand.with_dtype(self.to)])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let (from, to) = (context.input_types[0].dtype, self.to);
        let [operand] = inputs else { return Err(EvalError::value("Cast takes one operand")) };
        Ok(vec![match (operand, to.class()) {
            (Value::Real(_), Class::Real) | (Value::Bool(_), Class::Bool) => operand.clone(),
            (Value::Real(x), Class::Int) => Value::int(x.map(|v| Ok::<_, EvalError>(f64_to_int(to, v.to_f64()?)))?),
            (Value::Real(x), Class::Bool) => {
                let zero = S::zero();
                Value::bool(x.map(|v| Ok::<_, EvalError>(*v != zero))?)
            }
            (Value::Int(x), Class::Real) => Value::real(x.map(|v| Ok::<_, EvalError>(S::from_f64(int_to_f64(from, *v))))?),
            (Value::Int(x), Class::Int) => Value::int(x.map(|v| Ok::<_, EvalError>(wrap_int(to, *v)))?),
            (Value::Int(x), Class::Bool) => Value::bool(x.map(|v| Ok::<_, EvalError>(*v != 0))?),
            (Value::Bool(x), Class::Real) => Value::real(x.map(|v| Ok::<_, EvalError>(if *v { S::one() } else { S::zero() }))?),
            (Value::Bool(x), Class::Int) => Value::int(x.map(|v| Ok::<_, EvalError>(i64::from(*v)))?),
            (_, Class::Other) => return Err(EvalError::value(format!("Cast to {to} is not computed here"))),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Cast"]
    }

    /// Before opset 6 the type is a string (`FLOAT`), later a code.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let to = match (node.int("to"), node.str("to")) {
            (Some(code), _) => i32::try_from(code).map_or(DType::Other(0), DType::from_onnx),
            (None, Some(word)) => from_word(word),
            (None, None) => return Err(Opaque("Cast names no type".into())),
        };
        if to.class() == Class::Other {
            return Err(Opaque(format!("Cast to {to}")));
        }
        // Both concern types without arithmetic here.
        node.attrs.ignore(&["saturate", "round_mode"]);
        node.import(Op::Cast(Cast { to }))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Cast", CAST, version, inputs[0].dtype)?;
        accepts::spelled("Cast", CAST, version, self.to)?;
        crate::ops::elementwise::since("Cast", version, 6)?;
        Ok(OnnxSpelling::plain("Cast", 1).with("to", Attr::Int(i64::from(self.to.to_onnx()))))
    }
}

fn from_word(word: &str) -> DType {
    match word {
        "FLOAT" => DType::F32,
        "UINT8" => DType::U8,
        "INT8" => DType::I8,
        "UINT16" => DType::U16,
        "INT16" => DType::I16,
        "INT32" => DType::I32,
        "INT64" => DType::I64,
        "BOOL" => DType::Bool,
        "FLOAT16" => DType::F16,
        "DOUBLE" => DType::F64,
        "UINT32" => DType::U32,
        "UINT64" => DType::U64,
        _ => DType::Other(0),
    }
}
