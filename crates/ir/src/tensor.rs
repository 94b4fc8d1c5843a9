//! Dense tensors of the reference executor.

use std::sync::Arc;

use crate::constant::Const;
use crate::dtype::{Class, DType};
use crate::scalar::Scalar;

/// A dense row-major tensor with concrete sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements, row-major; as many as the product of the sizes.
    pub data: Vec<T>,
}

impl<T: Clone> Tensor<T> {
    /// A tensor; `data` must hold exactly the product of the sizes.
    pub fn new(shape: Vec<usize>, data: Vec<T>) -> Tensor<T> {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len(), "shape {shape:?} does not fit the data");
        Tensor { shape, data }
    }

    /// A tensor of one value.
    pub fn filled(shape: Vec<usize>, value: T) -> Tensor<T> {
        let n = shape.iter().product();
        Tensor { shape, data: vec![value; n] }
    }

    /// The tensor of `shape` whose element at each index vector is `f(index)`.
    pub fn from_fn(shape: Vec<usize>, mut f: impl FnMut(&[usize]) -> T) -> Tensor<T> {
        let n: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut data = Vec::with_capacity(n);
        for _ in 0..n {
            data.push(f(&index));
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Tensor { shape, data }
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.shape)
    }

    /// The same elements under another shape of equal size.
    pub fn reshaped(self, shape: Vec<usize>) -> Tensor<T> {
        Tensor::new(shape, self.data)
    }

    /// Every element through `f`.
    pub fn map<U, E>(&self, mut f: impl FnMut(&T) -> Result<U, E>) -> Result<Tensor<U>, E> {
        self.map_dyn(&mut f)
    }

    /// The loop of [`map`](Self::map), compiled once per element type.
    #[inline(never)]
    fn map_dyn<U, E>(&self, f: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Tensor<U>, E> {
        let mut data = Vec::with_capacity(self.data.len());
        for element in &self.data {
            data.push(f(element)?);
        }
        Ok(Tensor { shape: self.shape.clone(), data })
    }

    /// This tensor broadcast to `shape`: the flat index of every element of the result.
    pub fn broadcast_index(&self, shape: &[usize]) -> Vec<usize> {
        let own = self.strides();
        let offset = shape.len() - self.shape.len();
        let steps: Vec<usize> =
            (0..shape.len()).map(|axis| if axis < offset || self.shape[axis - offset] == 1 { 0 } else { own[axis - offset] }).collect();
        Tensor::from_fn(shape.to_vec(), |index| index.iter().zip(&steps).map(|(i, s)| i * s).sum()).data
    }
}

/// Row-major strides of `shape`, in elements.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    strides
}

/// The shape that broadcasting concrete shapes gives; `None` if they do not match.
pub fn broadcast_concrete<'a>(shapes: impl IntoIterator<Item = &'a [usize]>) -> Option<Vec<usize>> {
    let mut result: Vec<usize> = Vec::new();
    for shape in shapes {
        while result.len() < shape.len() {
            result.insert(0, 1);
        }
        let offset = result.len() - shape.len();
        for (at, &d) in shape.iter().enumerate() {
            let have = &mut result[offset + at];
            if *have == 1 {
                *have = d;
            } else if d != 1 && d != *have {
                return None;
            }
        }
    }
    Some(result)
}

/// A runtime value: real elements are generic, integers are 64-bit (wrapped to their type by the
/// operators), booleans are booleans.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<S> {
    /// Elements of a floating-point type.
    Real(Arc<Tensor<S>>),
    /// Elements of an integer type.
    Int(Arc<Tensor<i64>>),
    /// Booleans.
    Bool(Arc<Tensor<bool>>),
}

/// The largest finite magnitude among these numbers, 0 if there is none.
pub fn magnitude<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> f64 {
    numbers.into_iter().filter(|v| v.is_finite()).fold(0.0, |most, v| v.abs().max(most))
}

