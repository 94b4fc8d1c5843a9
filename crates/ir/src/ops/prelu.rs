//! PRelu: a slope per element below zero.

use std::cmp::Ordering;

use crate::Op;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{arithmetic, infer_broadcast, int_order, lift, pass, since};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// `(x, slope)`: `x` if `x ≥ 0`, else `slope * x`. The slope broadcasts to the shape of `x`.
    pub struct PRelu {}
}

const PRELU: &[Since] = &[(1, Types::FLOATS), (9, Types::WIDE_INTS), (16, Types::BF16)];

impl Operator for PRelu {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let types = infer_broadcast("PRelu", inputs, 2, None)?;
        accepts::check("PRelu", PRELU, inputs[0].dtype)?;
        let (x, slope) = (&inputs[0], &inputs[1]);
        if types[0] == *x {
            return Ok(types);
        }
        let message = format!("PRelu cannot broadcast the slope {slope} to {x}");
        let certain = slope.rank() > x.rank()
            || x.shape.iter().rev().zip(slope.shape.iter().rev()).any(|(d, s)| d.is(1) && s.known().is_some_and(|s| s != 1));
        Err(if certain { TypeError::Invalid(message) } else { TypeError::undecided(message).with_types([x.clone()]) })
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let dtype = context.output_types[0].dtype;
        arithmetic(
            inputs,
            dtype,
            |x, slope| Ok(if x.compare(&S::zero())? == Some(Ordering::Less) { x.mul(slope) } else { x.clone() }),
            |x, slope| Ok(if int_order(dtype, x, 0).is_lt() { x.wrapping_mul(slope) } else { x }),
        )
    }

    fn onnx_types() -> &'static [&'static str] {
        &["PRelu"]
    }

    /// Before opset 7 the slope is one number or one per channel (axis 1).
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let op = Op::PRelu(PRelu {});
        if node.version >= 7 {
            return node.import(op);
        }
        let (x, slope) = (node.ty(0)?, node.ty(1)?);
        let aligned = match slope.known_shape().as_deref() {
            Some([] | [1]) => ImportOperand::Input(1),
            Some([_]) if x.rank() >= 2 => lift(node, 1, x.rank() - 2)?,
            _ => return Err(Opaque("the slope of PRelu is neither one number nor one per channel".into())),
        };
        Ok(Imported { op, operands: vec![ImportOperand::Input(0), aligned] })
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("PRelu", version, 7)?;
        accepts::spelled("PRelu", PRELU, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("PRelu", 2))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Elementwise, 2.0)
    }
}
