//! Element by element: arithmetic, comparisons, logic, activations.

use num_traits::{One, ToPrimitive};

use regraft_ir::{Class, Const, DType, Op, OpKind, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::value::{Factor, Function, Sum, Trouble, apply, number_of, power, product, rational_power, whole};

/// Whole numbers below it are doubles.
const EXACT: f64 = (1u64 << 53) as f64;

/// Largest whole exponent that is multiplied out.
const LARGEST_EXPONENT: i32 = 6;

impl Meaning<'_> {
    /// The element, if the operator works element by element.
    pub(super) fn pointwise(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = self.graph.node(value.node);
        let op = &node.op;
        if !is_pointwise(op.kind()) {
            return Ok(None);
        }
        let shape = self.shape(value)?;
        let operands = self.operands(value.node);
        let class = operands.first().map(|v| self.ty(*v).map(|t| t.dtype.class())).transpose()?;
        let from = operands.first().map(|v| self.ty(*v).map(|t| t.dtype)).transpose()?;
        let op = op.clone();
        let mut x = Vec::with_capacity(operands.len());
        for operand in operands {
            x.push(self.broadcast(operand, &shape, index)?);
        }
        if let (Op::Cast(cast), Some(from)) = (&op, from) {
            return self.cast(from, cast.to, x.remove(0)).map(Some);
        }
        let whole_numbers = class == Some(Class::Int);
        self.pointwise_of(&op, &x, whole_numbers).map(Some)
    }

    fn pointwise_of(&self, op: &Op, x: &[Sum], whole_numbers: bool) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        let real = |v: f64| self.real(v);
        let one = Sum::one;
        let mul = |a: &Sum, b: &Sum| product(a, b, facts);
        let exp = |a: &Sum| apply(Function::Exp, vec![a.clone()], facts);
        let max = |a: Sum, b: Sum| apply(Function::Max, vec![a, b], facts);
        let min = |a: &Sum, b: &Sum| Ok::<_, Trouble>(max(a.negated(), b.negated())?.negated());
        let inverse = |a: &Sum| power(a, -1, facts);
        let positive = |a: &Sum| apply(Function::Positive, vec![a.clone()], facts);
        let zero = |a: &Sum| apply(Function::Zero, vec![a.clone()], facts);
        let named = |name: &str, arguments: &[Sum]| Sum::factor(Factor::Apply(Function::Named(name.into()), arguments.to_vec()));
        let log = |a: &Sum| apply(Function::Named("log".into()), vec![a.clone()], facts);
        let sigmoid = |a: &Sum| inverse(&one().add(&exp(&a.negated())?));
        // 1 - 2 / (exp(2 a) + 1)
        let tanh = |a: &Sum| Ok::<_, Trouble>(one().sub(&inverse(&one().add(&exp(&a.scale(&whole(2)))?))?.scale(&whole(2))));
        let softplus = |a: &Sum| log(&one().add(&exp(a)?));
        let relu = |a: &Sum| max(a.clone(), Sum::default());
        // The part below 0, as a number that is not above 0.
        let below = |a: &Sum| Ok::<_, Trouble>(max(a.negated(), Sum::default())?.negated());
        let exponential_below = |a: &Sum, alpha: &Sum, e: &Sum| {
            let negative = one().sub(&positive(a)?);
            Ok::<_, Trouble>(relu(a)?.add(&mul(&negative, &mul(alpha, &e.sub(&one()))?)?))
        };
        let [a, b] = [x.first(), x.get(1)].map(|v| v.cloned().unwrap_or_default());
        Ok(match op {
            Op::Add(_) | Op::Sum(_) => x.iter().fold(Sum::default(), |sum, v| sum.add(v)),
            Op::Sub(_) => a.sub(&b),
            Op::Mul(_) => mul(&a, &b)?,
            Op::Div(_) if whole_numbers => match (a.as_poly(), b.as_poly()) {
                (Some(a), Some(b)) if facts.nonnegative(&a) && facts.at_least(&b, &Poly::number(1)) => {
                    Sum::whole(&facts.reduce(&a.floor(&b)))
                }
                _ => named("whole-division", x),
            },
            Op::Div(_) => mul(&a, &inverse(&b)?)?,
            Op::Mean(_) => {
                let count = whole(x.len() as i64).recip();
                x.iter().fold(Sum::default(), |sum, v| sum.add(v)).scale(&count)
            }
            Op::Max(_) => apply(Function::Max, x.to_vec(), facts)?,
            Op::Min(_) => apply(Function::Max, x.iter().map(Sum::negated).collect(), facts)?.negated(),
            Op::Pow(_) => self.to_power(&a, &b)?,
            Op::Equal(_) => zero(&a.sub(&b))?,
            Op::Greater(_) => positive(&a.sub(&b))?,
            Op::Less(_) => positive(&b.sub(&a))?,
            Op::GreaterOrEqual(_) => one().sub(&positive(&b.sub(&a))?),
            Op::LessOrEqual(_) => one().sub(&positive(&a.sub(&b))?),
            Op::And(_) => mul(&a, &b)?,
            Op::Or(_) => a.add(&b).sub(&mul(&a, &b)?),
            Op::Xor(_) => a.add(&b).sub(&mul(&a, &b)?.scale(&whole(2))),
            Op::Not(_) => one().sub(&a),
            Op::Where(_) => {
                let otherwise = x.get(2).cloned().unwrap_or_default();
                mul(&a, &b)?.add(&mul(&one().sub(&a), &otherwise)?)
            }
            Op::Neg(_) => a.negated(),
            Op::Abs(_) => max(a.clone(), a.negated())?,
            Op::Reciprocal(_) => inverse(&a)?,
            Op::Sqrt(_) => apply(Function::Sqrt, vec![a], facts)?,
            Op::Exp(_) => exp(&a)?,
            Op::Relu(_) => relu(&a)?,
            Op::Sigmoid(_) => sigmoid(&a)?,
            Op::Tanh(_) => tanh(&a)?,
            Op::LeakyRelu(op) => relu(&a)?.add(&mul(&real(op.alpha.0)?, &below(&a)?)?),
            Op::PRelu(_) => relu(&a)?.add(&mul(&b, &below(&a)?)?),
            Op::Elu(op) => exponential_below(&a, &real(op.alpha.0)?, &exp(&a)?)?,
            Op::Selu(op) => {
                let bent = exponential_below(&a, &real(op.alpha.0)?, &exp(&a)?)?;
                mul(&real(op.gamma.0)?, &bent)?
            }
            Op::Celu(op) => {
                let alpha = real(op.alpha.0)?;
                exponential_below(&a, &alpha, &exp(&mul(&a, &inverse(&alpha)?)?)?)?
            }
            Op::ThresholdedRelu(op) => mul(&a, &positive(&a.sub(&real(op.alpha.0)?))?)?,
            Op::HardSigmoid(op) => {
                let line = mul(&real(op.alpha.0)?, &a)?.add(&real(op.beta.0)?);
                min(&relu(&line)?, &one())?
            }
            Op::HardSwish(_) => {
                let line = a.scale(&whole(6).recip()).add(&Sum::number(whole(2).recip()));
                mul(&a, &min(&relu(&line)?, &one())?)?
            }
            Op::Softplus(_) => softplus(&a)?,
            Op::Softsign(_) => mul(&a, &inverse(&one().add(&max(a.clone(), a.negated())?))?)?,
            Op::Mish(_) => mul(&a, &tanh(&softplus(&a)?)?)?,
            Op::Clip(op) => {
                let low = op.min.map_or_else(|| Ok(a.clone()), |low| max(a.clone(), real(low.0)?))?;
                op.max.map_or_else(|| Ok(low.clone()), |high| min(&low, &real(high.0)?))?
            }
            Op::Gelu(op) if op.approximate == "none" => {
                let inside = mul(&a, &power(&apply(Function::Sqrt, vec![Sum::number(whole(2))], facts)?, -1, facts)?)?;
                mul(&a, &one().add(&named("erf", &[inside])))?.scale(&whole(2).recip())
            }
            Op::Gelu(_) | Op::FastGelu(_) => {
                let cube = power(&a, 3, facts)?;
                let inside = mul(&real((2.0 / std::f64::consts::PI).sqrt())?, &a.add(&mul(&real(0.044_715)?, &cube)?))?;
                mul(&a, &one().add(&tanh(&inside)?))?.scale(&whole(2).recip())
            }
            Op::QuickGelu(op) => mul(&a, &sigmoid(&mul(&real(op.alpha.0)?, &a)?)?)?,
            Op::Identity(_) | Op::Dropout(_) => a,
            Op::Erf(_) => named("erf", x),
            Op::Log(_) => log(&a)?,
            other => named(&format!("{other:?}"), x),
        })
    }

    /// `a ^ b` where the exponent is a whole number or a half; else a function of both.
    pub(super) fn to_power(&self, a: &Sum, b: &Sum) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        if let Some(exponent) = b.known() {
            let doubled = &exponent * whole(2);
            if let Some(twice) = doubled.is_integer().then(|| doubled.to_integer().to_i32()).flatten()
                && twice.abs() <= 2 * LARGEST_EXPONENT
            {
                return if twice % 2 == 0 {
                    power(a, twice / 2, facts)
                } else {
                    power(&apply(Function::Sqrt, vec![a.clone()], facts)?, twice, facts)
                };
            }
            return rational_power(a, &exponent, facts);
        }
        Ok(Sum::factor(Factor::Apply(Function::Named("power".into()), vec![a.clone(), b.clone()])))
    }

    /// A number as another type: the same where that type holds it; what a cast may round, or what may have been wrapped around before, is a function of
    /// which nothing is known.
    fn cast(&self, from: DType, to: DType, x: Sum) -> Result<Sum, Trouble> {
        let number = x.known().filter(|number| number.is_integer()).and_then(|number| number.to_f64());
        let holds = |dtype: DType| number.is_some_and(|v| v.abs() < EXACT && Const::scalar(dtype, v).and_then(|c| c.splat()) == Some(v));
        let wrapped = is_narrow(from) && !holds(from) && !is_element(&x);
        let kept = match (from.class(), to.class()) {
            (Class::Bool, Class::Real | Class::Int | Class::Bool) => true,
            (Class::Real | Class::Int, Class::Real) => holds(to) || from.embeds(to),
            (Class::Int, Class::Int) => from == to || (from, to) == (DType::I32, DType::I64),
            _ => false,
        };
        // What comes from an integer type is held by the types that hold that one.
        let origin = self.integer_origin(&x);
        if (kept && (from == to || !wrapped)) || origin.is_some_and(|origin| origin.embeds(to)) {
            return Ok(x);
        }
        let class = if origin.is_some() { Class::Int } else { from.class() };
        if to.class() == Class::Bool && !wrapped {
            return Ok(Sum::one().sub(&apply(Function::Zero, vec![x], &self.shared.facts)?));
        }
        let source = if wrapped { from.to_string() } else { format!("{class:?}") };
        Ok(Sum::factor(Factor::Apply(Function::Named(format!("cast from {source} to {to}").into()), vec![x])))
    }

    /// The integer type of the input that the element is one of.
    fn integer_origin(&self, x: &Sum) -> Option<DType> {
        let [(term, c)] = x.terms() else { return None };
        match term.factors.as_slice() {
            [(Factor::Read(source, _), 1)] if c.is_one() && term.binders.is_empty() => {
                self.shared.dtypes.get(source).copied().filter(|dtype| dtype.class() == Class::Int)
            }
            _ => None,
        }
    }

    /// A number of an attribute.
    pub(super) fn attribute(&self, value: f64) -> Result<Sum, Trouble> {
        number_of(value).map(Sum::number).ok_or_else(|| Trouble(format!("the attribute {value}")))
    }
}

