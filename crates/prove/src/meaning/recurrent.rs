//! Recurrent layers: each direction on its own.

use regraft_ir::{NodeId, Op, ValueId};

use crate::index::{Poly, Source};
use crate::meaning::Meaning;
use crate::value::{Sum, Trouble, canonical, product};

/// The first operands, which no layer lacks: the input, its weights, and those of the states.
const INPUT: usize = 0;
const WEIGHTS: usize = 1;
const REQUIRED: usize = 3;
/// Optional operands: the bias of the input followed by that of the states, and lengths of
/// sequences, which all directions share, as the input.
const BIAS: &str = "B";
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
    ///
    /// Whatever the cell, the input, its weights and their bias are read only in `w x + b`, so it
    /// is this that the function is of.
    fn direction(&mut self, value: ValueId, op: &Op, number: i64, index: Vec<Poly>) -> Result<Sum, Trouble> {
        let node = value.node;
        let mut op = op.clone();
        let optional = match &mut op {
            Op::RNN(op) => &mut op.optional,
            Op::GRU(op) => &mut op.optional,
            Op::LSTM(op) => &mut op.optional,
            _ => return Trouble::new("no recurrent layer"),
        };
        let place = |name: &str| optional.iter().position(|given| given == name).map(|at| at + REQUIRED);
        let (bias_slot, lengths) = (place(BIAS), place(LENGTHS));
        // A layer without a bias is one whose bias is 0.
        optional.retain(|name| name != BIAS);
        let mut text = format!("{op:?}");

        let bias = bias_slot.map(|slot| self.operand(node, slot)).transpose()?;
        let (ranges, sums) = self.weighted(node, number, bias)?;
        text.push_str(&format!("\n{} {ranges:?}: {sums:?}", self.ty(value)?.dtype));
        let rows = &ranges[2..];
        let of_states = rows[0].add(&self.shared.generic(rows)[0]);
        let state = self.regardless(|m| m.bias_at(bias, number, of_states))?;
        text.push_str(&format!("\n{:?}", canonical(&state)));

        for (slot, operand) in self.operands(node).into_iter().enumerate().skip(WEIGHTS + 1) {
            if Some(slot) == bias_slot {
                continue;
            }
            let shape = self.shape(operand)?;
            let own = &shape[usize::from(Some(slot) != lengths)..];
            let mut at = vec![Poly::number(number); shape.len() - own.len()];
            at.extend(self.shared.generic(own));
            let element = canonical(&self.at_any(operand, &at)?);
            text.push_str(&format!("\n{} {own:?}: {element:?}", self.ty(operand)?.dtype));
        }
        let source = Source::Opaque(blake3::hash(text.as_bytes()).to_hex().as_str().into(), value.port);
        self.shared.facts.all_of(&source, self.ty(value)?.dtype);
        Ok(Sum::read(source, index))
    }

    /// The element of `w x + b` of a direction at an arbitrary step of an arbitrary sequence, in an
    /// arbitrary row, and the ranges of these.
    fn weighted(&mut self, node: NodeId, number: i64, bias: Option<ValueId>) -> Result<([Poly; 3], Sum), Trouble> {
        let (x, w) = (self.operand(node, INPUT)?, self.operand(node, WEIGHTS)?);
        let (input, weights) = (self.shape(x)?, self.shape(w)?);
        let ([steps, batch, size], [_, rows, _]) = (&input[..], &weights[..]) else {
            return Trouble::new("a recurrent layer of other than three axes");
        };
        let ranges = [steps.clone(), batch.clone(), rows.clone()];
        let at = self.shared.generic(&ranges);
        let sum = self.regardless(|m| {
            let products = m.sum_over(size, &mut |m, k| {
                let element = m.at(x, &[at[0].clone(), at[1].clone(), k.clone()])?;
                let weight = m.at(w, &[Poly::number(number), at[2].clone(), k.clone()])?;
                product(&element, &weight, &m.shared.facts)
            })?;
            let sum = products.add(&m.bias_at(bias, number, at[2].clone())?);
            m.simplifier.sum(&sum, &m.shared.facts)
        })?;
        Ok((ranges, canonical(&sum)))
    }

    /// The element of the bias of a direction, which is 0 if there is none.
    fn bias_at(&mut self, bias: Option<ValueId>, number: i64, row: Poly) -> Result<Sum, Trouble> {
        bias.map_or(Ok(Sum::default()), |bias| self.at(bias, &[Poly::number(number), row]))
    }
}
