//! Normalizations, by their definitions.

use regraft_ir::{Op, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::meaning::definedness::Sign;
use crate::value::{Function, Sum, Trouble, apply, power, product, whole};

impl Meaning<'_> {
    /// The element, if the operator normalizes.
    pub(super) fn normalization(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = value.node;
        let op = self.graph.node(node).op.clone();
        Ok(Some(match &op {
            Op::Softmax(op) => {
                let total = self.exponentials(value, op.axis, index)?;
                let facts = &self.shared.facts;
                product(&apply(Function::Exp, vec![total.0], facts)?, &power(&total.1, -1, facts)?, facts)?
            }
            Op::LogSoftmax(op) => {
                let (x, total) = self.exponentials(value, op.axis, index)?;
                x.sub(&apply(Function::Named("log".into()), vec![total], &self.shared.facts)?)
            }
            Op::BatchNormalization(op) => {
                let x = self.operand(node, 0)?;
                let x = self.at(x, index)?;
                let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|at| self.operand(node, at));
                let channel = std::slice::from_ref(&index[1]);
                let (scale, bias) = (self.at(scale?, channel)?, self.at(bias?, channel)?);
                let (mean, variance) = (self.at(mean?, channel)?, self.at(variance?, channel)?);
                let radicand = variance.add(&self.attribute(op.epsilon.0)?);
                self.require_positive(&radicand, false);
                self.normalized(&x, &mean, &variance, op.epsilon.0, &scale, &bias)?
            }
            Op::InstanceNormalization(op) => {
                let axes: Vec<usize> = (2..index.len()).collect();
                let channel = index[1].clone();
                self.by_moments(value, &axes, None, op.epsilon.0, index, &mut |m, operand| m.at(operand, std::slice::from_ref(&channel)))?
            }
            Op::LayerNormalization(op) => {
                let first = usize::try_from(op.axis).unwrap_or(0);
                let axes: Vec<usize> = (first..index.len()).collect();
                let shape = self.shape(value)?;
                let own = index.to_vec();
                self.by_moments(value, &axes, None, op.epsilon.0, index, &mut |m, operand| m.broadcast(operand, &shape, &own))?
            }
            Op::RMSNormalization(op) => {
                let first = usize::try_from(op.axis).unwrap_or(0);
                let (x, scale) = (self.operand(node, 0)?, self.operand(node, 1)?);
                let shape = self.shape(value)?;
                let extents = shape[first..].to_vec();
                let squares = self.sum_over_all(&extents, &mut |m, inner| {
                    let at: Vec<Poly> = index[..first].iter().chain(inner).cloned().collect();
                    power(&m.at(x, &at)?, 2, &m.shared.facts)
                })?;
                let count = extents.iter().fold(Poly::number(1), |count, extent| count.mul(extent));
                let scale = self.broadcast(scale, &shape, index)?;
                let x = self.at(x, index)?;
                let mean = product(&squares, &power(&Sum::whole(&count), -1, &self.shared.facts)?, &self.shared.facts)?;
                let mean = self.simplifier.sum(&mean, &self.shared.facts)?;
                let radicand = mean.add(&self.attribute(op.epsilon.0)?);
                self.require_nonnegative(&radicand, op.epsilon.0 >= 0.0);
                self.require_nonzero(&radicand, op.epsilon.0 > 0.0);
                self.normalized(&x, &Sum::default(), &mean, op.epsilon.0, &scale, &Sum::default())?
            }
            Op::GroupNormalization(op) => {
                let axes: Vec<usize> = (1..index.len()).collect();
                let channel = index[1].clone();
                let groups = Poly::number(op.num_groups);
                self.by_moments(value, &axes, Some(groups), op.epsilon.0, index, &mut |m, operand| {
                    m.at(operand, std::slice::from_ref(&channel))
                })?
            }
            Op::LRN(op) => {
                let x = self.operand(node, 0)?;
                let channels = self.shape(x)?[1].clone();
                let before = (op.size - 1).div_euclid(2);
                let squares = self.sum_over(&Poly::number(op.size), &mut |m, tap| {
                    let mut at = index.to_vec();
                    at[1] = index[1].add(tap).plus(-before);
                    let conditions = vec![at[1].clone(), channels.plus(-1).sub(&at[1])];
                    m.where_inside(conditions, |m| power(&m.at(x, &at)?, 2, &m.shared.facts))
                })?;
                let weight = self.attribute(op.alpha.0)?.scale(&whole(op.size).recip());
                let inside = self.attribute(op.bias.0)?.add(&product(&weight, &squares, &self.shared.facts)?);
                let exponent = self.attribute(op.beta.0)?;
                self.require_power(&inside, &exponent.negated(), Sign::Unknown);
                let divisor = self.to_power(&inside, &exponent)?;
                let x = self.at(x, index)?;
                product(&x, &power(&divisor, -1, &self.shared.facts)?, &self.shared.facts)?
            }
            _ => return Ok(None),
        }))
    }

    /// The operand's element, and the sum of all exponentials along the axis.
    fn exponentials(&mut self, value: ValueId, axis: i64, index: &[Poly]) -> Result<(Sum, Sum), Trouble> {
        let x = self.operand(value.node, 0)?;
        let axis = usize::try_from(axis).unwrap_or(0);
        let extent = self.shape(x)?[axis].clone();
        let total = self.sum_over(&extent, &mut |m, i| {
            let mut at = index.to_vec();
            at[axis] = i.clone();
            let x = m.at(x, &at)?;
            apply(Function::Exp, vec![x], &m.shared.facts)
        })?;
        Ok((self.at(x, index)?, self.simplifier.sum(&total, &self.shared.facts)?))
    }

    /// `(x - mean) / sqrt(variance + epsilon) * scale + bias`
    fn normalized(&self, x: &Sum, mean: &Sum, variance: &Sum, epsilon: f64, scale: &Sum, bias: &Sum) -> Result<Sum, Trouble> {
        let variance = variance.add(&self.attribute(epsilon)?);
        let facts = &self.shared.facts;
        let deviation = apply(Function::Sqrt, vec![variance], facts)?;
        let unit = product(&x.sub(mean), &power(&deviation, -1, facts)?, facts)?;
        Ok(product(&unit, scale, facts)?.add(bias))
    }

    /// Normalizes by mean and variance over `axes`; with `groups`, over blocks of channels and all
    /// axes after them.
    fn by_moments(
        &mut self,
        value: ValueId,
        axes: &[usize],
        groups: Option<Poly>,
        epsilon: f64,
        index: &[Poly],
        parameter: &mut dyn FnMut(&mut Self, ValueId) -> Result<Sum, Trouble>,
    ) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let mut extents = self.shape(x)?;
        let mut first = Poly::default();
        if let Some(groups) = groups {
            let size = extents[1].exact(&groups).ok_or_else(|| Trouble("groups that do not divide the channels".into()))?;
            first = self.floor(&index[1], &size).mul(&size);
            extents[1] = size;
        }
        let extents: Vec<Poly> = axes.iter().map(|axis| extents[*axis].clone()).collect();
        let moment = |m: &mut Self, exponent: i32| {
            m.sum_over_all(&extents, &mut |m, inner| {
                let mut at = index.to_vec();
                for (axis, i) in axes.iter().zip(inner) {
                    at[*axis] = if *axis == 1 { first.add(i) } else { i.clone() };
                }
                power(&m.at(x, &at)?, exponent, &m.shared.facts)
            })
        };
        let (sum, squares) = (moment(self, 1)?, moment(self, 2)?);
        let count = extents.iter().fold(Poly::number(1), |count, extent| count.mul(extent));
        let facts = self.shared.facts.clone();
        let share = power(&Sum::whole(&count), -1, &facts)?;
        let mean = self.simplifier.sum(&product(&sum, &share, &facts)?, &facts)?;
        let variance = product(&squares, &share, &facts)?.sub(&product(&mean, &mean, &facts)?);
        // The mean of the squares minus the square of the mean, which is not negative.
        let radicand = self.simplifier.sum(&variance.add(&self.attribute(epsilon)?), &facts)?;
        self.require_nonnegative(&radicand, epsilon >= 0.0);
        self.require_nonzero(&radicand, epsilon > 0.0);
        let element = self.at(x, index)?;
        let scale = self.operand(value.node, 1)?;
        let scale = parameter(self, scale)?;
        let bias = match self.operands(value.node).get(2).copied() {
            Some(bias) => parameter(self, bias)?,
            None => Sum::default(),
        };
        self.normalized(&element, &mean, &variance, epsilon, &scale, &bias)
    }
}
