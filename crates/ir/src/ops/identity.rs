//! Operators that pass their operand through.

use crate::Op;
use crate::dtype::Class;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{only, since};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

const IDENTITY: &[Since] = &[(1, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (13, Types::BF16)];
const DROPOUT: &[Since] = &[(7, Types::FLOATS), (13, Types::BF16)];

operator! {
    /// The operand itself.
    pub struct Identity {}
}

impl Operator for Identity {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        only("Identity", inputs).map(|operand| vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        Ok(inputs.to_vec())
    }
    fn onnx_types() -> &'static [&'static str] {
        &["Identity"]
    }
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(Op::Identity(Identity {}))
    }
    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        // Types that are only carried exist in the model already, so its opset has them.
        if inputs[0].dtype.class() != Class::Other {
            accepts::spelled("Identity", IDENTITY, version, inputs[0].dtype)?;
        }
        Ok(OnnxSpelling::plain("Identity", 1))
    }
    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        Work { kernel: Kernel::Free, ..Work::default() }
    }
}

operator! {
    /// The operand itself: dropout drops nothing at inference. Its ratio has no meaning here and is
    /// not kept.
    pub struct Dropout {}
}

impl Operator for Dropout {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("Dropout", inputs)?;
        accepts::check("Dropout", DROPOUT, operand.dtype)?;
        Ok(vec![operand.clone()])
    }
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        Ok(inputs.to_vec())
    }
    fn onnx_types() -> &'static [&'static str] {
        &["Dropout"]
    }
    /// Before opset 7 an attribute tells inference from training, from 12 on a third input does.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.outputs.iter().skip(1).any(|used| *used) {
            return Err(Opaque("the mask of Dropout is used".into()));
        }
        let trains = if node.version < 7 {
            node.int("is_test").unwrap_or(0) == 0
        } else if node.version < 12 {
            false
        } else {
            node.constant_ints(2)?.is_some_and(|flag| flag != [0])
        };
        if trains {
            return Err(Opaque("Dropout in training mode".into()));
        }
        node.attrs.ignore(&["ratio", "seed", "is_test"]);
        Ok(node.import_with(Op::Dropout(Dropout {}), &[0]))
    }
    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("Dropout", version, 7)?;
        accepts::spelled("Dropout", DROPOUT, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("Dropout", 1))
    }
    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        Work { kernel: Kernel::Free, ..Work::default() }
    }
}
