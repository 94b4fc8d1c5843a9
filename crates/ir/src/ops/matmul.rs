//! Matrix product with NumPy broadcasting of the leading dimensions.

use crate::dtype::DType;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::operands::enforced_sizes;
use crate::scalar::{Scalar, zeros};
use crate::tensor::{Tensor, Value, broadcast_concrete};
use crate::ty::{TensorType, broadcast_shapes};

operator! {
    /// `[.., M, K] × [.., K, N] → [.., M, N]`. Both operands have rank ≥ 2 here; vectors are
    /// unsqueezed at the ONNX boundary.
    pub struct MatMul {}
}

impl Operator for MatMul {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [a, b] = inputs else { return Err(TypeError::invalid("MatMul takes two operands")) };
        if a.dtype != b.dtype {
            return Err(TypeError::invalid(format!("MatMul cannot multiply {a} and {b}")));
        }
        product_types("MatMul", a, b, a.dtype)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Real(a), Value::Real(b)] = inputs else { return Err(EvalError::value("MatMul is defined for real operands")) };
        product(a, b).map(|t| vec![Value::real(t)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["MatMul"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.ty(0)?.rank() < 2 || node.ty(1)?.rank() < 2 {
            return Err(Opaque("MatMul of a vector".into()));
        }
        node.import(crate::Op::MatMul(MatMul {}))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        Ok(OnnxSpelling::plain("MatMul", 2))
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let k = inputs[0].last().copied().unwrap_or(0);
        let out = &outputs[0];
        let m = out.get(out.len().wrapping_sub(2)).copied().unwrap_or(1);
        Work {
            flops: 2.0 * k as f64 * out.iter().product::<usize>() as f64,
            extra_bytes: 0.0,
            kernel: if m < 4 { Kernel::Thin } else { Kernel::Dense },
        }
    }
}

/// The type of a matrix product with elements of type `dtype`.
pub(crate) fn product_types(name: &str, a: &TensorType, b: &TensorType, dtype: DType) -> Result<Vec<TensorType>, TypeError> {
    let (ra, rb) = (a.rank(), b.rank());
    if ra < 2 || rb < 2 {
        return Err(TypeError::invalid(format!("{name} cannot multiply {a} and {b}")));
    }
    let (k, l) = (&a.shape[ra - 1], &b.shape[rb - 2]);
    let mut shape = broadcast_shapes([&a.shape[..ra - 2], &b.shape[..rb - 2]])
        .ok_or_else(|| TypeError::invalid(format!("{name} cannot broadcast {a} with {b}")))?;
    shape.push(a.shape[ra - 2].clone());
    shape.push(b.shape[rb - 1].clone());
    let types = vec![TensorType { dtype, shape }];
    enforced_sizes(name, "equal inner sizes", k, l).map_err(|e| e.with_types(types.clone()))?;
    Ok(types)
}

/// Matrix product of two concrete tensors of rank ≥ 2.
pub(crate) fn product<S: Scalar>(a: &Tensor<S>, b: &Tensor<S>) -> Result<Tensor<S>, EvalError> {
    let (ra, rb) = (a.shape.len(), b.shape.len());
    let (m, k, n) = (a.shape[ra - 2], a.shape[ra - 1], b.shape[rb - 1]);
    if b.shape[rb - 2] != k {
        return Err(EvalError::value(format!("MatMul of {:?} and {:?}", a.shape, b.shape)));
    }
    let batch = broadcast_concrete([&a.shape[..ra - 2], &b.shape[..rb - 2]])
        .ok_or_else(|| EvalError::value(format!("MatMul cannot broadcast {:?} with {:?}", a.shape, b.shape)))?;
    let of = |t: &Tensor<S>, rank: usize| Tensor { shape: t.shape[..rank - 2].to_vec(), data: Vec::<u8>::new() }.broadcast_index(&batch);
    let (ia, ib) = (of(a, ra), of(b, rb));
    let count = ia.len();
    let mut data = zeros(count * m * n);
    for at in 0..count {
        S::gemm(m, k, n, &a.data[ia[at] * m * k..][..m * k], &b.data[ib[at] * k * n..][..k * n], &mut data[at * m * n..][..m * n]);
    }
    let mut shape = batch;
    shape.extend([m, n]);
    Ok(Tensor::new(shape, data))
}
