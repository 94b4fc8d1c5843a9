//! Values of small constant cones.

use regraft_ir::eval::constant_value;
use regraft_ir::{Const, Graph, Op, ValueId};

/// Cones with a larger intermediate are not evaluated while matching.
const SMALL: i64 = 1 << 16;

/// Equal to six digits: the same decimal constant after rounding to `f32`.
pub fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 5e-7 * a.abs().max(b.abs())
}

/// The value of a constant cone with only small intermediates.
pub fn small(graph: &Graph, value: ValueId) -> Option<Const> {
    let mut stack = vec![value];
    while let Some(v) = stack.pop() {
        let node = graph.node(v.node);
        let elements = graph.ty(v)?.elements().known()?;
        if !node.constant || elements > SMALL {
            return None;
        }
        stack.extend(node.inputs.iter().copied());
    }
    constant_value(graph, value).ok()
}

/// The common value of all elements, if there is one and it is cheap to find. The size may be a
/// symbol.
pub fn splat(graph: &Graph, value: ValueId) -> Option<f64> {
    let node = graph.node(value.node);
    match &node.op {
        Op::Constant(c) => c.value.splat(),
        Op::ConstantOfShape(c) => c.value.splat(),
        Op::Reshape(_) | Op::Unsqueeze(_) | Op::Squeeze(_) | Op::Expand(_) | Op::Transpose(_) | Op::Identity(_) | Op::Tile(_) => {
            splat(graph, node.inputs[0])
        }
        _ if !node.constant => None,
        _ => small(graph, value)?.splat(),
    }
}
