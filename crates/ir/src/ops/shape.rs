//! The sizes of a tensor as a tensor.

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{free, no_spelling, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// The sizes of axes `start` to before `end`, as a vector of `i64`.
    pub struct Shape {
        /// First axis, ≥ 0.
        pub start: i64,
        /// One beyond the last axis; `start` to the rank.
        pub end: i64,
    }
}

impl Operator for Shape {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Shape", inputs)?;
        if self.start < 0 || self.end < self.start || self.end > x.rank() as i64 {
            return Err(TypeError::invalid(format!("Shape of {x} from axis {} to {}", self.start, self.end)));
        }
        Ok(vec![TensorType::new(DType::I64, [self.end - self.start])])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Shape", inputs)?;
        let range = usize::try_from(self.start).unwrap_or(usize::MAX)..usize::try_from(self.end).unwrap_or(usize::MAX);
        let Some(sizes) = x.shape().get(range) else {
            return Err(EvalError::value(format!("Shape of {:?} from axis {} to {}", x.shape(), self.start, self.end)));
        };
        Ok(vec![Value::int(Tensor::new(vec![sizes.len()], sizes.iter().map(|d| *d as i64).collect()))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Shape"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let rank = node.ty(0)?.rank() as i64;
        let axis = |name: &str, absent: i64| {
            let given = node.int(name).filter(|_| node.version >= 15).unwrap_or(absent);
            (if given < 0 { given.saturating_add(rank) } else { given }).clamp(0, rank)
        };
        let start = axis("start", 0);
        let end = axis("end", rank).max(start);
        Ok(node.import_with(crate::Op::Shape(Shape { start, end }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let spelling = OnnxSpelling::plain("Shape", 1);
        if self.start == 0 && inputs.first().is_some_and(|x| self.end == x.rank() as i64) {
            return Ok(spelling);
        }
        if version < 15 {
            return Err(no_spelling("Shape", format!("a range of axes exists since opset 15, the model has {version}")));
        }
        Ok(spelling.with("start", Attr::Int(self.start)).with("end", Attr::Int(self.end)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}
