//! Pools over all spatial positions.

use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::moments::mean;
use crate::ops::operands::{floats, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];

operator! {
    /// `x[N, C, spatial..] → [N, C, 1..]`: the mean of each plane.
    pub struct GlobalAveragePool {}
}

operator! {
    /// `x[N, C, spatial..] → [N, C, 1..]`: the largest element of each plane.
    pub struct GlobalMaxPool {}
}

macro_rules! global_pool {
    ($name:ident, $plane:expr) => {
        impl Operator for $name {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                let dtype = floats(stringify!($name), inputs, 1..=1)?;
                if inputs[0].rank() < 3 {
                    return Err(TypeError::invalid(format!("{} of {}", stringify!($name), inputs[0])));
                }
                let mut shape = inputs[0].shape.clone();
                shape[2..].fill(Dim::from(1));
                Ok(vec![TensorType { dtype, shape }])
            }
            fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
                let tensors = reals(stringify!($name), inputs)?;
                let [x] = tensors.as_slice() else { return Err(EvalError::value("a global pool takes one operand")) };
                planes(x, $plane).map(|t| vec![Value::real(t)])
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
                node.import(crate::Op::$name($name {}))
            }
            fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
                accepts::spelled(stringify!($name), TYPES, version, outputs[0].dtype)?;
                Ok(OnnxSpelling::plain(stringify!($name), 1))
            }
            fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
                let elements: usize = inputs.first().map_or(0, |x| x.iter().product());
                Work { flops: elements as f64, extra_bytes: 0.0, kernel: Kernel::Window }
            }
        }
    };
}

global_pool!(GlobalAveragePool, |plane| mean(plane));
global_pool!(GlobalMaxPool, |plane| largest(plane));

fn largest<S: Scalar>(plane: &[S]) -> Result<S, EvalError> {
    let Some((first, rest)) = plane.split_first() else { return Err(EvalError::value("the maximum of no elements")) };
    let mut best = first.clone();
    for x in rest {
        best.raise(x)?;
    }
    Ok(best)
}

fn planes<S: Scalar>(x: &Tensor<S>, f: impl Fn(&[S]) -> Result<S, EvalError>) -> Result<Tensor<S>, EvalError> {
    let rank = x.shape.len();
    if rank < 3 {
        return Err(EvalError::value(format!("a global pool of {:?}", x.shape)));
    }
    let size: usize = x.shape[2..].iter().product();
    let count = x.shape[0] * x.shape[1];
    let data = (0..count).map(|p| f(&x.data[p * size..][..size])).collect::<Result<Vec<S>, _>>()?;
    let mut shape = vec![1; rank];
    shape[..2].copy_from_slice(&x.shape[..2]);
    Ok(Tensor::new(shape, data))
}
