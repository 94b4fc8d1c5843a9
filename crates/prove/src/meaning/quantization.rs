//! Quantization: integers that stand for reals.

use regraft_ir::{DType, NodeId, Op, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::meaning::integer::integer;
use crate::value::{Sum, Trouble, product};

impl Meaning<'_> {
    /// The element, if the operator makes integers of reals or the other way round.
    ///
    /// What rounds is a function of an element, its scale and its zero point. Products that are
    /// rounded in the same operator are not looked into.
    pub(super) fn quantization(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = value.node;
        let op = self.graph.node(node).op.clone();
        Ok(Some(match &op {
            Op::QuantizeLinear(op) => {
                let [x, scale, zero] = self.with_parameters(node, op.axis, op.block_size, index)?;
                integer("quantized", &[x, scale, zero], op.output_dtype)
            }
            Op::DequantizeLinear(op) => {
                let [x, scale, zero] = self.with_parameters(node, op.axis, op.block_size, index)?;
                // Single precision holds differences of all narrower types.
                let from = self.ty(self.operand(node, 0)?)?.dtype;
                let difference = self.cast(from, DType::F32, x.sub(&zero))?;
                product(&difference, &scale, &self.shared.facts)?
            }
            _ => return Ok(None),
        }))
    }

    /// The element of the first operand, its scale, and its zero point.
    fn with_parameters(&mut self, node: NodeId, axis: Option<i64>, block: Option<i64>, index: &[Poly]) -> Result<[Sum; 3], Trouble> {
        let along = axis.and_then(|axis| usize::try_from(axis).ok());
        let parameter = |m: &mut Self, at: ValueId| {
            let place = match (along, block) {
                (None, _) => vec![Poly::default(); m.shape(at)?.len()],
                (Some(along), None) => vec![index[along].clone()],
                (Some(along), Some(size)) => {
                    let mut place = index.to_vec();
                    place[along] = m.floor(&index[along], &Poly::number(size));
                    place
                }
            };
            m.at(at, &place)
        };
        let (x, scale) = (self.operand(node, 0)?, self.operand(node, 1)?);
        let zero = match self.operands(node).get(2).copied() {
            Some(zero) => parameter(self, zero)?,
            None => Sum::default(),
        };
        Ok([self.at(x, index)?, parameter(self, scale)?, zero])
    }

    /// The element of a factor of a product: less its zero point, if the node's operands 2 and 3
    /// are those of its first two.
    pub(super) fn factor(&mut self, node: NodeId, at: usize, index: &[Poly]) -> Result<Sum, Trouble> {
        let factor = self.operand(node, at)?;
        let element = self.at(factor, index)?;
        if !matches!(self.graph.node(node).op, Op::MatMulInteger(_) | Op::ConvInteger(_)) {
            return Ok(element);
        }
        let Some(zero) = self.operands(node).get(2 + at).copied() else { return Ok(element) };
        let shape = self.shape(factor)?;
        Ok(element.sub(&self.broadcast(zero, &shape, index)?))
    }
}
