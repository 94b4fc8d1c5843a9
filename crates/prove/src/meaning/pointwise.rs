//! Elementwise operators: arithmetic, comparisons, logic, activations.

use num_traits::ToPrimitive;

use regraft_ir::{Class, DType, Op, OpKind, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::meaning::integer::nearest;
use crate::value::{Factor, Function, Sum, Trouble, apply, power, product, rational_power, whole};

/// Largest integer exponent that is multiplied out.
const LARGEST_EXPONENT: i32 = 6;

impl Meaning<'_> {
    /// The element, if the operator is elementwise.
    pub(super) fn pointwise(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = self.graph.node(value.node);
        let op = &node.op;
        if !is_pointwise(op.kind()) {
            return Ok(None);
        }
        let shape = self.shape(value)?;
        let operands = self.operands(value.node);
        let from: Vec<DType> = operands.iter().map(|v| self.ty(*v).map(|t| t.dtype)).collect::<Result<_, _>>()?;
        let to = self.ty(value)?.dtype;
        let op = op.clone();
        let mut x = Vec::with_capacity(operands.len());
        let mut met = vec![self.met()];
        for operand in &operands {
            x.push(match self.softmax_row(&op, *operand, index) {
                Some((row, first)) => self.at(row, &first)?,
                None => self.broadcast(*operand, &shape, index)?,
            });
            met.push(self.met());
        }
        if let (Op::Where(_), [chosen, ..], [_, _, first, second, ..]) = (&op, x.as_slice(), met.as_slice()) {
            let met = [(met[1], *first, chosen.clone()), (*first, *second, Sum::one().sub(chosen))];
            met.iter().try_for_each(|(from, to, indicator)| self.met_where(*from, *to, indicator))?;
        }
        self.require_of_operands(&op, &x, &operands);
        if let (Op::Cast(_), [from], [operand]) = (&op, from.as_slice(), operands.as_slice()) {
            let element = x.remove(0);
            return Ok(Some(if self.is_operation_on(*operand, to) {
                element
            } else if *from != to && from.embeds(to) && self.holds_rounded(*operand) {
                // What was rounded is another number where it is taken for one of more digits.
                nearest(*from, element)
            } else {
                self.cast(*from, to, element)?
            }));
        }
        if to.class() == Class::Int {
            return self.whole_pointwise(&op, &x, &from, to).map(Some);
        }
        if let (Op::Mul(_), [a, b], [square, _]) = (&op, operands.as_slice(), x.as_slice())
            && a == b
            && self.is_opaque_power(square)
        {
            return Ok(Some(opaque_power(square, 2)));
        }
        self.real_pointwise(&op, &x, to).map(Some)
    }

    /// The first element of the row of a softmax that `IsNaN` asks about, by an element of the row or
    /// by its sum: all elements of a row are numbers, or none is, since each is divided by the sum
    /// of all exponentials.
    fn softmax_row(&self, op: &Op, operand: ValueId, index: &[Poly]) -> Option<(ValueId, Vec<Poly>)> {
        let Op::IsNaN(_) = op else { return None };
        let node = self.graph.node(operand.node);
        let mut first = index.to_vec();
        let (row, axis) = match &node.op {
            Op::Softmax(softmax) => (operand, usize::try_from(softmax.axis).ok()?),
            Op::ReduceSum(sum) => {
                let (Op::Softmax(softmax), [axis]) = (&self.graph.node(node.inputs[0].node).op, sum.axes.as_slice()) else { return None };
                let at = usize::try_from(*axis).ok().filter(|_| softmax.axis == *axis)?;
                if !sum.keepdims {
                    first.insert(at, Poly::default());
                }
                (node.inputs[0], at)
            }
            _ => return None,
        };
        first[axis] = Poly::default();
        Some((row, first))
    }

    /// Whether a value of a float type is what one operator computes from numbers that `to`, which
    /// has fewer digits, holds, all of them cast from it. Rounded to `to`, it is what that operator
    /// computes in `to`: its exact result, rounded once.
    fn is_operation_on(&self, value: ValueId, to: DType) -> bool {
        let node = self.graph.node(value.node);
        let is_cast = |v: &ValueId| {
            let cast = self.graph.node(v.node);
            cast.op.kind() == OpKind::Cast && self.ty(cast.inputs[0]).is_ok_and(|ty| ty.dtype.embeds(to))
        };
        let narrows = self.ty(value).is_ok_and(|ty| ty.dtype != to && to.is_float() && to.embeds(ty.dtype));
        narrows && !matches!(node.op.kind(), OpKind::Cast) && !node.inputs.is_empty() && node.inputs.iter().all(is_cast)
    }

    /// Whether some elements of a value are results of such an operator, which the cast after it
    /// rounds.
    fn holds_rounded(&self, value: ValueId) -> bool {
        let node = self.graph.node(value.node);
        match node.op.kind() {
            OpKind::Cast => self.ty(value).is_ok_and(|ty| self.is_operation_on(node.inputs[0], ty.dtype)),
            kind if kind.moves_elements() => node.inputs.iter().any(|operand| self.holds_rounded(*operand)),
            _ => false,
        }
    }

    /// Whether whole powers of this sum are not multiplied out.
    fn is_opaque_power(&self, base: &Sum) -> bool {
        self.shared.constants.opaque_powers && base.terms().iter().any(|(term, _)| !term.binders.is_empty())
    }

    /// The element of a real or boolean result.
    fn real_pointwise(&mut self, op: &Op, x: &[Sum], to: DType) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        let real = |v: f64| self.attribute(v);
        let bound = |v: f64| if to == DType::F64 { self.real(v, to) } else { self.attribute(v) };
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
        // The negative part, as a number that is at most 0.
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
                let least = op.min.filter(|low| low.0 != f64::NEG_INFINITY);
                let greatest = op.max.filter(|high| high.0 != f64::INFINITY);
                let low = least.map_or_else(|| Ok(a.clone()), |low| max(a.clone(), bound(low.0)?))?;
                greatest.map_or_else(|| Ok(low.clone()), |high| min(&low, &bound(high.0)?))?
            }
            Op::Gelu(op) if op.approximate == "none" => {
                let inside = mul(&a, &power(&apply(Function::Sqrt, vec![Sum::number(whole(2))], facts)?, -1, facts)?)?;
                mul(&a, &one().add(&named("erf", &[inside])))?.scale(&whole(2).recip())
            }
            Op::Gelu(_) | Op::FastGelu(_) => {
                let cube = power(&a, 3, facts)?;
                let root = apply(Function::Sqrt, vec![self.two_over_pi()?], facts)?;
                let cubes = cube.scale(&(whole(44_715) / whole(1_000_000)));
                let inside = mul(&root, &a.add(&cubes))?;
                mul(&a, &one().add(&tanh(&inside)?))?.scale(&whole(2).recip())
            }
            Op::QuickGelu(op) => mul(&a, &sigmoid(&mul(&real(op.alpha.0)?, &a)?)?)?,
            Op::Identity(_) | Op::Dropout(_) => a,
            Op::Erf(_) => named("erf", x),
            Op::IsNaN(_) | Op::IsInf(_) => zero(&named(&format!("{op:?}"), x))?,
            Op::Log(_) => log(&a)?,
            other => named(&format!("{other:?}"), x),
        })
    }

    /// `a ^ b`: expanded where the exponent is a small integer or half-integer, a rational power of
    /// `a` for any other known exponent, and otherwise a function of both.
    pub(super) fn to_power(&self, a: &Sum, b: &Sum) -> Result<Sum, Trouble> {
        let facts = &self.shared.facts;
        if let Some(exponent) = b.known() {
            let doubled = &exponent * whole(2);
            if let Some(twice) = doubled.is_integer().then(|| doubled.to_integer().to_i32()).flatten()
                && twice.abs() <= 2 * LARGEST_EXPONENT
            {
                return if twice % 2 == 0 && twice > 2 && self.is_opaque_power(a) {
                    Ok(opaque_power(a, twice / 2))
                } else if twice % 2 == 0 {
                    power(a, twice / 2, facts)
                } else {
                    power(&apply(Function::Sqrt, vec![a.clone()], facts)?, twice, facts)
                };
            }
            return rational_power(a, &exponent, facts);
        }
        Ok(Sum::factor(Factor::Apply(Function::Named("power".into()), vec![a.clone(), b.clone()])))
    }
}

/// A power of which only the base is known.
fn opaque_power(base: &Sum, exponent: i32) -> Sum {
    let name = Function::Named("whole power".into());
    Sum::factor(Factor::Apply(name, vec![base.clone(), Sum::number(whole(i64::from(exponent)))]))
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
