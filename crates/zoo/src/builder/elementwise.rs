//! Arithmetic on each element.

use super::{Builder, Value, shape::broadcast};
use crate::catalog::Element;

impl Builder {
    /// A unary operator.
    fn unary(&mut self, op: &str, x: &Value) -> Value {
        self.node(op, &[x], vec![], x.element, x.shape.clone())
    }

    /// A binary operator.
    fn binary(&mut self, op: &str, left: &Value, right: &Value) -> Value {
        assert_eq!(left.element, right.element);
        self.node(op, &[left, right], vec![], left.element, broadcast(&left.shape, &right.shape))
    }

    /// `left + right`
    pub(crate) fn add(&mut self, left: &Value, right: &Value) -> Value {
        self.binary("Add", left, right)
    }

    /// `left - right`
    pub(crate) fn sub(&mut self, left: &Value, right: &Value) -> Value {
        self.binary("Sub", left, right)
    }

    /// `left * right`
    pub(crate) fn mul(&mut self, left: &Value, right: &Value) -> Value {
        self.binary("Mul", left, right)
    }

    /// `left / right`
    pub(crate) fn div(&mut self, left: &Value, right: &Value) -> Value {
        self.binary("Div", left, right)
    }

    /// `x + number`
    pub(crate) fn add_scalar(&mut self, x: &Value, number: f32) -> Value {
        let number = self.scalar(number);
        self.add(x, &number)
    }

    /// `x * number`
    pub(crate) fn mul_scalar(&mut self, x: &Value, number: f32) -> Value {
        let number = self.scalar(number);
        self.mul(x, &number)
    }

    /// `x / number`
    pub(crate) fn div_scalar(&mut self, x: &Value, number: f32) -> Value {
        let number = self.scalar(number);
        self.div(x, &number)
    }

    /// `1 - x`
    pub(crate) fn one_minus(&mut self, x: &Value) -> Value {
        let one = self.scalar(1.0);
        self.sub(&one, x)
    }

    /// `x ^ number`
    pub(crate) fn pow_scalar(&mut self, x: &Value, number: f32) -> Value {
        let number = self.scalar(number);
        self.binary("Pow", x, &number)
    }

    /// `x` limited to `low..=high`
    pub(crate) fn clip(&mut self, x: &Value, low: f32, high: f32) -> Value {
        let (low, high) = (self.scalar(low), self.scalar(high));
        self.node("Clip", &[x, &low, &high], vec![], x.element, x.shape.clone())
    }

    /// `max(x, 0)`
    pub(crate) fn relu(&mut self, x: &Value) -> Value {
        self.unary("Relu", x)
    }

    /// The logistic function.
    pub(crate) fn sigmoid(&mut self, x: &Value) -> Value {
        self.unary("Sigmoid", x)
    }

    /// The hyperbolic tangent.
    pub(crate) fn tanh(&mut self, x: &Value) -> Value {
        self.unary("Tanh", x)
    }

    /// The Gauss error function.
    pub(crate) fn erf(&mut self, x: &Value) -> Value {
        self.unary("Erf", x)
    }

    /// The square root.
    pub(crate) fn sqrt(&mut self, x: &Value) -> Value {
        self.unary("Sqrt", x)
    }

    /// Dropout at inference, which changes nothing.
    pub(crate) fn dropout(&mut self, x: &Value) -> Value {
        self.unary("Dropout", x)
    }

    /// Integers as floating-point numbers.
    pub(crate) fn cast_to_float(&mut self, x: &Value) -> Value {
        let to = super::attribute::int("to", Element::F32.code().into());
        self.node("Cast", &[x], vec![to], Element::F32, x.shape.clone())
    }

    /// `yes` where `condition` holds, else `no`.
    pub(crate) fn select(&mut self, condition: &Value, yes: &Value, no: &Value) -> Value {
        let shape = broadcast(&broadcast(&condition.shape, &yes.shape), &no.shape);
        self.node("Where", &[condition, yes, no], vec![], yes.element, shape)
    }
}
