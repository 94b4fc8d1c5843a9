//! Elementwise operators of random instances.

use regraft_ir::{DType, Dim, OpKind, ValueId};

use super::sampler::Sampler;
use crate::elementwise::Region;
use crate::expr::{Expr, Val};
use crate::operator::operator;
use crate::rule::{Operand, Pattern, Values, Var};

impl Sampler<'_> {
    /// A function of what `inner` matches: one operator, a bias before one, one that reads its
    /// operand twice, or a number times one; constants are numbers or vary along the axis.
    pub(super) fn elementwise(&mut self, function: Var, axis: &Expr, inner: &Pattern) -> Result<ValueId, String> {
        let x = self.build(inner)?;
        let axis = self.eval(axis)?.as_int().ok_or("an axis is a number")?;
        let value = match self.choices.below(4) {
            0 => self.operator(OpKind::Relu, &[x])?,
            1 => {
                let bias = self.along(x, axis)?;
                let shifted = self.operator(OpKind::Add, &[x, bias])?;
                self.operator(OpKind::Relu, &[shifted])?
            }
            2 => {
                let bias = self.along(x, axis)?;
                let shifted = self.operator(OpKind::Add, &[bias, x])?;
                let gate = self.operator(OpKind::Sigmoid, &[shifted])?;
                self.operator(OpKind::Mul, &[shifted, gate])?
            }
            _ => {
                let number = self.constant(vec![Dim::from(1)])?;
                let scaled = self.operator(OpKind::Mul, &[x, number])?;
                self.operator(OpKind::Erf, &[scaled])?
            }
        };
        let region = Region::above(&self.graph, value, axis).ok_or("the operand is elementwise itself")?;
        self.env[function] = Some(region.value());
        Ok(value)
    }

    fn operator(&mut self, kind: OpKind, operands: &[ValueId]) -> Result<ValueId, String> {
        let op = operator(kind, Vec::new()).map_err(|e| e.to_string())?;
        self.graph.add(op, operands).map(|id| id.out()).map_err(|e| e.to_string())
    }

    /// A constant that varies along one axis of `x` only.
    fn along(&mut self, x: ValueId, axis: i64) -> Result<ValueId, String> {
        let ty = self.graph.ty(x).ok_or("unknown type")?;
        let axis = if axis < 0 { axis + ty.rank() as i64 } else { axis } as usize;
        let size = ty.shape.get(axis).cloned().ok_or("no such axis")?;
        let ones = ty.rank() - axis - 1;
        self.constant(std::iter::once(size).chain(std::iter::repeat_n(Dim::from(1), ones)).collect())
    }

    fn constant(&mut self, shape: Vec<Dim>) -> Result<ValueId, String> {
        let shape = shape.into_iter().map(|size| Expr::Literal(Val::Dim(size))).collect();
        match self.operand(&Operand::Tensor { constant: true, shape, values: Values::Normal, dtype: DType::F32 })? {
            Val::Value(regraft_ir::PatchValue::Old(value)) => Ok(value),
            _ => Err("a constant is a tensor".into()),
        }
    }
}
