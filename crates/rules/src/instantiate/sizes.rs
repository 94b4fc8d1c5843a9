//! Integers that are only known at run time, computed from the shapes of values that carry them.

use regraft_ir::dim::{Arithmetic, Factor};
use regraft_ir::ops::arithmetic::{Add, Div, Mul};
use regraft_ir::ops::{concat, gather, range, reshape, shape};
use regraft_ir::{Carrier, Const, DType, Dim, Op, OpKind, PatchValue, ValueId};
use smallvec::SmallVec;

use super::{Builder, Refusal};

impl Builder<'_> {
    /// These integers as a vector: a constant if all are known.
    pub(super) fn integers(&mut self, sizes: &[Dim]) -> Result<PatchValue, Refusal> {
        if let Some(known) = sizes.iter().map(Dim::known).collect::<Option<Vec<i64>>>() {
            return self.constant_node(Const::from_i64(DType::I64, &[known.len() as i64], &known)).map(|all| all[0]);
        }
        let each: SmallVec<[PatchValue; 3]> = sizes.iter().map(|size| self.size(size)).collect::<Result<_, _>>()?;
        match each.as_slice() {
            [one] => Ok(*one),
            _ => self.one(Op::Concat(concat::Concat { axis: 0 }), &each),
        }
    }

    /// `0, 1, ..` up to `length`, as a vector: a constant if that is known.
    pub(super) fn counted(&mut self, length: &Dim) -> Result<PatchValue, Refusal> {
        if let Some(known) = length.known() {
            return self.integers(&(0..known).map(Dim::from).collect::<Vec<_>>());
        }
        let limit = self.size(length)?;
        let limit = self.one(Op::Reshape(reshape::Reshape { shape: Vec::new() }), &[limit])?;
        let number = |builder: &mut Builder<'_>, n: i64| builder.constant_node(Const::from_i64(DType::I64, &[], &[n])).map(|all| all[0]);
        let (start, delta) = (number(self, 0)?, number(self, 1)?);
        self.one(Op::Range(range::Range { shape: vec![length.clone()] }), &[start, limit, delta])
    }

    /// A size: read from a shape that has it, or computed.
    fn size(&mut self, size: &Dim) -> Result<PatchValue, Refusal> {
        match self.graph.bearer(size) {
            Some((value, axis)) => self.axis(value, axis),
            None => size.compute(self),
        }
    }

    /// The size of a value's axis.
    fn axis(&mut self, value: ValueId, axis: usize) -> Result<PatchValue, Refusal> {
        // Only an opaque node can lie below what is replaced.
        self.reads_opaque |= self.graph.kind(value.node) == OpKind::Opaque;
        let rank = self.graph.ty(value).map_or(0, |ty| ty.rank() as i64);
        let sizes = self.one(Op::Shape(shape::Shape { start: 0, end: rank }), &[PatchValue::Old(value)])?;
        let axis = self.integers(&[(axis as i64).into()])?;
        self.one(Op::Gather(gather::Gather { axis: 0 }), &[sizes, axis])
    }

    fn one(&mut self, op: Op, inputs: &[PatchValue]) -> Result<PatchValue, Refusal> {
        self.node(op, SmallVec::from_slice(inputs)).map(|all| all[0])
    }
}

/// Integers as vectors of one element.
impl Arithmetic for Builder<'_> {
    type Value = PatchValue;
    type Error = Refusal;

    fn number(&mut self, number: i64) -> Result<PatchValue, Refusal> {
        self.integers(&[number.into()])
    }

    fn factor(&mut self, factor: &Factor<'_>) -> Result<PatchValue, Refusal> {
        match factor {
            Factor::Symbol(symbol) => {
                let Some(Carrier { value, axis, factor, offset }) = self.graph.carrier(symbol) else {
                    return Err(Refusal::Unwritable(format!("no input carries the size {symbol}")));
                };
                let mut size = self.axis(value, axis)?;
                if offset != 0 {
                    let offset = self.number(-offset)?;
                    size = self.sum(size, offset)?;
                }
                if factor != 1 {
                    let factor = self.number(factor)?;
                    size = self.one(Op::Div(Div {}), &[size, factor])?;
                }
                Ok(size)
            }
            // Integer division rounds towards zero.
            Factor::FloorDiv(a, b) if a.at_least(0) && b.at_least(1) => {
                let (a, b) = (self.integers(&[(*a).clone()])?, self.integers(&[(*b).clone()])?);
                self.one(Op::Div(Div {}), &[a, b])
            }
            _ => Err(Refusal::Type("a size that cannot be computed from shapes".into())),
        }
    }

    fn product(&mut self, a: PatchValue, b: PatchValue) -> Result<PatchValue, Refusal> {
        self.one(Op::Mul(Mul {}), &[a, b])
    }

    fn sum(&mut self, a: PatchValue, b: PatchValue) -> Result<PatchValue, Refusal> {
        self.one(Op::Add(Add {}), &[a, b])
    }
}
