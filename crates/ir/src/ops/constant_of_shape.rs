//! A tensor filled with one value.

use crate::attr::Attr;
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{concrete_shape, copy, moved, no_spelling, required_sizes, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::{Shape, TensorType};

operator! {
    /// No operands; every element of the result is that of `value`. Constant if the sizes are
    /// numbers.
    pub struct ConstantOfShape {
        /// The result's sizes.
        pub shape: Vec<Dim>,
        /// One element, of the result's type.
        pub value: Const,
    }
}

impl Operator for ConstantOfShape {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        if !inputs.is_empty() || self.value.elements() != 1 {
            return Err(TypeError::invalid("ConstantOfShape takes no operands and one value"));
        }
        if self.shape.iter().any(|d| d.known().is_some_and(|d| d < 0)) {
            return Err(TypeError::invalid(format!("ConstantOfShape with a negative size: {:?}", self.shape)));
        }
        Ok(vec![TensorType { dtype: self.value.dtype(), shape: Shape::from(self.shape.as_slice()) }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [] = values("ConstantOfShape", inputs)?;
        let shape = concrete_shape(&self.shape, inputs, context)?;
        let value = Value::<S>::from_const(&self.value).filter(|_| self.value.elements() == 1);
        let value = value.ok_or_else(|| EvalError::value("ConstantOfShape of an exotic type"))?;
        Ok(vec![moved!(value, |t| filled(&t, shape))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["ConstantOfShape"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let shape = required_sizes(node, 0)?;
        let value = match node.attrs.get("value") {
            Some(Attr::Tensor(value)) => value.clone(),
            Some(other) => return Err(Opaque(format!("ConstantOfShape of {other}"))),
            None => Const::from_f64(DType::F32, &[1], &[0.0]).ok_or_else(|| Opaque("ConstantOfShape without a value".into()))?,
        };
        Ok(node.import_with(crate::Op::ConstantOfShape(ConstantOfShape { shape, value }), &[]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("ConstantOfShape", version, 9)?;
        let value = Const::new(self.value.dtype(), &[1], self.value.bytes().clone());
        let value = value.ok_or_else(|| no_spelling("ConstantOfShape", "it takes one value"))?;
        Ok(OnnxSpelling::plain("ConstantOfShape", 0).with("value", Attr::Tensor(value)).with_dims(&self.shape))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

fn filled<T: Clone>(one: &Tensor<T>, shape: Vec<usize>) -> Tensor<T> {
    Tensor::filled(shape, one.data[0].clone())
}
