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
    /// their axis; if that is `shifted` already, without the first addition of a constant.
    pub(super) fn apply(&mut self, function: Var, operand: PatchValue, part: &[Dim; 2], shifted: bool) -> Result<PatchValue, Refusal> {
        let region = self.region(function)?;
        let mut made: FxHashMap<ValueId, PatchValue> = FxHashMap::default();
        made.insert(region.operand, operand);
        if shifted && let Some((first, _)) = region.shift(self.graph) {
            made.insert(first.out(), operand);
        }
        for id in &region.nodes {
            if made.contains_key(&id.out()) {
                continue;
            }
            let mut inputs = SmallVec::new();
            for input in self.graph.inputs(*id) {
                inputs.push(match made.get(input) {
                    Some(value) => *value,
                    None => self.part_of(&region, *input, part)?,
                });
            }
            let value = self.node(self.graph.op(*id).clone(), inputs)?[0];
            made.insert(id.out(), value);
        }
        Ok(made[&region.result])
    }

    /// What `function` adds to its operand first, at these indices.
    pub(super) fn shift(&mut self, function: Var, part: &[Dim; 2]) -> Result<PatchValue, Refusal> {
        let region = self.region(function)?;
        let (_, constant) =
            region.shift(self.graph).ok_or_else(|| Refusal::Type("`shift` of a function that adds nothing first".into()))?;
        self.part_of(&region, constant, part)
    }

    fn region(&self, function: Var) -> Result<Region, Refusal> {
        let region = self.env[function].as_ref().and_then(|value| Region::of(self.graph, value));
        region.ok_or_else(|| Refusal::Type("something that is not elementwise is used as a function".into()))
    }

    /// What a constant of the region is at these indices.
    fn part_of(&mut self, region: &Region, constant: ValueId, [from, to]: &[Dim; 2]) -> Result<PatchValue, Refusal> {
        let whole = PatchValue::Old(constant);
        let Some(axis) = region.cut(self.graph, constant) else { return Ok(whole) };
        if from.is(0) && self.graph.ty(constant).is_some_and(|ty| ty.shape[axis] == *to) {
            return Ok(whole);
        }
        let slice = Slice { axes: vec![axis as i64], starts: vec![from.clone()], ends: vec![to.clone()], steps: vec![1] };
        Ok(self.node(Op::Slice(slice), SmallVec::from_iter([whole]))?[0])
    }
}
