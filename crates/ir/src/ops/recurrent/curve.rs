//! The activations of recurrent operators.

use std::cmp::Ordering;

use crate::attr::Float;
use crate::ops::activation::{elu, hard_sigmoid, leaky, sigmoid, softplus, softsign};
use crate::scalar::{Function, Scalar, Unsupported};

/// An activation with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Curve {
    Relu,
    Tanh,
    Sigmoid,
    Softsign,
    Softplus,
    /// `alpha * x + beta`.
    Affine(f64, f64),
    /// `x` if `x ≥ 0`, else `alpha * x`.
    LeakyRelu(f64),
    /// `alpha * tanh(beta * x)`.
    ScaledTanh(f64, f64),
    /// `alpha * x + beta`, clamped between 0 and 1.
    HardSigmoid(f64, f64),
    /// `x` if `x ≥ 0`, else `alpha * (exp(x) - 1)`.
    Elu(f64),
}

/// What is known of an activation by its name.
struct Known {
    name: &'static str,
    /// `alpha` and `beta`, if it has them, where they are not given; `None` where the standard and
    /// runtimes disagree about that.
    defaults: &'static [Option<f32>],
    /// The activation with these parameters.
    curve: fn(f64, f64) -> Curve,
}

/// `ThresholdedRelu` is missing: at its threshold, the standard and runtimes disagree.
const TABLE: &[Known] = &[
    Known { name: "Relu", defaults: &[], curve: |_, _| Curve::Relu },
    Known { name: "Tanh", defaults: &[], curve: |_, _| Curve::Tanh },
    Known { name: "Sigmoid", defaults: &[], curve: |_, _| Curve::Sigmoid },
    Known { name: "Softsign", defaults: &[], curve: |_, _| Curve::Softsign },
    Known { name: "Softplus", defaults: &[], curve: |_, _| Curve::Softplus },
    Known { name: "Affine", defaults: &[None, None], curve: Curve::Affine },
    Known { name: "LeakyRelu", defaults: &[Some(0.01)], curve: |alpha, _| Curve::LeakyRelu(alpha) },
    Known { name: "ScaledTanh", defaults: &[None, None], curve: Curve::ScaledTanh },
    Known { name: "HardSigmoid", defaults: &[Some(0.2), Some(0.5)], curve: Curve::HardSigmoid },
    Known { name: "Elu", defaults: &[Some(1.0)], curve: |alpha, _| Curve::Elu(alpha) },
];

fn known(name: &str) -> Result<&'static Known, String> {
    TABLE.iter().find(|known| known.name == name).ok_or_else(|| format!("the activation {name} is not defined here"))
}

/// The parameters `alpha`, or `beta`, of all of these activations that have one, in order: those
/// given, and defaults for the last ones. `at` is 0 for `alpha` and 1 for `beta`.
pub(crate) fn completed(names: &[String], given: &[Float], at: usize) -> Result<Vec<Float>, String> {
    let mut given = given.iter();
    let mut all = Vec::new();
    for name in names {
        let Some(default) = known(name)?.defaults.get(at) else { continue };
        let value = given.next().copied().or(default.map(|value| Float(f64::from(value))));
        all.push(value.ok_or_else(|| format!("a parameter of the activation {name} is not given"))?);
    }
    given.next().map_or(Ok(all), |_| Err(TOO_MANY.into()))
}

/// How many of these activations have `alpha`, if `at` is 0, or `beta`, if it is 1.
pub(crate) fn count(names: &[String], at: usize) -> usize {
    names.iter().filter(|name| known(name).is_ok_and(|known| known.defaults.len() > at)).count()
}

/// The activations of these names, whose parameters are all given.
pub(crate) fn curves(names: &[String], alphas: &[Float], betas: &[Float]) -> Result<Vec<Curve>, String> {
    let mut given = [alphas.iter(), betas.iter()];
    let mut curves = Vec::with_capacity(names.len());
    for name in names {
        let known = known(name)?;
        let mut parameters = [0.0; 2];
        for at in 0..known.defaults.len() {
            let number = given[at].next().map(|value| value.0).filter(|value| value.is_finite());
            parameters[at] = number.ok_or_else(|| format!("the activation {name} needs more numbers as parameters"))?;
        }
        curves.push((known.curve)(parameters[0], parameters[1]));
    }
    if given.iter_mut().any(|rest| rest.next().is_some()) { Err(TOO_MANY.into()) } else { Ok(curves) }
}

const TOO_MANY: &str = "there are more parameters than the activations have";

impl Curve {
    /// The activation of `x`.
    pub(crate) fn of<S: Scalar>(self, x: &S) -> Result<S, Unsupported> {
        match self {
            Curve::Relu => S::extreme(Ordering::Greater, x, &S::zero()),
            Curve::Tanh => x.apply(Function::Tanh),
            Curve::Sigmoid => sigmoid(x),
            Curve::Softsign => softsign(x),
            Curve::Softplus => softplus(x),
            Curve::Affine(alpha, beta) => Ok(x.mul(&S::from_f64(alpha)).add(&S::from_f64(beta))),
            Curve::LeakyRelu(alpha) => leaky(x, alpha),
            Curve::ScaledTanh(alpha, beta) => Ok(S::from_f64(alpha).mul(&x.mul(&S::from_f64(beta)).apply(Function::Tanh)?)),
            Curve::HardSigmoid(alpha, beta) => hard_sigmoid(x, alpha, beta),
            Curve::Elu(alpha) => elu(x, alpha),
        }
    }
}
