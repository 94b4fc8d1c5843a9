//! Recurrent layers: each direction on its own.

use regraft_ir::{Op, ValueId};

use crate::index::{Poly, Source};
use crate::meaning::Meaning;
use crate::value::{Sum, Trouble, canonical};

/// Operands that all directions share: the input, and the lengths of sequences.
const INPUT: usize = 0;
const LENGTHS: &str = "sequence_lens";

impl Meaning<'_> {
    /// The element, if the operator is a recurrent layer.
    ///
    /// A direction is an uninterpreted function of the shared operands and of its part of the
    /// others: the first axis of these is that of the directions.
    pub(super) fn recurrent(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let graph = self.graph;
        let op = &graph.node(value.node).op;
        let single = |number: usize| match op {
            Op::RNN(op) => op.single(number).map(Op::RNN),
            Op::GRU(op) => op.single(number).map(Op::GRU),
            Op::LSTM(op) => op.single(number).map(Op::LSTM),
            _ => None,
        };
        if single(0).is_none() {
            return Ok(None);
        }
        // The last axes of all results are those of directions, sequences and units.
        let axis = index.len().checked_sub(3).ok_or_else(|| Trouble("a recurrent layer of too few axes".into()))?;
        let mut sum = Sum::default();
        for (number, op) in (0..).map_while(|number| Some((number, single(number as usize)?))) {
            let at = index[axis].plus(-number);
            let mut own = index.to_vec();
            own.remove(axis);
            let part = self.where_inside(vec![at.clone(), at.scale(-1)], |m| m.direction(value, &op, number, own))?;
            sum = sum.add(&part);
        }
        Ok(Some(sum))
    }

    /// The element of a direction, computed by the layer `op` of this direction alone.
    fn direction(&mut self, value: ValueId, op: &Op, number: i64, index: Vec<Poly>) -> Result<Sum, Trouble> {
        let optional = match op {
            Op::RNN(op) => &op.optional,
            Op::GRU(op) => &op.optional,
            Op::LSTM(op) => &op.optional,
            _ => return Trouble::new("no recurrent layer"),
        };
        let lengths = optional.iter().position(|name| name == LENGTHS).map(|at| at + 3);
        let mut text = format!("{op:?}");
        for (slot, operand) in self.operands(value.node).into_iter().enumerate() {
            let shape = self.shape(operand)?;
            let own = &shape[usize::from(slot != INPUT && Some(slot) != lengths)..];
            let mut at = vec![Poly::number(number); shape.len() - own.len()];
            at.extend(self.shared.generic(own));
            let element = canonical(&self.at_any(operand, &at)?);
            text.push_str(&format!("\n{} {own:?}: {element:?}", self.ty(operand)?.dtype));
        }
        let source = Source::Opaque(blake3::hash(text.as_bytes()).to_hex().as_str().into(), value.port);
        self.shared.facts.all_of(&source, self.ty(value)?.dtype);
        Ok(Sum::read(source, index))
    }
}
