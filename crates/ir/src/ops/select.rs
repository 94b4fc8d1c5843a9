//! Where: choose between two operands, element by element.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{broadcast, rows};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, broadcast_concrete};
use crate::ty::TensorType;

operator! {
    /// `(condition, x, y)`: `x` where the boolean condition holds, else `y`; all three broadcast.
    pub struct Where {}
}

const WHERE: &[Since] = &[(9, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (16, Types::BF16)];

impl Operator for Where {
    const ELEMENTWISE: bool = true;
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [condition, x, y] = inputs else {
            return Err(TypeError::invalid(format!("Where takes 3 operands, not {}", inputs.len())));
        };
        if condition.dtype != DType::Bool || x.dtype != y.dtype {
            return Err(TypeError::invalid(format!("Where cannot choose between {x} and {y} by {condition}")));
        }
        accepts::check("Where", WHERE, x.dtype)?;
        Ok(vec![TensorType { dtype: x.dtype, shape: broadcast("Where", inputs)? }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        Ok(vec![match inputs {
            [Value::Bool(c), Value::Real(x), Value::Real(y)] => Value::real(choose(c, x, y)?),
            [Value::Bool(c), Value::Int(x), Value::Int(y)] => Value::int(choose(c, x, y)?),
            [Value::Bool(c), Value::Bool(x), Value::Bool(y)] => Value::bool(choose(c, x, y)?),
            _ => return Err(EvalError::value("Where chooses between operands of one kind by a boolean")),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Where"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(crate::Op::Where(Where {}))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Where", WHERE, version, inputs[1].dtype)?;
        Ok(OnnxSpelling::plain("Where", 3))
    }
}

fn choose<T: Clone>(c: &Tensor<bool>, x: &Tensor<T>, y: &Tensor<T>) -> Result<Tensor<T>, EvalError> {
    let shapes = [c.shape.as_slice(), x.shape.as_slice(), y.shape.as_slice()];
    let shape = broadcast_concrete(shapes).ok_or_else(|| EvalError::value(format!("Where cannot broadcast {shapes:?}")))?;
    let mut data = Vec::with_capacity(shape.iter().product());
    rows(&shape, shapes, |[c_at, x_at, y_at], length, [c_step, x_step, y_step]| {
        data.extend(
            (0..length)
                .map(|at| if c.data[c_at + at * c_step] { x.data[x_at + at * x_step].clone() } else { y.data[y_at + at * y_step].clone() }),
        );
        Ok(())
    })?;
    Ok(Tensor::new(shape, data))
}