impl Value<f64> {
    /// The largest difference of two values, relative to the largest magnitude of this one and at
    /// least to 1. Infinite between values of different shapes or kinds, between unequal integers
    /// or booleans, and where an infinity or NaN is unmatched.
    pub fn difference(&self, other: &Value<f64>) -> f64 {
        match (self, other) {
            (Value::Real(x), Value::Real(y)) if x.shape == y.shape => {
                let scale = magnitude(&x.data).max(1.0);
                let between = |(p, q): (&f64, &f64)| match (p - q).abs() {
                    _ if p == q || (p.is_nan() && q.is_nan()) => 0.0,
                    apart if apart.is_finite() => apart / scale,
                    _ => f64::INFINITY,
                };
                x.data.iter().zip(&y.data).map(between).fold(0.0, f64::max)
            }
            _ if self == other => 0.0,
            _ => f64::INFINITY,
        }
    }
}

impl<S: Scalar> Value<S> {
    /// Wraps a real tensor.
    pub fn real(tensor: Tensor<S>) -> Value<S> {
        Value::Real(Arc::new(tensor))
    }

    /// Wraps an integer tensor.
    pub fn int(tensor: Tensor<i64>) -> Value<S> {
        Value::Int(Arc::new(tensor))
    }

    /// Wraps a boolean tensor.
    pub fn bool(tensor: Tensor<bool>) -> Value<S> {
        Value::Bool(Arc::new(tensor))
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Real(t) => &t.shape,
            Value::Int(t) => &t.shape,
            Value::Bool(t) => &t.shape,
        }
    }

    /// The value of a constant; `None` for strings and exotic types.
    pub fn from_const(constant: &Const) -> Option<Value<S>> {
        let shape: Vec<usize> = constant.shape().iter().map(|d| *d as usize).collect();
        Some(match constant.dtype().class() {
            Class::Real => Value::real(Tensor::new(shape, constant.map_f64(S::from_f64)?)),
            Class::Int => Value::int(Tensor::new(shape, constant.to_i64()?)),
            Class::Bool => Value::bool(Tensor::new(shape, constant.to_i64()?.into_iter().map(|v| v != 0).collect())),
            Class::Other => return None,
        })
    }

    /// The constant of type `dtype` with these elements; `None` if the scalar does not convert to
    /// doubles or the type does not fit.
    pub fn to_const(&self, dtype: DType) -> Option<Const> {
        let shape: Vec<i64> = self.shape().iter().map(|d| *d as i64).collect();
        match self {
            Value::Real(t) => {
                // Copied once only: weights may be large.
                let known = t.data.iter().all(|v| v.to_f64().is_ok());
                known.then(|| Const::from_reals(dtype, &shape, t.data.iter().map(|v| v.to_f64().unwrap_or_default())))?
            }
            Value::Int(t) => Const::from_i64(dtype, &shape, &t.data),
            Value::Bool(t) => Const::from_i64(dtype, &shape, &t.data.iter().map(|b| i64::from(*b)).collect::<Vec<_>>()),
        }
    }
}

/// `value` wrapped to the width and sign of an integer type.
pub fn wrap_int(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::I8 => i64::from(value as i8),
        DType::U8 => i64::from(value as u8),
        DType::I16 => i64::from(value as i16),
        DType::U16 => i64::from(value as u16),
        DType::I32 => i64::from(value as i32),
        DType::U32 => i64::from(value as u32),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_the_largest_magnitude() {
        let value = |data: &[f64]| Value::<f64>::real(Tensor::new(vec![data.len()], data.to_vec()));
        let (one, far) = (value(&[1.0, -100.0]), value(&[2.0, -100.0]));
        assert_eq!((one.difference(&far), one.difference(&one)), (0.01, 0.0));
        assert_eq!(value(&[0.25]).difference(&value(&[0.5])), 0.25);
        let (nan, infinite) = (value(&[f64::NAN, 1.0]), value(&[f64::INFINITY, 1.0]));
        assert_eq!((nan.difference(&nan), infinite.difference(&infinite)), (0.0, 0.0));
        assert_eq!(nan.difference(&infinite), f64::INFINITY);
        assert_eq!(one.difference(&value(&[1.0])), f64::INFINITY);
        let integers = |n: i64| Value::<f64>::int(Tensor::new(vec![1], vec![n]));
        assert_eq!((integers(3).difference(&integers(3)), integers(3).difference(&integers(4))), (0.0, f64::INFINITY));
    }
}
