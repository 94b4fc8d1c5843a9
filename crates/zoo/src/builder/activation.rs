//! Activations, in the form exporters write them.

use std::f32::consts::SQRT_2;
use std::f64::consts::FRAC_2_PI;

use super::{Builder, Value, attribute};

impl Builder {
    /// `min(max(x, 0), 6)`, as a clip.
    pub(crate) fn relu6(&mut self, x: &Value) -> Value {
        self.clip(x, 0.0, 6.0)
    }

    /// `relu6(x + 3) / 6`, as four primitive steps.
    pub(crate) fn hard_sigmoid(&mut self, x: &Value) -> Value {
        let shifted = self.add_scalar(x, 3.0);
        let clipped = self.clip(&shifted, 0.0, 6.0);
        self.div_scalar(&clipped, 6.0)
    }

    /// `x * relu6(x + 3) / 6`
    pub(crate) fn hard_swish(&mut self, x: &Value) -> Value {
        let shifted = self.add_scalar(x, 3.0);
        let clipped = self.clip(&shifted, 0.0, 6.0);
        let product = self.mul(x, &clipped);
        self.div_scalar(&product, 6.0)
    }

    /// `x * (erf(x / √2) + 1) * 0.5`
    pub(crate) fn gelu_erf(&mut self, x: &Value) -> Value {
        let scaled = self.div_scalar(x, SQRT_2);
        let erf = self.erf(&scaled);
        let gate = self.add_scalar(&erf, 1.0);
        let product = self.mul(x, &gate);
        self.mul_scalar(&product, 0.5)
    }

    /// `0.5 * x * (1 + tanh(√(2/π) * (x + 0.044715 * x³)))`
    pub(crate) fn gelu_tanh(&mut self, x: &Value) -> Value {
        let half = self.mul_scalar(x, 0.5);
        let cube = self.pow_scalar(x, 3.0);
        let small = self.mul_scalar(&cube, 0.044_715);
        let sum = self.add(x, &small);
        let scaled = self.mul_scalar(&sum, FRAC_2_PI.sqrt() as f32);
        let tanh = self.tanh(&scaled);
        let gate = self.add_scalar(&tanh, 1.0);
        self.mul(&half, &gate)
    }

    /// Probabilities along the last axis.
    pub(crate) fn softmax(&mut self, x: &Value) -> Value {
        self.node("Softmax", &[x], vec![attribute::int("axis", -1)], x.element, x.shape.clone())
    }
}
