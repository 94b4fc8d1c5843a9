//! Running sums.

use crate::attr::Attr;
use crate::constant::Const;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::movement::{axis_below, no_spelling, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, wrap_int};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(11, Types::F32.and(Types::F64).and(Types::WIDE_INTS)), (14, Types::F16.and(Types::BF16))];

operator! {
    /// Along an axis, the sum of the elements up to each place, itself included.
    pub struct CumSum {
        /// The axis, ≥ 0.
        pub axis: i64,
        /// Leaves out the element at the place itself.
        pub exclusive: bool,
        /// Sums from the end.
        pub reverse: bool,
    }
}

impl Operator for CumSum {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("CumSum", inputs)?;
        accepts::check("CumSum", TYPES, x.dtype)?;
        axis_below("CumSum", self.axis, x.rank())?;
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("CumSum", inputs)?;
        let axis = axis_below("CumSum", self.axis, x.shape().len()).map_err(|e| EvalError::value(e.to_string()))?;
        let dtype = context.output_types[0].dtype;
        Ok(vec![match x {
            Value::Real(t) => Value::real(self.sums(t, axis, S::zero(), |a, b| a.add(b))),
            Value::Int(t) => Value::int(self.sums(t, axis, 0, |a, b| wrap_int(dtype, a.wrapping_add(*b)))),
            Value::Bool(_) => return Err(EvalError::value("CumSum is not defined for booleans")),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["CumSum"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let axis = match node.constant_ints(1)?.as_deref() {
            Some([axis]) => node.axis(*axis, node.ty(0)?.rank())?,
            _ => return Err(Opaque("CumSum needs one axis".into())),
        };
        let (exclusive, reverse) = (node.flag("exclusive", false)?, node.flag("reverse", false)?);
        Ok(node.import_with(crate::Op::CumSum(CumSum { axis, exclusive, reverse }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("CumSum", TYPES, version, inputs[0].dtype)?;
        let axis = Const::from_i64(DType::I64, &[], &[self.axis]).ok_or_else(|| no_spelling("CumSum", "an axis"))?;
        let flag = |on: bool| Attr::Int(i64::from(on));
        let spelling = OnnxSpelling::plain("CumSum", 1).with_const(axis);
        Ok(spelling.with("exclusive", flag(self.exclusive)).with("reverse", flag(self.reverse)))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}

impl CumSum {
    fn sums<T: Clone>(&self, x: &Tensor<T>, axis: usize, zero: T, add: impl Fn(&T, &T) -> T) -> Tensor<T> {
        let (size, inner) = (x.shape[axis], x.shape[axis + 1..].iter().product::<usize>());
        let mut data = x.data.clone();
        let rows = x.data.len().checked_div(size).unwrap_or(0);
        for row in 0..rows {
            let start = row / inner * size * inner + row % inner;
            let mut sum = zero.clone();
            for step in 0..size {
                let at = start + inner * if self.reverse { size - 1 - step } else { step };
                let before = sum.clone();
                sum = add(&sum, &x.data[at]);
                data[at] = if self.exclusive { before } else { sum.clone() };
            }
        }
        Tensor::new(x.shape.clone(), data)
    }
}
