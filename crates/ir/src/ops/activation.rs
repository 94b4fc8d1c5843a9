//! Activations, element by element. `alpha`, `beta` and `gamma` are ONNX attributes of the same
//! names.

use std::cmp::Ordering;

use crate::op::Kernel::{Elementwise, Transcendental};
use crate::ops::accepts::{Since, Types};
use crate::ops::elementwise::{clamp, pointwise};
use crate::scalar::{Function, Scalar, Unsupported};

const FLOATS: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16)];
const FLOATS_BF22: &[Since] = &[(1, Types::FLOATS), (22, Types::BF16)];
const RELU: &[Since] = &[(1, Types::FLOATS), (13, Types::BF16), (14, Types::SIGNED_INTS)];
const LEAKY: &[Since] = &[(1, Types::FLOATS), (16, Types::BF16)];
const CELU: &[Since] = &[(12, Types::F32), (28, Types::F16.and(Types::F64).and(Types::BF16))];
const THRESHOLDED: &[Since] = &[(10, Types::FLOATS), (22, Types::BF16)];
const HARD_SWISH: &[Since] = &[(14, Types::FLOATS), (22, Types::BF16)];
const MISH: &[Since] = &[(18, Types::FLOATS), (22, Types::BF16)];

pointwise! {
    /// `max(x, 0)`.
    Relu {}, RELU, Elementwise, 1.0, |_op, x| S::extreme(Ordering::Greater, x, &S::zero())?, |_, i| i.max(0);
    /// `1 / (1 + exp(-x))`.
    Sigmoid {}, FLOATS, Transcendental, 10.0, |_op, x| sigmoid(x)?;
    /// The hyperbolic tangent.
    Tanh {}, FLOATS, Transcendental, 12.0, |_op, x| x.apply(Function::Tanh)?;
    /// `x` if `x ≥ 0`, else `alpha * x`.
    LeakyRelu {
        /// Slope below 0.
        alpha = 0.01
    }, LEAKY, Elementwise, 2.0, |op, x| leaky(x, op.alpha.0)?;
    /// `x` if `x ≥ 0`, else `alpha * (exp(x) - 1)`.
    Elu {
        /// Scale below 0.
        alpha = 1.0
    }, FLOATS_BF22, Transcendental, 10.0, |op, x| elu(x, op.alpha.0)?;
    /// `gamma * x` if `x > 0`, else `gamma * alpha * (exp(x) - 1)`.
    Selu {
        /// Scale below 0.
        alpha = 1.673_263_2,
        /// Scale everywhere.
        gamma = 1.050_701
    }, FLOATS_BF22, Transcendental, 12.0, |op, x| {
        S::from_f64(op.gamma.0).mul(&elu(x, op.alpha.0)?)
    };
    /// `x` if `x ≥ 0`, else `alpha * (exp(x / alpha) - 1)`.
    Celu {
        /// Scale below 0.
        alpha = 1.0
    }, CELU, Transcendental, 12.0, |op, x| {
        if negative(x)? {
            let alpha = S::from_f64(op.alpha.0);
            alpha.mul(&x.div(&alpha)?.apply(Function::Exp)?.sub(&S::one()))
        } else {
            x.clone()
        }
    };
    /// `x` if `x > alpha`, else 0.
    ThresholdedRelu {
        /// The threshold.
        alpha = 1.0
    }, THRESHOLDED, Elementwise, 1.0,
        |op, x| if x.compare(&S::from_f64(op.alpha.0))? == Some(Ordering::Greater) { x.clone() } else { S::zero() };
    /// `alpha * x + beta`, clamped between 0 and 1.
    HardSigmoid {
        /// Slope.
        alpha = 0.2,
        /// Offset.
        beta = 0.5
    }, FLOATS_BF22, Elementwise, 4.0, |op, x| hard_sigmoid(x, op.alpha.0, op.beta.0)?;
    /// `x * clamp(x / 6 + 1/2, 0, 1)`.
    HardSwish {}, HARD_SWISH, Elementwise, 5.0, |_op, x| {
        x.mul(&clamp(&x.div(&S::from_f64(6.0))?.add(&S::from_f64(0.5)), &S::zero(), &S::one())?)
    };
    /// `log(1 + exp(x))`.
    Softplus {}, FLOATS_BF22, Transcendental, 18.0, |_op, x| softplus(x)?;
    /// `x / (1 + |x|)`.
    Softsign {}, FLOATS_BF22, Elementwise, 3.0, |_op, x| softsign(x)?;
    /// `x * tanh(softplus(x))`.
    Mish {}, MISH, Transcendental, 30.0, |_op, x| x.mul(&softplus(x)?.apply(Function::Tanh)?);
}

fn negative<S: Scalar>(x: &S) -> Result<bool, Unsupported> {
    Ok(x.compare(&S::zero())? == Some(Ordering::Less))
}

/// `1 / (1 + exp(-x))`; where the exponential overflows, the quotient is 0.
pub(crate) fn sigmoid<S: Scalar>(x: &S) -> Result<S, Unsupported> {
    S::one().div(&S::one().add(&x.neg().apply(Function::Exp)?))
}

/// `log(1 + exp(x))`, by `x + log(1 + exp(-x))` where `x > 0` so that nothing overflows.
pub(crate) fn softplus<S: Scalar>(x: &S) -> Result<S, Unsupported> {
    let log1p_exp = |v: &S| S::one().add(&v.apply(Function::Exp)?).apply(Function::Log);
    match x.compare(&S::zero()) {
        Ok(Some(Ordering::Greater)) => Ok(x.add(&log1p_exp(&x.neg())?)),
        _ => log1p_exp(x),
    }
}

/// `x` if `x ≥ 0`, else `alpha * x`.
pub(crate) fn leaky<S: Scalar>(x: &S, alpha: f64) -> Result<S, Unsupported> {
    Ok(if negative(x)? { x.mul(&S::from_f64(alpha)) } else { x.clone() })
}

/// `x` if `x ≥ 0`, else `alpha * (exp(x) - 1)`.
pub(crate) fn elu<S: Scalar>(x: &S, alpha: f64) -> Result<S, Unsupported> {
    Ok(if negative(x)? { S::from_f64(alpha).mul(&x.apply(Function::Exp)?.sub(&S::one())) } else { x.clone() })
}

/// `alpha * x + beta`, clamped between 0 and 1.
pub(crate) fn hard_sigmoid<S: Scalar>(x: &S, alpha: f64, beta: f64) -> Result<S, Unsupported> {
    clamp(&x.mul(&S::from_f64(alpha)).add(&S::from_f64(beta)), &S::zero(), &S::one())
}

/// `x / (1 + |x|)`.
pub(crate) fn softsign<S: Scalar>(x: &S) -> Result<S, Unsupported> {
    x.div(&S::one().add(&x.apply(Function::Abs)?))
}
