//! Triangles of matrices.

use crate::attr::Attr;
use crate::constant::Const;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{copy, no_spelling, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// The elements of the last two axes above a diagonal, or below it, the diagonal included;
    /// zeros elsewhere.
    pub struct Trilu {
        /// Keeps what is above.
        pub upper: bool,
        /// The diagonal: column minus row. 0 is the main one, 1 the one above it.
        pub k: i64,
    }
}

impl Operator for Trilu {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Trilu", inputs)?;
        if x.rank() < 2 {
            return Err(TypeError::invalid(format!("Trilu needs matrices, not {x}")));
        }
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Trilu", inputs)?;
        if x.shape().len() < 2 {
            return Err(EvalError::value(format!("Trilu of {:?}", x.shape())));
        }
        Ok(vec![match x {
            Value::Real(t) => Value::real(self.triangle(t, &S::zero())),
            Value::Int(t) => Value::int(self.triangle(t, &0)),
            Value::Bool(t) => Value::bool(self.triangle(t, &false)),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Trilu"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let k = match node.constant_ints(1)?.as_deref() {
            None => 0,
            Some([k]) => *k,
            Some(_) => return Err(Opaque("Trilu needs one diagonal".into())),
        };
        Ok(node.import_with(crate::Op::Trilu(Trilu { upper: node.flag("upper", true)?, k }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("Trilu", version, 14)?;
        let spelling = OnnxSpelling::plain("Trilu", 1).with("upper", Attr::Int(i64::from(self.upper)));
        if self.k == 0 {
            return Ok(spelling);
        }
        let k = Const::from_i64(DType::I64, &[], &[self.k]).ok_or_else(|| no_spelling("Trilu", "a diagonal"))?;
        Ok(spelling.with_const(k))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

impl Trilu {
    fn triangle<T: Clone>(&self, x: &Tensor<T>, zero: &T) -> Tensor<T> {
        let [.., rows, columns] = x.shape[..] else { return x.clone() };
        let keeps = |at: usize| {
            let above = (at % columns) as i128 - (at / columns % rows) as i128 - i128::from(self.k);
            if self.upper { above >= 0 } else { above <= 0 }
        };
        let data = x.data.iter().enumerate().map(|(at, v)| if keeps(at) { v.clone() } else { zero.clone() }).collect();
        Tensor::new(x.shape.clone(), data)
    }
}
