//! Where elements have values: the requirements of operators on their operands, collected while
//! elements are written out.
//!
//! An element has a value where every operator it is read through has one. For `Where`, the operand
//! that is not chosen does not count; what lies outside windows and pads is not read.
//!
//! Normal forms cancel `z` against its inverse, also inside an operand that is not chosen where `z`
//! is 0. Both sides are the same sum for `z` near 0 as well, with booleans as they are at 0; the
//! chosen operand has a value there and is continuous, so both sides agree at 0 too.

use regraft_ir::{Op, ValueId};

use crate::index::{Poly, Var};
use crate::meaning::Meaning;
use crate::value::{Claim, Obligation, Sum, Trouble, product};

impl Meaning<'_> {
    /// Number of obligations so far.
    pub(super) fn met(&self) -> usize {
        self.shared.obligations.len()
    }

    /// Obligations since `from` hold for all values of the variables under the conditions.
    pub(super) fn met_under(&mut self, from: usize, binders: &[(Var, Poly)], conds: &[Poly]) {
        if !(binders.is_empty() && conds.is_empty()) {
            self.shared.obligations[from..].iter_mut().for_each(|o| o.bind(binders, conds));
        }
    }

    /// Obligations from `from` to `to` hold where the indicator is 1.
    pub(super) fn met_where(&mut self, from: usize, to: usize, indicator: &Sum) -> Result<(), Trouble> {
        for at in from..to {
            self.shared.obligations[at].guard = product(&self.shared.obligations[at].guard, indicator, &self.shared.facts)?;
        }
        Ok(())
    }

    /// The operator has a value only where the claim holds; `holds` says that it always does, for a
    /// reason that the claim does not show.
    fn require(&mut self, claim: Claim, holds: bool) {
        if claim.is_shown(&self.shared.facts) {
            return;
        }
        if holds {
            let claim = claim.named();
            if !self.shared.shown.contains(&claim) {
                self.shared.shown.push(claim);
            }
            return;
        }
        self.shared.obligations.push(Obligation::new(claim));
    }

    /// Records that the element of an input is read.
    pub(super) fn require_read(&mut self, element: &Sum) {
        if !self.shared.crowded {
            self.shared.obligations.push(Obligation::new(Claim::Read(element.clone())));
        }
    }

    pub(super) fn require_nonzero(&mut self, x: &Sum, holds: bool) {
        self.require(Claim::Nonzero(x.clone()), holds);
    }

    pub(super) fn require_nonnegative(&mut self, x: &Sum, holds: bool) {
        self.require(Claim::Nonnegative(x.clone()), holds);
    }

    pub(super) fn require_positive(&mut self, x: &Sum, holds: bool) {
        self.require_nonnegative(x, holds);
        self.require_nonzero(x, holds);
    }

    /// The requirements of a power on its base and exponent.
    pub(super) fn require_power(&mut self, base: &Sum, exponent: &Sum, sign: Sign) {
        let (nonnegative, positive) = (sign >= Sign::Nonnegative, sign >= Sign::Positive);
        match exponent.known() {
            Some(number) if number.is_integer() && !number.is_negative() => {}
            Some(number) if number.is_integer() => self.require_nonzero(base, positive),
            Some(number) if !number.is_negative() => self.require_nonnegative(base, nonnegative),
            Some(_) => self.require_positive(base, positive),
            None if positive
                || Claim::Nonzero(base.clone()).is_shown(&self.shared.facts)
                    && Claim::Nonnegative(base.clone()).is_shown(&self.shared.facts) => {}
            None => self.require(Claim::Within("power".into(), vec![base.clone(), exponent.clone()]), false),
        }
    }

    /// The requirements of an elementwise operator on its operands, whose elements are `x`.
    pub(super) fn require_of_operands(&mut self, op: &Op, x: &[Sum], operands: &[ValueId]) {
        let operand = |at: usize| x.get(at).cloned().unwrap_or_default();
        let sign = |m: &mut Self, at: usize| operands.get(at).map_or(Sign::Unknown, |v| m.sign(*v));
        match op {
            Op::Div(_) | Op::Mod(_) => {
                let positive = sign(self, 1) == Sign::Positive;
                self.require_nonzero(&operand(1), positive);
            }
            Op::Reciprocal(_) => {
                let positive = sign(self, 0) == Sign::Positive;
                self.require_nonzero(&operand(0), positive);
            }
            Op::Log(_) => {
                let positive = sign(self, 0) == Sign::Positive;
                self.require_positive(&operand(0), positive);
            }
            Op::Sqrt(_) => {
                let nonnegative = sign(self, 0) >= Sign::Nonnegative;
                self.require_nonnegative(&operand(0), nonnegative);
            }
            Op::Pow(_) => {
                let sign = sign(self, 0);
                self.require_power(&operand(0), &operand(1), sign);
            }
            Op::Asin(_) | Op::Acos(_) | Op::Acosh(_) | Op::Atanh(_) | Op::Tan(_) => {
                self.require(Claim::Within(format!("{op:?}").into(), x.to_vec()), false);
            }
            _ => {}
        }
    }
}

