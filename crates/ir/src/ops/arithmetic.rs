//! Element-wise arithmetic on two operands with NumPy broadcasting, on reals and on integers.

use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::elementwise::{arithmetic, binary, broadcast, f64_to_int, infer_broadcast, int_div, int_to_f64, pass, zip};
use crate::scalar::Scalar;
use crate::tensor::{Value, wrap_int};
use crate::ty::TensorType;
use crate::{Attr, Op};

const NUMBERS: &[Since] = &[(1, Types::FLOATS), (6, Types::WIDE_INTS), (13, Types::BF16), (14, Types::NARROW_INTS)];

binary! {
    /// `a + b`.
    Add, true, NUMBERS, |x, y| Ok(x.add(y)), |_dtype, i, j| Ok(i.wrapping_add(j));
    /// `a - b`.
    Sub, false, NUMBERS, |x, y| Ok(x.sub(y)), |_dtype, i, j| Ok(i.wrapping_sub(j));
    /// `a * b`.
    Mul, true, NUMBERS, |x, y| Ok(x.mul(y)), |_dtype, i, j| Ok(i.wrapping_mul(j));
    /// `a / b`; integers truncate towards zero.
    Div, false, NUMBERS, |x, y| Ok(x.div(y)?), |dtype, i, j| int_div(dtype, i, j);
}

operator! {
    /// `a` to the power `b`, of the type of `a`; the exponent may have another type. Integers wrap;
    /// a negative power of an integer is truncated.
    pub struct Pow {}
}

const POW_BASE: &[Since] = &[(7, Types::FLOATS), (12, Types::I32.and(Types::I64)), (13, Types::BF16)];
const POW_EXPONENT: &[Since] = &[(7, Types::FLOATS), (12, Types::INTS), (15, Types::BF16)];

impl Operator for Pow {
    const ELEMENTWISE: bool = true;
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [base, exponent] = inputs else {
            return Err(TypeError::invalid(format!("Pow takes 2 operands, not {}", inputs.len())));
        };
        accepts::check("Pow", POW_BASE, base.dtype)?;
        accepts::check("the exponent of Pow", POW_EXPONENT, exponent.dtype)?;
        Ok(vec![TensorType { dtype: base.dtype, shape: broadcast("Pow", inputs)? }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [base, exponent] = [context.input_types[0].dtype, context.input_types[1].dtype];
        match inputs {
            [Value::Real(a), Value::Real(b)] => Ok(vec![Value::real(zip(a, b, |x, y| Ok(x.pow(y)?))?)]),
            [Value::Real(a), Value::Int(b)] => Ok(vec![Value::real(zip(a, b, |x, y| Ok(x.pow(&S::from_f64(int_to_f64(exponent, *y)))?))?)]),
            [Value::Int(a), Value::Int(b)] => Ok(vec![Value::int(zip(a, b, |x, y| Ok(wrap_int(base, int_pow(base, *x, *y, exponent))))?)]),
            [Value::Int(a), Value::Real(b)] => {
                Ok(vec![Value::int(zip(a, b, |x, y| Ok(f64_to_int(base, int_to_f64(base, *x).powf(y.to_f64()?))))?)])
            }
            _ => Err(EvalError::value("Pow is defined for numbers")),
        }
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Pow"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        crate::ops::elementwise::import_broadcast(node, Op::Pow(Pow {}))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let [base, exponent] = [inputs[0].dtype, inputs[1].dtype];
        accepts::spelled("Pow", POW_BASE, version, base)?;
        accepts::spelled("Pow", POW_EXPONENT, version, exponent)?;
        if base != exponent && version < 12 {
            let why = format!("base and exponent may have different types since opset 12, the model has {version}");
            return Err(NoSpelling { op: "Pow", why });
        }
        Ok(OnnxSpelling::plain("Pow", 2))
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        pass(outputs, Kernel::Transcendental, 16.0)
    }
}

/// `base` to the power `exponent` modulo 2^64; truncated towards zero for negative exponents.
fn int_pow(dtype: DType, base: i64, exponent: i64, exponent_type: DType) -> i64 {
    if exponent < 0 && exponent_type != DType::U64 {
        return f64_to_int(dtype, int_to_f64(dtype, base).powf(exponent as f64));
    }
    let (mut power, mut square, mut left) = (1i64, base, exponent as u64);
    while left > 0 {
        if left & 1 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    power
}

operator! {
    /// Remainder of `a / b`: with the sign of `b` (integers only), or with the sign of `a` if
    /// `fmod`.
    pub struct Mod {
        /// Sign of the dividend, like C's `fmod`; required for floats.
        pub fmod: bool
    }
}

const MOD: &[Since] = &[(10, Types::FLOATS.and(Types::INTS)), (13, Types::BF16)];

impl Operator for Mod {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let types = infer_broadcast("Mod", inputs, 2, None)?;
        accepts::check("Mod", MOD, inputs[0].dtype)?;
        if inputs[0].dtype.is_float() && !self.fmod {
            return Err(TypeError::invalid("Mod of floats needs fmod"));
        }
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let dtype = context.output_types[0].dtype;
        // The remainder of two floats is itself a float of their precision, so the detour through
        // doubles is exact.
        arithmetic(
            inputs,
            dtype,
            |x, y| Ok(S::from_f64(x.to_f64()? % y.to_f64()?)),
            |i, j| {
                if j == 0 {
                    return Err(EvalError::value("integer remainder of a division by zero"));
                }
                if dtype == DType::U64 {
                    return Ok((i as u64 % j as u64) as i64);
                }
                let rest = i.wrapping_rem(j);
                Ok(if !self.fmod && rest != 0 && (rest < 0) != (j < 0) { rest.wrapping_add(j) } else { rest })
            },
        )
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Mod"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        node.import(Op::Mod(Mod { fmod: node.flag("fmod", false)? }))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Mod", MOD, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("Mod", 2).with("fmod", Attr::Int(i64::from(self.fmod))))
    }
}

operator! {
    /// Unsigned integers `a` shifted by `b` bits; shifting out all bits gives 0.
    pub struct BitShift {
        /// `LEFT` or `RIGHT`.
        pub direction: String
    }
}

const BIT_SHIFT: &[Since] = &[(11, Types::UNSIGNED_INTS)];

impl Operator for BitShift {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let types = infer_broadcast("BitShift", inputs, 2, None)?;
        accepts::check("BitShift", BIT_SHIFT, inputs[0].dtype)?;
        if !matches!(self.direction.as_str(), "LEFT" | "RIGHT") {
            return Err(TypeError::invalid(format!("BitShift cannot shift to {:?}", self.direction)));
        }
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let left = self.direction == "LEFT";
        let shift = |i: i64, j: i64| {
            let by = u32::try_from(j).unwrap_or(u32::MAX);
            let bits = if left { (i as u64).checked_shl(by) } else { (i as u64).checked_shr(by) };
            Ok(bits.unwrap_or(0) as i64)
        };
        arithmetic(inputs, context.output_types[0].dtype, |_, _| Err(EvalError::value("BitShift is defined for integers")), shift)
    }

    fn onnx_types() -> &'static [&'static str] {
        &["BitShift"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        match (node.str("direction"), node.ty(0)?.dtype.class()) {
            (Some(direction), Class::Int) => node.import(Op::BitShift(BitShift { direction: direction.to_string() })),
            _ => Err(Opaque("BitShift needs a direction and integers".into())),
        }
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("BitShift", BIT_SHIFT, version, inputs[0].dtype)?;
        Ok(OnnxSpelling::plain("BitShift", 2).with("direction", Attr::Str(self.direction.clone())))
    }
}
