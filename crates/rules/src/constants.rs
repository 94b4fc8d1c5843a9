//! Values of small constant cones.

use regraft_ir::{Const, Op, OpKind, ValueId, View};

/// Cones with a larger intermediate are not evaluated while matching.
const SMALL: i64 = 1 << 16;

/// Equal to six digits: the same decimal constant after rounding to `f32`.
pub fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 5e-7 * a.abs().max(b.abs())
}

/// The value of a constant cone with only small intermediates.
pub fn small(graph: &dyn View, value: ValueId) -> Option<Const> {
    let mut stack = vec![value];
    while let Some(v) = stack.pop() {
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