/// What is known about all elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Unknown,
    /// None is negative.
    Nonnegative,
    /// All are positive.
    Positive,
}

impl Meaning<'_> {
    /// The sign of a value's elements where they have values, derived from the operators that
    /// compute it: squares of differences are not negative, which no longer shows once they are
    /// multiplied out.
    pub(super) fn sign(&mut self, value: ValueId) -> Sign {
        if let Some(sign) = self.memory.signs.get(&value) {
            return *sign;
        }
        let sign = self.sign_of(value);
        self.memory.signs.insert(value, sign);
        sign
    }

    fn sign_of(&mut self, value: ValueId) -> Sign {
        let graph = self.graph;
        let node = graph.node(value.node);
        let operands = &node.inputs;
        let exponent = |m: &Self| operands.get(1).and_then(|v| m.splat_of(*v));
        match &node.op {
            Op::Constant(constant) => match constant.value.to_f64() {
                Some(all) if all.iter().all(|v| *v > 0.0) => Sign::Positive,
                Some(all) if all.iter().all(|v| *v >= 0.0) => Sign::Nonnegative,
                _ => Sign::Unknown,
            },
            Op::Mul(_) if operands.len() == 2 && operands[0] == operands[1] => Sign::Nonnegative,
            Op::Pow(_) if exponent(self).is_some_and(|e| e % 2.0 == 0.0) => self.sign(operands[0]).max(Sign::Nonnegative),
            Op::Pow(_) if self.sign(operands[0]) == Sign::Positive => Sign::Positive,
            Op::ReduceSumSquare(_) | Op::ReduceL1(_) | Op::ReduceL2(_) | Op::Abs(_) | Op::Relu(_) => Sign::Nonnegative,
            Op::Exp(_) | Op::Sigmoid(_) | Op::Softplus(_) | Op::Softmax(_) => Sign::Positive,
            Op::Sqrt(_) => self.sign(operands[0]).max(Sign::Nonnegative),
            Op::Add(_) | Op::Sum(_) => {
                let signs: Vec<Sign> = operands.iter().map(|v| self.sign(*v)).collect();
                let least = signs.iter().copied().min().unwrap_or(Sign::Unknown);
                if least == Sign::Unknown { Sign::Unknown } else { signs.into_iter().max().unwrap_or(least) }
            }
            Op::Mul(_) | Op::Div(_) | Op::Min(_) | Op::Mean(_) => operands.iter().map(|v| self.sign(*v)).min().unwrap_or(Sign::Unknown),
            Op::Max(_) => operands.iter().map(|v| self.sign(*v)).max().unwrap_or(Sign::Unknown),
            Op::Reciprocal(_)
            | Op::Identity(_)
            | Op::Dropout(_)
            | Op::ReduceMean(_)
            | Op::ReduceSum(_)
            | Op::ReduceMax(_)
            | Op::ReduceMin(_)
            | Op::ReduceProd(_)
            | Op::GlobalAveragePool(_)
            | Op::Transpose(_)
            | Op::Reshape(_)
            | Op::Flatten(_)
            | Op::Squeeze(_)
            | Op::Unsqueeze(_)
            | Op::Expand(_)
            | Op::Tile(_)
            | Op::Slice(_)
            | Op::Split(_) => self.sign(operands[0]),
            _ => Sign::Unknown,
        }
    }

    /// The number that all elements of a constant equal.
    fn splat_of(&self, value: ValueId) -> Option<f64> {
        match &self.graph.node(value.node).op {
            Op::Constant(constant) => constant.value.splat(),
            _ => None,
        }
    }
}
