//! `Region`: operators that act on each element of a value.

use regraft_ir::{Dim, NodeId, OpKind, PatchValue, ValueId, View};
use smallvec::SmallVec;

use crate::expr::Val;

/// The largest number of operators in a region.
pub(crate) const LARGEST: usize = 16;

/// All operators between a value and the only value that is no constant and that they are computed
/// from, each of which acts on every element in the same way, up to constants that vary along one
/// axis alone.
///
/// All values within have the shape of the result, so the region acts on a part of its operand as
/// it acts on the whole, if constants along the axis are cut with it.
pub(crate) struct Region {
    /// What the region computes.
    pub(crate) result: ValueId,
    /// What it is computed from.
    pub(crate) operand: ValueId,
    /// The axis along which constants may vary.
    pub(crate) axis: usize,
    /// The operators, operands first.
    pub(crate) nodes: SmallVec<[NodeId; 8]>,
}

impl Region {
    /// The largest region that computes `result`; `axis` may count from the end.
    pub(crate) fn above(graph: &dyn View, result: ValueId, axis: i64) -> Option<Region> {
        Region::between(graph, result, None, axis)
    }

    /// The region as the value of a variable.
    pub(crate) fn value(&self) -> Val {
        let value = |v| Val::Value(PatchValue::Old(v));
        Val::List(vec![value(self.result), value(self.operand), Val::int(self.axis as i64)])
    }

    /// The region that a variable stands for.
    pub(crate) fn of(graph: &dyn View, value: &Val) -> Option<Region> {
        match value.as_list()? {
            [Val::Value(PatchValue::Old(result)), Val::Value(PatchValue::Old(operand)), axis] => {
                Region::between(graph, *result, Some(*operand), axis.as_int()?)
            }
            _ => None,
        }
    }

    /// How a constant that the region reads is cut with its operand, as an axis of the constant;
    /// none if it is the same everywhere.
    pub(crate) fn cut(&self, graph: &dyn View, constant: ValueId) -> Option<usize> {
        let rank = graph.ty(self.result)?.rank();
        let own = graph.ty(constant)?;
        let axis = (self.axis + own.rank()).checked_sub(rank)?;
        own.shape.get(axis).filter(|size| !size.is(1)).map(|_| axis)
    }

    /// The node that adds a constant to the operand before anything else, if there is one, and that
    /// constant; one that is the same everywhere does not count.
    pub(crate) fn shift(&self, graph: &dyn View) -> Option<(NodeId, ValueId)> {
        let mut readers = self.nodes.iter().copied().filter(|id| graph.inputs(*id).contains(&self.operand));
        let (first, None) = (readers.next()?, readers.next()) else { return None };
        let constant = graph.inputs(first).iter().copied().find(|input| *input != self.operand)?;
        (graph.kind(first) == OpKind::Add && self.cut(graph, constant).is_some()).then_some((first, constant))
    }

    fn between(graph: &dyn View, result: ValueId, operand: Option<ValueId>, axis: i64) -> Option<Region> {
        let rank = graph.ty(result)?.rank() as i64;
        let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok().filter(|axis| *axis < rank as usize)?;
        let mut region = Region { result, operand: result, axis, nodes: SmallVec::new() };
        let (mut found, mut left) = (operand, LARGEST);
        region.collect(graph, result, &mut found, &mut left)?;
        region.operand = found?;
        (!region.nodes.is_empty()).then_some(region)
    }

