//! Positions of extreme elements along an axis.

use regraft_ir::{DType, Op, ValueId};

use crate::index::{Poly, Source};
use crate::meaning::Meaning;
use crate::value::{Sum, Trouble, canonical};

impl Meaning<'_> {
    /// The element, if the operator searches an axis.
    ///
    /// All searches are reduced to the first of the largest: the smallest of `x` is the largest of
    /// `-x`, and the last is the first from the other end. That search is an uninterpreted function
    /// of its operand, with integer values.
    pub(super) fn position(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let (axis, keepdims, last, smallest) = match &self.graph.node(value.node).op {
            Op::ArgMax(op) => (op.axis, op.keepdims, op.select_last_index, false),
            Op::ArgMin(op) => (op.axis, op.keepdims, op.select_last_index, true),
            _ => return Ok(None),
        };
        let operand = self.operand(value.node, 0)?;
        let shape: Vec<Poly> = self.shape(operand)?.iter().map(|size| self.shared.facts.reduce(size)).collect();
        let axis = usize::try_from(axis).ok().filter(|axis| *axis < shape.len()).ok_or_else(|| Trouble("a search along no axis".into()))?;
        let end = shape[axis].plus(-1);
        let mut at = self.shared.generic(&shape);
        if last {
            at[axis] = end.sub(&at[axis]);
        }
        let searched = self.at_any(operand, &at)?;
        let searched = canonical(&if smallest { searched.negated() } else { searched });
        let dtype = self.ty(operand)?.dtype;
        let name = blake3::hash(format!("first of the largest {dtype} along {axis} of {shape:?}: {searched:?}").as_bytes()).to_hex();
        let source = Source::Opaque(name.as_str().into(), 0);
        self.shared.facts.all_of(&source, DType::I64);
        let mut index = index.to_vec();
        if keepdims {
            index.remove(axis);
        }
        let first = Sum::read(source, index);
        Ok(Some(if last { Sum::whole(&end).sub(&first) } else { first }))
    }
}