/// Whether sums of usual numbers leave the type.
fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::U16)
}

/// Whether it is one element or one value of a function, and nothing that was computed from them.
fn is_element(x: &Sum) -> bool {
    matches!(x.terms(), [(term, c)] if c.is_one() && term.binders.is_empty() && matches!(term.factors.as_slice(), [(_, 1)]))
}

pub(crate) fn is_pointwise(kind: OpKind) -> bool {
    use OpKind::*;
    matches!(
        kind,
        Add | Sub
            | Mul
            | Div
            | Pow
            | Mod
            | BitShift
            | Sum
            | Max
            | Min
            | Mean
            | Equal
            | Greater
            | GreaterOrEqual
            | Less
            | LessOrEqual
            | And
            | Or
            | Xor
            | Not
            | Where
            | IsNaN
            | IsInf
            | Neg
            | Abs
            | Sign
            | Reciprocal
            | Sqrt
            | Exp
            | Log
            | Floor
            | Ceil
            | Round
            | Erf
            | Sin
            | Cos
            | Tan
            | Asin
            | Acos
            | Atan
            | Sinh
            | Cosh
            | Asinh
            | Acosh
            | Atanh
            | Relu
            | Sigmoid
            | Tanh
            | LeakyRelu
            | PRelu
            | Elu
            | Selu
            | Celu
            | ThresholdedRelu
            | HardSigmoid
            | HardSwish
            | Softplus
            | Softsign
            | Mish
            | Gelu
            | FastGelu
            | QuickGelu
            | Clip
            | Cast
            | Identity
            | Dropout
    )
}
