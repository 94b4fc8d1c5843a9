//! Copies of elementwise operators that act on a part of what they acted on.

use regraft_ir::ops::slice::Slice;
use regraft_ir::{Dim, Op, PatchValue, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Builder, Refusal};
use crate::elementwise::Region;
use crate::rule::Var;

impl Builder<'_> {
    /// The operators of `function`, on a value that holds the indices `from` to before `to` of
    /// their axis.
    pub(super) fn apply(&mut self, function: Var, operand: PatchValue, [from, to]: [Dim; 2]) -> Result<PatchValue, Refusal> {
        let region = self.env[function].as_ref().and_then(|value| Region::of(self.graph, value));
        let region = region.ok_or_else(|| Refusal::Type("`apply` of something that is not elementwise".into()))?;
        let mut made: FxHashMap<ValueId, PatchValue> = FxHashMap::default();
        made.insert(region.operand, operand);
        for id in &region.nodes {
            let mut inputs = SmallVec::new();
            for input in self.graph.inputs(*id) {
                inputs.push(match made.get(input) {
                    Some(value) => *value,
                    None => self.part(&region, *input, &from, &to)?,
                });
            }
            let value = self.node(self.graph.op(*id).clone(), inputs)?[0];
            made.insert(id.out(), value);
        }
        Ok(made[&region.result])
    }

    /// What a constant of the region is at these indices.
    fn part(&mut self, region: &Region, constant: ValueId, from: &Dim, to: &Dim) -> Result<PatchValue, Refusal> {
        let whole = PatchValue::Old(constant);
        let Some(axis) = region.cut(self.graph, constant) else { return Ok(whole) };
        if from.is(0) && self.graph.ty(constant).is_some_and(|ty| ty.shape[axis] == *to) {
            return Ok(whole);
        }
        let slice = Slice { axes: vec![axis as i64], starts: vec![from.clone()], ends: vec![to.clone()], steps: vec![1] };
        Ok(self.node(Op::Slice(slice), SmallVec::from_iter([whole]))?[0])
    }
}
