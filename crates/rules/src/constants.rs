//! Values of small constant cones.

use regraft_ir::{Const, Op, OpKind, ValueId, View};
use rustc_hash::FxHashSet;

/// Cones with a larger intermediate are not evaluated while matching.
const SMALL: i64 = 1 << 16;

/// Equal to six digits: the same decimal constant after rounding to `f32`.
pub fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 5e-7 * a.abs().max(b.abs())
}

/// The value of a constant cone with only small intermediates.
pub fn small(graph: &dyn View, value: ValueId) -> Option<Const> {
    // A constant that is used twice is looked at once: there may be as many ways to it as there are
    // sequences of the operators above.
    let (mut stack, mut seen) = (vec![value], FxHashSet::default());
    while let Some(v) = stack.pop() {
        if !seen.insert(v) {
            continue;
        }
        let elements = graph.ty(v)?.elements().known()?;
        if !graph.is_constant(v) || elements > SMALL {
            return None;
        }
        stack.extend(graph.inputs(v.node).iter().copied());
    }
    graph.evaluate(value).ok()
}

/// The common value of all elements, if there is one and it is cheap to find. The size may be a
/// symbol.
pub fn splat(graph: &dyn View, value: ValueId) -> Option<f64> {
    match graph.kind(value.node) {
        OpKind::Constant => graph.splat(value.node),
        OpKind::ConstantOfShape => {
            if let Op::ConstantOfShape(c) = graph.op(value.node) {
                c.value.splat()
            } else {
                None
            }
        }
        OpKind::Reshape | OpKind::Unsqueeze | OpKind::Squeeze | OpKind::Expand | OpKind::Transpose | OpKind::Identity | OpKind::Tile => {
            splat(graph, graph.inputs(value.node)[0])
        }
        _ if !graph.is_constant(value) => None,
        _ => small(graph, value)?.splat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text;

    #[test]
    fn constants_that_are_used_over_and_over_are_looked_at_once() {
        let doubled: String = (0..80).map(|at| format!("c{} = Add(c{at}, c{at}) ", at + 1)).collect();
        let graph = text::parse(&format!("graph (x: f32[2]) {{ const c0: f32[] = 1.0 {doubled} y = Mul(x, c80) output y }}")).unwrap();
        let y = graph.outputs()[0].value;
        let factor = graph.node(y.node).inputs[1];
        assert_eq!(splat(&graph, factor), Some(2f64.powi(80)));
    }
}
