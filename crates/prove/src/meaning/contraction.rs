//! Sums of products: matrix products, convolutions, Einstein sums.

use regraft_ir::ops::conv::Conv;
use regraft_ir::{NodeId, Op, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::value::{Sum, Trouble, product};

impl Meaning<'_> {
    /// The element, if the operator multiplies and sums.
    pub(super) fn contraction(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = value.node;
        let op = self.graph.node(node).op.clone();
        Ok(Some(match &op {
            Op::MatMul(_) | Op::MatMulInteger(_) => self.matmul(value, index)?,
            Op::Gemm(op) => {
                let (a, b) = (self.operand(node, 0)?, self.operand(node, 1)?);
                let inner = self.shape(a)?[usize::from(!op.trans_a)].clone();
                let (row, column) = (index[0].clone(), index[1].clone());
                let (trans_a, trans_b) = (op.trans_a, op.trans_b);
                let sum = self.sum_over(&inner, &mut |m, k| {
                    let left = if trans_a { [k.clone(), row.clone()] } else { [row.clone(), k.clone()] };
                    let right = if trans_b { [column.clone(), k.clone()] } else { [k.clone(), column.clone()] };
                    let (left, right) = (m.at(a, &left)?, m.at(b, &right)?);
                    product(&left, &right, &m.shared.facts)
                })?;
                let scaled = product(&self.attribute(op.alpha.0)?, &sum, &self.shared.facts)?;
                match self.operands(node).get(2).copied() {
                    Some(c) => {
                        let shape = self.shape(value)?;
                        let c = self.broadcast(c, &shape, index)?;
                        scaled.add(&product(&self.attribute(op.beta.0)?, &c, &self.shared.facts)?)
                    }
                    None => scaled,
                }
            }
            Op::Conv(op) => {
                let sum = self.convolution(node, op, index)?;
                self.biased(node, sum, &index[1])?
            }
            Op::ConvInteger(op) => self.convolution(node, &op.conv(), index)?,
            Op::ConvTranspose(op) => {
                let (x, w) = (self.operand(node, 0)?, self.operand(node, 1)?);
                let (image, kernel) = (self.shape(x)?, self.shape(w)?);
                let groups = Poly::number(op.group);
                let rows = kernel[0].exact(&groups).ok_or_else(|| Trouble("groups that do not divide the channels".into()))?;
                let group = self.group_of(&index[1], &kernel[1], op.group);
                let column = index[1].sub(&group.mul(&kernel[1]));
                let (strides, dilations, pads) = (op.strides.clone(), op.dilations.clone(), op.pads.clone());
                // Positions of the image and taps with stride * position + dilation * tap - pad =
                // index.
                let mut extents = vec![rows.clone()];
                extents.extend(image[2..].iter().cloned());
                extents.extend(kernel[2..].iter().cloned());
                let spatial = strides.len();
                let sum = self.sum_over_all(&extents, &mut |m, vars| {
                    let channel = group.mul(&rows).add(&vars[0]);
                    let (positions, taps) = (&vars[1..=spatial], &vars[1 + spatial..]);
                    let mut conditions = Vec::new();
                    for axis in 0..spatial {
                        let hit = positions[axis].scale(strides[axis]).add(&taps[axis].scale(dilations[axis])).plus(-pads[axis]);
                        let miss = index[2 + axis].sub(&hit);
                        conditions.extend([miss.clone(), miss.scale(-1)]);
                    }
                    let at: Vec<Poly> = [index[0].clone(), channel.clone()].into_iter().chain(positions.iter().cloned()).collect();
                    let weight: Vec<Poly> = [channel, column.clone()].into_iter().chain(taps.iter().cloned()).collect();
                    m.where_inside(conditions, |m| {
                        let (element, weight) = (m.at(x, &at)?, m.at(w, &weight)?);
                        product(&element, &weight, &m.shared.facts)
                    })
                })?;
                self.biased(node, sum, &index[1])?
            }
            Op::Einsum(op) => {
                let equation = op.equation.clone();
                let Some((operands, result)) = equation.split_once("->") else { return Ok(None) };
                self.einsum(value, operands, result, index)?
            }
            Op::MultiHeadAttention(op) => self.attention(value, &op.clone(), index)?,
            Op::RotaryEmbedding(op) => self.rotated(value, &op.clone(), index)?,
            Op::Resize(op) => self.resampled(value, &op.clone(), index)?,
            _ => return Ok(None),
        }))
    }

    /// The sum of a convolution of the node's first two operands.
    fn convolution(&mut self, node: NodeId, op: &Conv, index: &[Poly]) -> Result<Sum, Trouble> {
        let (x, w) = (self.operand(node, 0)?, self.operand(node, 1)?);
        let (image, kernel) = (self.shape(x)?, self.shape(w)?);
        let groups = Poly::number(op.group);
        let per_group = kernel[0].exact(&groups).ok_or_else(|| Trouble("groups that do not divide the channels".into()))?;
        let group = self.group_of(&index[1], &per_group, op.group);
        let (strides, dilations, pads) = (op.strides.clone(), op.dilations.clone(), op.pads.clone());
        self.sum_over_all(&kernel[1..], &mut |m, taps| {
            let mut at = vec![index[0].clone(), group.mul(&kernel[1]).add(&taps[0])];
            let mut conditions = Vec::new();
            for axis in 0..strides.len() {
                let position = index[2 + axis].scale(strides[axis]).add(&taps[1 + axis].scale(dilations[axis])).plus(-pads[axis]);
                conditions.extend([position.clone(), image[2 + axis].plus(-1).sub(&position)]);
                at.push(position);
            }
            let mut weight = vec![index[1].clone()];
            weight.extend(taps.iter().cloned());
            m.where_inside(conditions, |m| {
                let (element, weight) = (m.factor(node, 0, &at)?, m.factor(node, 1, &weight)?);
                product(&element, &weight, &m.shared.facts)
            })
        })
    }

    fn matmul(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let (a, b) = (self.operand(value.node, 0)?, self.operand(value.node, 1)?);
        let (left, right, shape) = (self.shape(a)?, self.shape(b)?, self.shape(value)?);
        let rank = index.len();
        let Some(inner) = left.last().cloned() else { return Trouble::new("a product of a scalar") };
        let outer = |m: &Self, own: &[Poly]| -> Vec<Poly> {
            let lead = own.len() - 2;
            (0..lead)
                .map(|axis| {
                    let to = rank - 2 - lead + axis;
                    if own[axis] == shape[to] { index[to].clone() } else { m.shared.facts.stretch(&index[to], &own[axis]) }
                })
                .collect()
        };
        let (left_outer, right_outer) = (outer(self, &left), outer(self, &right));
        let (row, column) = (index[rank - 2].clone(), index[rank - 1].clone());
        self.sum_over(&inner, &mut |m, k| {
            let at: Vec<Poly> = left_outer.iter().chain([&row, k]).cloned().collect();
            let by: Vec<Poly> = right_outer.iter().chain([k, &column]).cloned().collect();
            let (left, right) = (m.factor(value.node, 0, &at)?, m.factor(value.node, 1, &by)?);
            product(&left, &right, &m.shared.facts)
        })
    }

    fn einsum(&mut self, value: ValueId, operands: &str, result: &str, index: &[Poly]) -> Result<Sum, Trouble> {
        let values = self.operands(value.node);
        let mut sizes: Vec<(u8, Poly)> = Vec::new();
        for (labels, operand) in operands.split(',').zip(&values) {
            for (label, size) in labels.bytes().zip(self.shape(*operand)?) {
                if !sizes.iter().any(|(known, _)| *known == label) {
                    sizes.push((label, size));
                }
            }
        }
        let summed: Vec<(u8, Poly)> = sizes.into_iter().filter(|(label, _)| !result.bytes().any(|r| r == *label)).collect();
        let extents: Vec<Poly> = summed.iter().map(|(_, size)| size.clone()).collect();
        self.sum_over_all(&extents, &mut |m, vars| {
            let position = |label: u8| {
                let outer = result.bytes().position(|r| r == label).map(|at| index[at].clone());
                outer.or_else(|| summed.iter().position(|(s, _)| *s == label).map(|at| vars[at].clone())).unwrap_or_default()
            };
            let mut sum = Sum::one();
            for (labels, operand) in operands.split(',').zip(&values) {
                let at: Vec<Poly> = labels.bytes().map(position).collect();
                sum = product(&sum, &m.at(*operand, &at)?, &m.shared.facts)?;
            }
            Ok(sum)
        })
    }

    /// The sum of `body` where the conditions hold; those that always hold are dropped.
    pub(super) fn where_inside(
        &mut self,
        conditions: Vec<Poly>,
        body: impl FnOnce(&mut Self) -> Result<Sum, Trouble>,
    ) -> Result<Sum, Trouble> {
        if conditions.iter().any(|c| self.never(c)) {
            return Ok(Sum::default());
        }
        conditions.iter().try_for_each(|c| self.decided(c))?;
        let open: Vec<Poly> = conditions.into_iter().filter(|c| !self.shared.facts.nonnegative(c)).collect();
        let met = self.met();
        let body = body(self)?;
        self.met_under(met, &[], &open);
        Ok(open.iter().fold(body, |sum, c| sum.only_where(c)))
    }

    /// A convolution's sum with its bias, if it has one.
    fn biased(&mut self, node: NodeId, sum: Sum, channel: &Poly) -> Result<Sum, Trouble> {
        match self.operands(node).get(2).copied() {
            Some(bias) => Ok(sum.add(&self.at(bias, std::slice::from_ref(channel))?)),
            None => Ok(sum),
        }
    }

    /// The group of a channel, where each of `count` groups has `size` channels.
    fn group_of(&self, channel: &Poly, size: &Poly, count: i64) -> Poly {
        if count == 1 { Poly::default() } else { self.floor(channel, size) }
    }
}
