//! Padding and cropping.

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{copy, floats_before, ints, no_spelling, not_negative, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// The operand with `pads[i]` elements before and `pads[rank + i]` after it along every axis
    /// `i`.
    ///
    /// Modes: `constant` (every new element is `value`; negative pads crop), `reflect` (mirrored
    /// without repeating the border; less than the size on each side), `edge` (the border
    /// repeated).
    pub struct Pad {
        /// Elements before every axis, then after every axis.
        pub pads: Vec<i64>,
        /// `constant`, `reflect` or `edge`.
        pub mode: String,
        /// What `constant` pads with, converted to the element type.
        pub value: Float,
    }
}

impl Operator for Pad {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Pad", inputs)?;
        let rank = x.rank();
        if self.pads.len() != 2 * rank {
            return Err(TypeError::invalid(format!("Pad of {x} needs {} pads, not {}", 2 * rank, self.pads.len())));
        }
        let constant = match self.mode.as_str() {
            "constant" => true,
            "reflect" | "edge" => false,
            other => return Err(TypeError::invalid(format!("Pad has no mode `{other}`"))),
        };
        if !constant && self.pads.iter().any(|p| *p < 0) {
            return Err(TypeError::invalid(format!("Pad crops only in the mode `constant`, not by {:?}", self.pads)));
        }
        let mut result = x.clone();
        let mut cropped = Ok(());
        for (axis, d) in result.shape.iter_mut().enumerate() {
            let (before, after) = (self.pads[axis], self.pads[rank + axis]);
            let room = if self.mode == "reflect" { before.max(after) } else { 0 };
            if let Some(size) = d.known().filter(|size| room > 0 && *size <= room) {
                return Err(TypeError::invalid(format!("Pad reflects {room} elements of a size of {size}")));
            }
            let added = before.saturating_add(after);
            *d = d.clone() + Dim::from(added);
            if added < 0 {
                let left = not_negative(d, || format!("the size that Pad leaves of axis {axis} of {x}"));
                cropped = cropped.and(left);
            }
        }
        cropped.map_err(|e| e.with_types([result.clone()]))?;
        Ok(vec![result])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Pad", inputs)?;
        let rank = x.shape().len();
        if self.pads.len() != 2 * rank {
            return Err(EvalError::value(format!("Pad of {:?} by {:?}", x.shape(), self.pads)));
        }
        let sources: Vec<Vec<Option<usize>>> = x
            .shape()
            .iter()
            .enumerate()
            .map(|(axis, size)| self.source(*size, self.pads[axis], self.pads[rank + axis]))
            .collect::<Result<_, _>>()?;
        let value = self.value.0;
        Ok(vec![match x {
            Value::Real(t) => Value::real(fill(t, &sources, &S::from_f64(value))),
            Value::Int(t) => Value::int(fill(t, &sources, &(value as i64))),
            Value::Bool(t) => Value::bool(fill(t, &sources, &(value != 0.0))),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Pad"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let rank = node.ty(0)?.rank();
        let (given, axes, value) = if node.version < 11 {
            let pads = node.ints("pads").or_else(|| node.ints("paddings"));
            (pads, None, node.float("value").unwrap_or(0.0))
        } else {
            let value = match node.constant(2)?.filter(|v| v.elements() > 0) {
                Some(value) => exact_double(value).ok_or_else(|| Opaque("Pad with a value that no double holds".into()))?,
                None => 0.0,
            };
            (node.constant_ints(1)?, if node.version < 18 { None } else { node.constant_ints(3)? }, value)
        };
        let given = given.ok_or_else(|| Opaque("Pad without pads".into()))?;
        let axes = axes.unwrap_or_else(|| (0..rank as i64).collect());
        if given.len() != 2 * axes.len() {
            return Err(Opaque(format!("Pad has {} pads for {} axes", given.len(), axes.len())));
        }
        let mut pads = vec![0; 2 * rank];
        let mut seen = vec![false; rank];
        for (at, axis) in axes.iter().enumerate() {
            let axis = node.axis(*axis, rank)? as usize;
            if std::mem::replace(&mut seen[axis], true) {
                return Err(Opaque("Pad names an axis twice".into()));
            }
            (pads[axis], pads[rank + axis]) = (given[at], given[axes.len() + at]);
        }
        let mode = node.str("mode").unwrap_or("constant").to_string();
        Ok(node.import_with(crate::Op::Pad(Pad { pads, mode, value: Float(value) }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let [x] = inputs else { return Err(no_spelling("Pad", "it takes one operand")) };
        let spelling = OnnxSpelling::plain("Pad", 1).with("mode", Attr::Str(self.mode.clone()));
        if version < 11 {
            floats_before("Pad", x.dtype, version, 11)?;
            return Ok(spelling.with("pads", ints(&self.pads)).with("value", Attr::Float(self.value)));
        }
        if version < 13 && x.dtype == DType::Bool {
            return Err(no_spelling("Pad", format!("it takes booleans since opset 13, the model has {version}")));
        }
        let value = Const::scalar(x.dtype, self.value.0).ok_or_else(|| no_spelling("Pad", format!("{} has no constants here", x.dtype)))?;
        Ok(spelling.with_ints(&self.pads).with_const(value))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

impl Pad {
    /// For every index along one axis of the result, the operand's index, or `None` for a padded
    /// element.
    fn source(&self, size: usize, before: i64, after: i64) -> Result<Vec<Option<usize>>, EvalError> {
        let n = size as i64;
        let misfit = || EvalError::value(format!("Pad ({}) of a size of {size} by {before} and {after}", self.mode));
        if n + before + after < 0 {
            return Err(misfit());
        }
        let inside = |at: i64| usize::try_from(at).ok().filter(|at| *at < size);
        (-before..n + after)
            .map(|at| match self.mode.as_str() {
                "constant" => Ok(inside(at)),
                "edge" if n > 0 => Ok(inside(at.clamp(0, n - 1))),
                "reflect" => inside(if at < 0 {
                    -at
                } else if at >= n {
                    2 * (n - 1) - at
                } else {
                    at
                })
                .ok_or_else(misfit)
                .map(Some),
                _ => Err(misfit()),
            })
            .collect()
    }
}

/// The single element of a constant, if a double holds it exactly.
fn exact_double(value: &Const) -> Option<f64> {
    match value.dtype().class() {
        Class::Real => value.to_f64().filter(|v| v.len() == 1)?.first().copied(),
        Class::Int | Class::Bool => match value.to_i64()?.as_slice() {
            [v] if v.unsigned_abs() <= 1 << 53 => Some(*v as f64),
            _ => None,
        },
        Class::Other => None,
    }
}

/// The tensor whose element at each index is the operand's at `sources`, or `value`.
fn fill<T: Clone>(x: &Tensor<T>, sources: &[Vec<Option<usize>>], value: &T) -> Tensor<T> {
    let shape: Vec<usize> = sources.iter().map(Vec::len).collect();
    let mut data = Vec::with_capacity(shape.iter().product());
    copy_axis(x, &x.strides(), sources, 0, value, &mut data);
    Tensor::new(shape, data)
}

fn copy_axis<T: Clone>(x: &Tensor<T>, strides: &[usize], sources: &[Vec<Option<usize>>], offset: usize, value: &T, out: &mut Vec<T>) {
    let ([source, inner @ ..], [stride, inner_strides @ ..]) = (sources, strides) else {
        out.extend_from_slice(&x.data[offset..offset + 1]);
        return;
    };
    let block: usize = inner.iter().map(Vec::len).product();
    let mut at = 0;
    while let Some(from) = source.get(at) {
        match from {
            None => {
                out.resize(out.len() + block, value.clone());
                at += 1;
            }
            Some(from) if inner.is_empty() => {
                let run = source[at..].iter().zip(*from..).take_while(|(s, want)| **s == Some(*want)).count();
                out.extend_from_slice(&x.data[offset + from..offset + from + run]);
                at += run;
            }
            Some(from) => {
                copy_axis(x, inner_strides, inner, offset + from * stride, value, out);
                at += 1;
            }
        }
    }
}
