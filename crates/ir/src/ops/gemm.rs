//! Matrix product with transposition, scaling and a broadcast addend.

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::{enforced_sizes, equal_sizes, float_or, floats, reals};
use crate::ops::strided::transposed;
use crate::scalar::{Scalar, zeros};
use crate::tensor::{Tensor, Value, broadcast_concrete};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(7, Types::FLOATS), (13, Types::BF16)];

/// The opset that made the addend optional.
const REQUIRED_BEFORE: i64 = 11;

operator! {
    /// `alpha * a' b' (+ beta * c) → [M, N]` with `a'` of `[M, K]` and `b'` of `[K, N]`, each given
    /// transposed if its flag is set.
    ///
    /// `c` broadcasts to `[M, N]`. Floating-point operands only.
    pub struct Gemm {
        /// Factor of the product.
        pub alpha: Float,
        /// Factor of `c`.
        pub beta: Float,
        /// `a` is given as `[K, M]`.
        pub trans_a: bool,
        /// `b` is given as `[N, K]`.
        pub trans_b: bool,
    }
}

impl Operator for Gemm {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let dtype = floats("Gemm", inputs, 2..=3)?;
        let ([a0, a1], [b0, b1]) = (inputs[0].shape.as_slice(), inputs[1].shape.as_slice()) else {
            return Err(TypeError::invalid(format!("Gemm of {} and {}", inputs[0], inputs[1])));
        };
        let (m, k) = if self.trans_a { (a1, a0) } else { (a0, a1) };
        let (l, n) = if self.trans_b { (b1, b0) } else { (b0, b1) };
        let result = TensorType::new(dtype, [m.clone(), n.clone()]);
        let undecided = |e: TypeError| e.with_types([result.clone()]);
        enforced_sizes("Gemm", "equal inner sizes", k, l).map_err(undecided)?;
        if let Some(c) = inputs.get(2) {
            if c.rank() > 2 {
                return Err(TypeError::invalid(format!("Gemm adds {c}")));
            }
            for (size, of) in c.shape.iter().zip(&result.shape[2 - c.rank()..]).filter(|(size, _)| !size.is(1)) {
                equal_sizes("Gemm", "an addend that broadcasts", of, size).map_err(undecided)?;
            }
        }
        Ok(vec![result])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("Gemm", inputs)?;
        let [a, b, rest @ ..] = tensors.as_slice() else { return Err(EvalError::value("Gemm takes two or three operands")) };
        let mut product = self.product(a, b)?;
        if self.alpha.0 != 1.0 {
            let alpha = S::from_f64(self.alpha.0);
            product.data.iter_mut().for_each(|v| *v = v.mul(&alpha));
        }
        if let Some(c) = rest.first() {
            add_scaled(&mut product, c, self.beta.0)?;
        }
        Ok(vec![Value::real(product)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Gemm"]
    }

    /// The zero that stands in for a required addend is no addend. Any other is one, zero or not:
    /// what a node is must not depend on which constants are folded.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if !node.ty(0)?.dtype.is_float() {
            return Err(Opaque("Gemm of integers".into()));
        }
        // Before opset 7 the addend broadcasts only if an attribute says so.
        if node.version < 7 && node.has(2) && node.int("broadcast").unwrap_or(0) == 0 && node.ty(2)?.rank() != 2 {
            return Err(Opaque(format!("Gemm of opset {} with an addend of another rank", node.version)));
        }
        let (beta, addend) = (float_or(node, "beta", 1.0), node.inputs.get(2).and_then(Option::as_ref));
        let stands_in = |v: &Const| node.version < REQUIRED_BEFORE && v.shape() == [1] && v.splat() == Some(0.0);
        let zero = beta.0.is_finite() && addend.is_some_and(|c| c.value.as_ref().is_some_and(stands_in));
        let adds = addend.is_some() && !zero;
        let op = crate::Op::Gemm(Gemm {
            alpha: float_or(node, "alpha", 1.0),
            beta: if adds { beta } else { Float(1.0) },
            trans_a: node.flag("transA", false)?,
            trans_b: node.flag("transB", false)?,
        });
        Ok(node.import_with(op, if adds { &[0, 1, 2] } else { &[0, 1] }))
    }

    /// Where the addend is required, a zero stands in for it.
    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Gemm", TYPES, version, outputs[0].dtype)?;
        let mut spelling = OnnxSpelling::plain("Gemm", inputs.len())
            .with("alpha", Attr::Float(self.alpha))
            .with("beta", Attr::Float(self.beta))
            .with("transA", Attr::Int(i64::from(self.trans_a)))
            .with("transB", Attr::Int(i64::from(self.trans_b)));
        if version < REQUIRED_BEFORE && inputs.len() == 2 {
            let zero = Const::from_f64(inputs[0].dtype, &[1], &[0.0]);
            spelling = spelling.with_const(zero.ok_or_else(|| NoSpelling { op: "Gemm", why: "its type has no zero".into() })?);
        }
        Ok(spelling)
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let k = inputs.first().and_then(|a| a.get(usize::from(!self.trans_a))).copied().unwrap_or(0);
        let (m, out) = outputs.first().map_or((0, 0), |o| (o.first().copied().unwrap_or(0), o.iter().product()));
        Work { flops: 2.0 * k as f64 * out as f64, extra_bytes: 0.0, kernel: if m < 4 { Kernel::Thin } else { Kernel::Dense } }
    }
}

impl Gemm {
    /// `a' b'`. Never copies `b` when it is transposed: the weights of a classifier are the large
    /// operand.
    fn product<S: Scalar>(&self, a: &Tensor<S>, b: &Tensor<S>) -> Result<Tensor<S>, EvalError> {
        let fail = || EvalError::value(format!("Gemm of {:?} and {:?}", a.shape, b.shape));
        let (&[a0, a1], &[b0, b1]) = (a.shape.as_slice(), b.shape.as_slice()) else { return Err(fail()) };
        let (m, k) = if self.trans_a { (a1, a0) } else { (a0, a1) };
        let (l, n) = if self.trans_b { (b1, b0) } else { (b0, b1) };
        if k != l {
            return Err(fail());
        }
        let mut data = zeros(m * n);
        match (self.trans_a, self.trans_b) {
            (false, false) => S::gemm(m, k, n, &a.data, &b.data, &mut data),
            (true, false) => S::gemm(m, k, n, &transposed(&a.data, k, m), &b.data, &mut data),
            (false, true) => {
                S::gemm(n, k, m, &b.data, &transposed(&a.data, m, k), &mut data);
                data = transposed(&data, n, m);
            }
            (true, true) => {
                S::gemm(n, k, m, &b.data, &a.data, &mut data);
                data = transposed(&data, n, m);
            }
        }
        Ok(Tensor::new(vec![m, n], data))
    }
}

fn add_scaled<S: Scalar>(product: &mut Tensor<S>, c: &Tensor<S>, beta: f64) -> Result<(), EvalError> {
    if broadcast_concrete([product.shape.as_slice(), c.shape.as_slice()]).as_ref() != Some(&product.shape) {
        return Err(EvalError::value(format!("Gemm adds {:?} to {:?}", c.shape, product.shape)));
    }
    let index = c.broadcast_index(&product.shape);
    if beta == 1.0 {
        product.data.iter_mut().zip(index).for_each(|(v, at)| *v = v.add(&c.data[at]));
        return Ok(());
    }
    let beta = S::from_f64(beta);
    product.data.iter_mut().zip(index).for_each(|(v, at)| *v = v.add(&beta.mul(&c.data[at])));
    Ok(())
}
