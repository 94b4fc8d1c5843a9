//! Reductions along axes, and pools.

use regraft_ir::{Class, Op, ValueId};

use crate::index::{Poly, Var};
use crate::meaning::Meaning;
use crate::meaning::definedness::Sign;
use crate::value::{Fold, Function, Sum, Trouble, apply, over, power, product};

/// The window of a pool along each spatial axis.
struct Window<'a> {
    kernel: &'a [i64],
    strides: &'a [i64],
    pads: &'a [i64],
    dilations: &'a [i64],
}

impl Meaning<'_> {
    /// The element, if the operator reduces axes or windows.
    pub(super) fn reduction(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = value.node;
        let op = self.graph.node(node).op.clone();
        let facts = |m: &Self| m.shared.facts.clone();
        Ok(Some(match &op {
            Op::CumSum(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                let x = self.operand(node, 0)?;
                let extent = self.shape(x)?[axis].clone();
                self.sum_over(&extent, &mut |m, i| {
                    let before = if op.reverse { i.sub(&index[axis]) } else { index[axis].sub(i) };
                    let mut at = index.to_vec();
                    at[axis] = i.clone();
                    m.where_inside(vec![before.plus(-i64::from(op.exclusive))], |m| m.at(x, &at))
                })?
            }
            Op::ReduceSum(op) => self.reduce(value, &op.axes, op.keepdims, index, &|_, x| Ok(x))?,
            Op::ReduceMean(op) => {
                let sum = self.reduce(value, &op.axes, op.keepdims, index, &|_, x| Ok(x))?;
                let shape = self.shape(self.operand(node, 0)?)?;
                let count = op.axes.iter().fold(Poly::number(1), |count, axis| count.mul(&shape[*axis as usize]));
                let dtype = self.ty(value)?.dtype;
                if dtype.class() == Class::Int {
                    return self.whole_mean(&sum, &count, dtype).map(Some);
                }
                product(&sum, &power(&Sum::whole(&count), -1, &facts(self))?, &facts(self))?
            }
            Op::ReduceSumSquare(op) => self.reduce(value, &op.axes, op.keepdims, index, &|m, x| power(&x, 2, &m.shared.facts))?,
            Op::ReduceL1(op) => {
                let magnitude = |m: &Self, x: Sum| apply(Function::Max, vec![x.negated(), x], &m.shared.facts);
                self.reduce(value, &op.axes, op.keepdims, index, &magnitude)?
            }
            Op::ReduceL2(op) => {
                let squares = self.reduce(value, &op.axes, op.keepdims, index, &|m, x| power(&x, 2, &m.shared.facts))?;
                apply(Function::Sqrt, vec![squares], &facts(self))?
            }
            Op::ReduceLogSum(op) => {
                let sum = self.reduce(value, &op.axes, op.keepdims, index, &|_, x| Ok(x))?;
                let x = self.operand(node, 0)?;
                let positive = self.sign(x) == Sign::Positive;
                self.require_positive(&sum, positive);
                apply(Function::Named("log".into()), vec![sum], &facts(self))?
            }
            Op::ReduceLogSumExp(op) => {
                let exponential = |m: &Self, x: Sum| apply(Function::Exp, vec![x], &m.shared.facts);
                let sum = self.reduce(value, &op.axes, op.keepdims, index, &exponential)?;
                apply(Function::Named("log".into()), vec![sum], &facts(self))?
            }
            Op::ReduceMax(op) => self.fold(value, Fold::Max, &op.axes, op.keepdims, index, false)?,
            Op::ReduceMin(op) => self.fold(value, Fold::Max, &op.axes, op.keepdims, index, true)?.negated(),
            Op::ReduceProd(op) => self.fold(value, Fold::Product, &op.axes, op.keepdims, index, false)?,
            Op::GlobalAveragePool(_) => {
                let axes: Vec<i64> = (2..index.len() as i64).collect();
                let sum = self.reduce(value, &axes, true, index, &|_, x| Ok(x))?;
                let shape = self.shape(self.operand(node, 0)?)?;
                let count = shape[2..].iter().fold(Poly::number(1), |count, size| count.mul(size));
                product(&sum, &power(&Sum::whole(&count), -1, &facts(self))?, &facts(self))?
            }
            Op::GlobalMaxPool(_) => {
                let axes: Vec<i64> = (2..index.len() as i64).collect();
                self.fold(value, Fold::Max, &axes, true, index, false)?
            }
            Op::MaxPool(op) => {
                let window = Window { kernel: &op.kernel, strides: &op.strides, pads: &op.pads, dilations: &op.dilations };
                self.max_pool(value, &window, index)?
            }
            Op::AveragePool(op) => {
                let window = Window { kernel: &op.kernel, strides: &op.strides, pads: &op.pads, dilations: &op.dilations };
                self.average_pool(value, &window, op.count_include_pad, op.ceil_mode, index)?
            }
            _ => return Ok(None),
        }))
    }

    /// The index into the operand: from `index` where axes are kept, from `inner` where they are
    /// reduced.
    fn operand_index(rank: usize, axes: &[i64], keepdims: bool, index: &[Poly], inner: &[Poly]) -> Vec<Poly> {
        let (mut kept, mut reduced) = (0, 0);
        (0..rank)
            .map(|axis| {
                if axes.contains(&(axis as i64)) {
                    reduced += 1;
                    kept += usize::from(keepdims);
                    inner[reduced - 1].clone()
                } else {
                    kept += 1;
                    index[kept - 1].clone()
                }
            })
            .collect()
    }

    fn reduce(
        &mut self,
        value: ValueId,
        axes: &[i64],
        keepdims: bool,
        index: &[Poly],
        element: &dyn Fn(&Self, Sum) -> Result<Sum, Trouble>,
    ) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let shape = self.shape(x)?;
        let extents: Vec<Poly> = axes.iter().filter_map(|axis| shape.get(*axis as usize).cloned()).collect();
        self.sum_over_all(&extents, &mut |m, inner| {
            let at = Self::operand_index(shape.len(), axes, keepdims, index, inner);
            let x = m.at(x, &at)?;
            element(m, x)
        })
    }

    fn fold(&mut self, value: ValueId, fold: Fold, axes: &[i64], keepdims: bool, index: &[Poly], negate: bool) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let shape = self.shape(x)?;
        let extents: Vec<Poly> = axes.iter().filter_map(|axis| shape.get(*axis as usize).cloned()).collect();
        let vars: Vec<Var> = extents.iter().map(|extent| self.shared.variable(extent)).collect();
        let inner: Vec<Poly> = vars.iter().map(|var| Poly::var(*var)).collect();
        let binders: Vec<(Var, Poly)> = vars.into_iter().zip(extents).collect();
        let met = self.met();
        let body = self.at(x, &Self::operand_index(shape.len(), axes, keepdims, index, &inner))?;
        self.met_under(met, &binders, &[]);
        let body = if negate { body.negated() } else { body };
        over(fold, binders, Vec::new(), body, &self.shared.facts)
    }

    /// Positions that taps read, and the conditions that these lie inside.
    fn window(window: &Window<'_>, sizes: &[Poly], index: &[Poly], taps: &[Poly]) -> (Vec<Poly>, Vec<Poly>) {
        let mut at = index[..2].to_vec();
        let mut conditions = Vec::new();
        for axis in 0..window.kernel.len() {
            let position =
                index[2 + axis].scale(window.strides[axis]).add(&taps[axis].scale(window.dilations[axis])).plus(-window.pads[axis]);
            conditions.extend([position.clone(), sizes[2 + axis].plus(-1).sub(&position)]);
            at.push(position);
        }
        (at, conditions)
    }

    fn max_pool(&mut self, value: ValueId, window: &Window<'_>, index: &[Poly]) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let shape = self.shape(x)?;
        let extents: Vec<Poly> = window.kernel.iter().map(|k| Poly::number(*k)).collect();
        let vars: Vec<Var> = extents.iter().map(|extent| self.shared.variable(extent)).collect();
        let taps: Vec<Poly> = vars.iter().map(|var| Poly::var(*var)).collect();
        let (at, conditions) = Self::window(window, &shape, index, &taps);
        let mut open: Vec<Poly> = conditions.into_iter().filter(|c| !self.shared.facts.nonnegative(c)).collect();
        open.sort();
        open.dedup();
        let binders: Vec<(Var, Poly)> = vars.into_iter().zip(extents).collect();
        let met = self.met();
        let body = self.at(x, &at)?;
        self.met_under(met, &binders, &open);
        over(Fold::Max, binders, open, body, &self.shared.facts)
    }

    fn average_pool(
        &mut self,
        value: ValueId,
        window: &Window<'_>,
        include_pads: bool,
        ceil: bool,
        index: &[Poly],
    ) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let shape = self.shape(x)?;
        let rank = window.kernel.len();
        let extents: Vec<Poly> = window.kernel.iter().map(|k| Poly::number(*k)).collect();
        let sum = self.sum_over_all(&extents, &mut |m, taps| {
            let (at, conditions) = Self::window(window, &shape, index, taps);
            m.where_inside(conditions, |m| m.at(x, &at))
        })?;
        let padded = window.pads.iter().any(|p| *p != 0);
        let count = if (include_pads || !padded) && !ceil {
            Sum::whole(&window.kernel.iter().fold(Poly::number(1), |count, k| count.scale(*k)))
        } else {
            self.sum_over_all(&extents, &mut |m, taps| {
                let (at, conditions) = Self::window(window, &shape, index, taps);
                let conditions = if include_pads {
                    // Pads count; positions beyond them do not.
                    (0..rank)
                        .flat_map(|axis| {
                            let end = shape[2 + axis].plus(window.pads[rank + axis] - 1).sub(&at[2 + axis]);
                            [at[2 + axis].plus(window.pads[axis]), end]
                        })
                        .collect()
                } else {
                    conditions
                };
                m.where_inside(conditions, |_| Ok(Sum::one()))
            })?
        };
        let facts = &self.shared.facts;
        let count = self.simplifier.sum(&count, facts)?;
        product(&sum, &power(&count, -1, facts)?, facts)
    }
}