    /// Adds what computes `value`, at most `left` operators; `operand` is the one value that may
    /// stay.
    fn collect(&mut self, graph: &dyn View, value: ValueId, operand: &mut Option<ValueId>, left: &mut usize) -> Option<()> {
        if *operand == Some(value) || self.nodes.contains(&value.node) {
            return Some(());
        }
        let shape = &graph.ty(self.result)?.shape;
        if graph.is_constant(value) {
            let own = graph.ty(value)?;
            let lead = shape.len().checked_sub(own.rank())?;
            let fits = |(at, size): (usize, &Dim)| size.is(1) || (at + lead == self.axis && *size == shape[self.axis]);
            return own.shape.iter().enumerate().all(fits).then_some(());
        }
        if graph.ty(value)?.shape != *shape {
            return None;
        }
        if !graph.kind(value.node).elementwise() {
            return operand.replace(value).is_none().then_some(());
        }
        *left = left.checked_sub(1)?;
        for input in graph.inputs(value.node) {
            self.collect(graph, *input, operand, left)?;
        }
        self.nodes.push(value.node);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::text;

    use super::*;

    /// Number of operators of the region above the output of a graph on `x: f32[2,3]`, if there is
    /// one.
    fn region(axis: i64, body: &str) -> Option<usize> {
        let graph = text::parse(&format!("graph (x: f32[2,3], z: f32[2,3], r: f32[1,3]) {{\n{body}\n  output y\n}}")).unwrap();
        Region::above(&graph, graph.outputs()[0].value, axis).map(|region| region.nodes.len())
    }

    #[test]
    fn a_region_is_all_that_acts_on_each_element_of_one_value() {
        let gated = "  const b: f32[3]\n  m = Transpose(x, perm=[1, 0])\n  t = Transpose(m, perm=[1, 0])\n  s = Add(b, t)\n  g = Sigmoid(s)\n  y = Mul(s, g)";
        assert_eq!(region(1, gated), Some(3));
        assert_eq!(region(-1, gated), Some(3));
        assert_eq!(region(0, gated), None, "the constant varies along the other axis");
        assert_eq!(region(2, gated), None, "there is no such axis");
        let number = "  const c: f32[1,1] = 2.0\n  y = Mul(x, c)";
        assert_eq!(region(0, number), Some(1));
    }

    #[test]
    fn a_shift_is_the_only_reader_of_the_operand() {
        let shift = |body: &str| {
            let graph = text::parse(&format!("graph (x: f32[2,3]) {{\n  const b: f32[3]\n  const c: f32[] = 2.0\n{body}\n  output y\n}}"));
            let graph = graph.unwrap();
            let region = Region::above(&graph, graph.outputs()[0].value, 1).unwrap();
            region.shift(&graph).map(|(first, constant)| (graph.node(first).op.kind(), graph.ty(constant).unwrap().rank()))
        };
        let found = Some((OpKind::Add, 1));
        assert_eq!(shift("  s = Add(x, b)\n  g = Sigmoid(s)\n  y = Mul(s, g)"), found);
        assert_eq!(shift("  s = Add(b, x)\n  y = Relu(s)"), found);
        assert_eq!(shift("  y = Add(x, b)"), found);
        assert_eq!(shift("  s = Add(x, b)\n  y = Mul(x, s)"), None, "the operand is read again");
        assert_eq!(shift("  s = Add(x, c)\n  y = Relu(s)"), None, "one number for all is no part of a row");
        assert_eq!(shift("  s = Mul(x, b)\n  y = Relu(s)"), None);
        assert_eq!(shift("  s = Add(x, x)\n  y = Relu(s)"), None);
    }

    #[test]
    fn a_region_has_one_operand_of_the_same_shape() {
        assert_eq!(region(1, "  s = Add(x, x)\n  y = Relu(s)"), Some(2));
        assert_eq!(region(1, "  s = Add(x, z)\n  y = Relu(s)"), None, "there are two operands");
        assert_eq!(region(1, "  s = Mul(r, r)\n  y = Add(x, s)"), None, "the operand is broadcast");
        assert_eq!(region(1, "  y = Transpose(x, perm=[0, 1])"), None, "it does not act on each element");
        let chain =
            |length: usize| (1..=length).map(|i| format!("  v{i} = Relu({})\n", if i == 1 { "x".into() } else { format!("v{}", i - 1) }));
        let long = |length: usize| chain(length).collect::<String>() + &format!("  y = Abs(v{length})");
        assert_eq!(region(1, &long(LARGEST - 1)), Some(LARGEST));
        assert_eq!(region(1, &long(LARGEST)), None);
    }
}
