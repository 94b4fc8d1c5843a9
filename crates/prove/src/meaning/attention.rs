//! Attention, and the rotation of queries and keys, by their definitions.

use regraft_ir::ValueId;
use regraft_ir::ops::attention::MultiHeadAttention;
use regraft_ir::ops::rotary_embedding::RotaryEmbedding;

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::value::{Function, Sum, Trouble, apply, power, product};

impl Meaning<'_> {
    /// The sum over all keys of exponentials times values, by the sum of exponentials: as MatMul
    /// and Softmax are read, one after the other.
    pub(super) fn attention(&mut self, value: ValueId, op: &MultiHeadAttention, index: &[Poly]) -> Result<Sum, Trouble> {
        let node = value.node;
        let (keys, values) = (self.operand(node, 1)?, self.operand(node, 2)?);
        let [batch, row, column] = index else { return Trouble::new("attention of other than three axes") };
        let (key_shape, value_shape) = (self.shape(keys)?, self.shape(values)?);
        let heads = Poly::number(op.num_heads);
        let whole = |size: &Poly| size.exact(&heads).ok_or_else(|| Trouble("heads that do not divide the width".into()));
        let (size, out) = (whole(&key_shape[2])?, whole(&value_shape[2])?);
        let head = self.floor(column, &out);
        let count = key_shape[1].clone();
        let total = self.sum_over(&count, &mut |m, key| m.exponential(value, op, (batch, row, key), (&head, &size)))?;
        let total = self.simplifier.sum(&total, &self.shared.facts)?;
        let inverse = power(&total, -1, &self.shared.facts)?;
        self.sum_over(&count, &mut |m, key| {
            let weight = m.exponential(value, op, (batch, row, key), (&head, &size))?;
            let weight = product(&weight, &inverse, &m.shared.facts)?;
            let element = m.at(values, &[batch.clone(), key.clone(), column.clone()])?;
            product(&weight, &element, &m.shared.facts)
        })
    }

    /// The exponential for a query and a key.
    fn exponential(
        &mut self,
        value: ValueId,
        op: &MultiHeadAttention,
        (batch, row, key): (&Poly, &Poly, &Poly),
        (head, size): (&Poly, &Poly),
    ) -> Result<Sum, Trouble> {
        let node = value.node;
        let (queries, keys) = (self.operand(node, 0)?, self.operand(node, 1)?);
        let products = self.sum_over(size, &mut |m, e| {
            let at = head.mul(size).add(e);
            let query = m.at(queries, &[batch.clone(), row.clone(), at.clone()])?;
            let key = m.at(keys, &[batch.clone(), key.clone(), at])?;
            product(&query, &key, &m.shared.facts)
        })?;
        let mut exponent = product(&self.attribute(op.scale.0)?, &products, &self.shared.facts)?;
        if let Some(bias) = self.operands(node).get(3).copied() {
            let shape = self.shape(bias)?;
            let full = [batch, head, row, key];
            let at: Vec<Poly> =
                full.iter().zip(&shape).map(|(at, size)| if size.known() == Some(1) { Poly::default() } else { (*at).clone() }).collect();
            exponent = exponent.add(&self.at(bias, &at)?);
        }
        let exponent = self.simplifier.sum(&exponent, &self.shared.facts)?;
        apply(Function::Exp, vec![exponent], &self.shared.facts)
    }

    /// Where an element is the first of a pair, the second, or stays, what becomes of it.
    pub(super) fn rotated(&mut self, value: ValueId, op: &RotaryEmbedding, index: &[Poly]) -> Result<Sum, Trouble> {
        let node = value.node;
        let [x, cosines, sines] = [0, 1, 2].map(|at| self.operand(node, at));
        let (x, cosines, sines) = (x?, cosines?, sines?);
        let shape = self.shape(x)?;
        let (Some(column), Some(width)) = (index.last(), shape.last()) else { return Trouble::new("a rotated scalar") };
        let (row, start) = if op.num_heads == 0 {
            (index[2].clone(), Poly::default())
        } else {
            let size = width.exact(&Poly::number(op.num_heads)).ok_or_else(|| Trouble("heads that do not divide the width".into()))?;
            (index[1].clone(), self.floor(column, &size).mul(&size))
        };
        let (within, rotated) = (column.sub(&start), op.rotary_embedding_dim);
        let half = rotated / 2;
        let (inside, outside) = (within.scale(-1).plus(rotated - 1), within.plus(-rotated));
        let [first, second] = if op.interleaved {
            let pair = self.floor(&within, &Poly::number(2));
            let odd = within.sub(&pair.scale(2));
            [(odd.scale(-1), pair.clone(), 1), (odd.plus(-1), pair, -1)]
        } else {
            [(within.scale(-1).plus(half - 1), within.clone(), half), (within.plus(-half), within.plus(-half), -half)]
        };
        let mut sum = self.where_inside(vec![outside], |m| m.at(x, index))?;
        for (condition, pair, distance) in [first, second] {
            sum = sum.add(&self.where_inside(vec![inside.clone(), condition], |m| {
                let angle = [index[0].clone(), row.clone(), pair.clone()];
                let mut partner = index.to_vec();
                partner.pop();
                partner.push(column.plus(distance));
                let own = product(&m.at(x, index)?, &m.at(cosines, &angle)?, &m.shared.facts)?;
                let other = product(&m.at(x, &partner)?, &m.at(sines, &angle)?, &m.shared.facts)?;
                Ok(if distance > 0 { own.sub(&other) } else { own.add(&other) })
            })?);
        }
        Ok(sum)
    }
}
