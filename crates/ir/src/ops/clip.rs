//! Clip: clamps between constant bounds.

use std::cmp::Ordering;

use crate::constant::Const;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque, SpellingInput};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{f64_to_int, int_order, int_to_f64, only, pass};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;
use crate::{Attr, Float, Op};

operator! {
    /// `min(max(x, min), max)`; a missing bound does not bind. Bounds are numbers of the operand's
    /// type.
    pub struct Clip {
        /// Lower bound.
        pub min: Option<Float>,
        /// Upper bound; it wins if the bounds cross.
        pub max: Option<Float>
    }
}

const CLIP: &[Since] = &[(6, Types::FLOATS), (12, Types::INTS), (13, Types::BF16)];

impl Clip {
    fn bounds(&self) -> impl Iterator<Item = f64> {
        [&self.min, &self.max].into_iter().flatten().map(|bound| bound.0)
    }
}

impl Operator for Clip {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operand = only("Clip", inputs)?;
        accepts::check("Clip", CLIP, operand.dtype)?;
        if let Some(bound) = self.bounds().find(|bound| bound.is_nan() || !fits(operand.dtype, *bound)) {
            return Err(TypeError::invalid(format!("Clip of {} has the bound {bound}", operand.dtype)));
        }
        Ok(vec![operand.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let dtype = context.output_types[0].dtype;
        match inputs {
            [Value::Real(x)] => {
                // A bound that is not a number is no bound.
                let bound = |b: &Option<Float>| b.filter(|b| !b.0.is_nan()).map(|b| S::from_f64(b.0));
                let (low, high) = (bound(&self.min), bound(&self.max));
                let clip = |x: &S| -> Result<S, EvalError> {
                    let x = low.as_ref().map_or_else(|| Ok(x.clone()), |low| S::extreme(Ordering::Greater, x, low))?;
                    Ok(high.as_ref().map_or_else(|| Ok(x.clone()), |high| S::extreme(Ordering::Less, &x, high))?)
                };
                Ok(vec![Value::real(x.map(clip)?)])
            }
            [Value::Int(x)] => {
                let bound = |b: &Option<Float>| b.map(|b| f64_to_int(dtype, b.0));
                let (low, high) = (bound(&self.min), bound(&self.max));
                let clip = |x: &i64| -> Result<i64, EvalError> {
                    let x = low.filter(|low| int_order(dtype, *x, *low).is_lt()).unwrap_or(*x);
                    Ok(high.filter(|high| int_order(dtype, x, *high).is_gt()).unwrap_or(x))
                };
                Ok(vec![Value::int(x.map(clip)?)])
            }
            _ => Err(EvalError::value("Clip is defined for numbers")),
        }
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Clip"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let (min, max) = if node.version < 11 {
            (node.float("min").map(Float), node.float("max").map(Float))
        } else {
            (constant_bound(node, 1)?, constant_bound(node, 2)?)
        };
        Ok(node.import_with(Op::Clip(Clip { min, max }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let dtype = inputs[0].dtype;
        accepts::spelled("Clip", CLIP, version, dtype)?;
        let mut spelling = OnnxSpelling::plain("Clip", 1);
        if version < 11 {
            spelling.attrs.extend(self.min.map(|v| ("min", Attr::Float(v))));
            spelling.attrs.extend(self.max.map(|v| ("max", Attr::Float(v))));
            return Ok(spelling);
        }
        let bound = |b: Option<Float>| match b {
            None => Ok(SpellingInput::Missing),
            Some(b) => bound_const(dtype, b.0)
                .map(SpellingInput::Const)
                .ok_or_else(|| NoSpelling { op: "Clip", why: format!("{} is no bound of type {dtype}", b.0) }),
        };
        if self.min.is_some() || self.max.is_some() {
            spelling.inputs.push(bound(self.min)?);
        }
        if self.max.is_some() {
            spelling.inputs.push(bound(self.max)?);
        }
        Ok(spelling)
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Elementwise, 2.0)
    }
}

/// Whether `bound` is exactly a number of type `dtype` (any float will do for float types).
fn fits(dtype: DType, bound: f64) -> bool {
    dtype.class() == Class::Real || int_to_f64(dtype, f64_to_int(dtype, bound)) == bound
}

fn bound_const(dtype: DType, bound: f64) -> Option<Const> {
    match dtype.class() {
        Class::Real => Const::scalar(dtype, bound),
        _ => Const::from_i64(dtype, &[], &[f64_to_int(dtype, bound)]),
    }
}

fn constant_bound(node: &OnnxNode, at: usize) -> Result<Option<Float>, Opaque> {
    let Some(value) = node.constant(at)? else { return Ok(None) };
    let dtype = value.dtype();
    let bound = match (value.elements(), value.to_i64()) {
        (1, Some(ints)) => {
            ints.first().copied().map(|v| (v, int_to_f64(dtype, v))).filter(|(v, b)| f64_to_int(dtype, *b) == *v).map(|(_, b)| b)
        }
        (1, None) => value.splat(),
        _ => None,
    };
    bound.map(|b| Some(Float(b))).ok_or_else(|| Opaque(format!("bound {at} of Clip is not one exact number")))
}
