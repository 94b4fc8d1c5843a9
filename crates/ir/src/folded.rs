//! Constant expressions, and the constants written for them.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::constant::Const;
use crate::dtype::{Class, DType};
use crate::error::EvalError;
use crate::eval::{self, NoOpaque};
use crate::graph::{Graph, ValueId};
use crate::op::{Op, OpKind};
use crate::parallel;
use crate::tensor::{Tensor, Value, magnitude};

/// Elements processed at a time.
const BLOCK: usize = 1 << 12;
/// Maximum number of threads that compute constants.
const THREADS: usize = 8;
/// Constants with more elements, their inputs included, are computed one after the other to save
/// memory.
const LARGE: i64 = 1 << 24;

/// Differences of written constants from their expressions, or why rounding does not explain them.
pub type Differences = Result<Vec<f64>, Misfit>;

/// Constant expressions of one graph, and their counterparts in another: two graphs without inputs,
/// compared output by output.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The expressions.
    pub expressions: Graph,
    /// The constants written for them.
    pub written: Graph,
}

/// Which constant does not match its expression, or why this cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    /// This one differs.
    #[error("another constant than the expression gives")]
    Other(usize),
    /// The expressions cannot be evaluated.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

impl Folded {
    /// Values of `a` that depend on constants only, and the values of `b` written for them.
    pub fn new(a: &Graph, b: &Graph, pairs: &[(ValueId, ValueId)]) -> Folded {
        let (x, y): (Vec<ValueId>, Vec<ValueId>) = pairs.iter().copied().unzip();
        Folded { expressions: cone(a, &x), written: cone(b, &y) }
    }

    /// Total number of elements in all tensors.
    pub fn elements(&self) -> i64 {
        let types = [&self.expressions, &self.written].into_iter().flat_map(|g| g.ids().flat_map(|id| g.node(id).types.iter().flatten()));
        types.filter_map(|ty| ty.elements().known()).fold(0, i64::saturating_add)
    }

    /// Computes the expressions in double precision, and returns how far each constant is from its
    /// own, relative to its largest magnitude: no farther than rounding to its type explains. Real
    /// elements that are not only moved are off by at least the roundoff of double precision, in
    /// which they are compared: only exact constants get 0.
    pub fn differences(&self) -> Differences {
        let outputs = |graph: &Graph| graph.outputs().iter().map(|o| o.value).collect::<Vec<_>>();
        let (wanted, written) = (outputs(&self.expressions), outputs(&self.written));
        let found = |at: usize| {
            let same_type = self.expressions.ty(wanted[at]) == self.written.ty(written[at]);
            eval::constant_value(&self.written, written[at]).ok().filter(|_| same_type).ok_or(Misfit::Other(at))
        };
        // Single precision holds all elements that are only moved.
        if self.expressions.ids().all(|id| eval::moves(&self.expressions, id, DType::F32)) {
            let moved = eval::values::<f32>(&self.expressions, &HashMap::new(), &wanted, &mut NoOpaque)?;
            if moved.iter().enumerate().try_fold(true, |same, (at, value)| Ok::<_, Misfit>(same && is_stored(value, &found(at)?)))? {
                return Ok(vec![0.0; wanted.len()]);
            }
        }
        let computed = eval::constants::<f64>(&self.expressions, &wanted)?;
        let only_moves = |id| {
            let kind = self.expressions.node(id).op.kind();
            kind == OpKind::Constant || kind.moves_elements()
        };
        let least = if self.expressions.ids().all(only_moves) { 0.0 } else { f64::EPSILON / 2.0 };
        let off = |(at, want): (usize, &Value<f64>)| {
            let off = difference(want, &found(at)?).ok_or(Misfit::Other(at))?;
            Ok(if matches!(want, Value::Real(_)) { off.max(least) } else { off })
        };
        computed.iter().enumerate().map(off).collect()
    }

    /// The same for each of these, on all cores.
    pub fn all_differences(all: &[&Folded]) -> Vec<Differences> {
        // Large ones first, so that only short ones are left for the end.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| -all[*at].elements());
        let alone = Mutex::new(());
        let computed = parallel::map(&order, parallel::cores().min(THREADS), |at| {
            let _alone = (all[*at].elements() > LARGE).then(|| alone.lock());
            all[*at].differences()
        });
        let mut done: Vec<(usize, Differences)> = order.into_iter().zip(computed).collect();
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, differences)| differences).collect()
    }
}

/// The cone of these values and nothing else; they are its outputs, in order.
fn cone(graph: &Graph, values: &[ValueId]) -> Graph {
    let mut cone = Graph::default();
    let mut copies = HashMap::new();
    for value in values {
        let mut stack = vec![(value.node, 0)];
        while let Some((id, slot)) = stack.pop() {
            let node = graph.node(id);
            if copies.contains_key(&id) {
                continue;
            }
            if let Some(operand) = node.inputs.get(slot) {
                stack.extend([(id, slot + 1), (operand.node, 0)]);
                continue;
            }
            let inputs: Vec<ValueId> = node.inputs.iter().map(|v| ValueId { node: copies[&v.node], ..*v }).collect();
            let copy = match &node.op {
                Op::Constant(constant) => cone.add_const(constant.value.clone()).node,
                op => cone.add_typed(op.clone(), &inputs, node.types.to_vec()),
            };
            copies.insert(id, copy);
        }
        cone.add_output(&format!("y{}", cone.outputs().len()), copies[&value.node].port(value.port));
    }
    cone
}

/// Whether the constant holds exactly these elements.
fn is_stored(value: &Value<f32>, found: &Const) -> bool {
    let Value::Real(tensor) = value else { return false };
    let stored = found.bytes().chunks_exact(size_of::<f32>());
    found.dtype() == DType::F32
        && found.elements() == tensor.data.len()
        && tensor.data.iter().zip(stored).all(|(v, c)| v.to_le_bytes() == c)
}

/// The largest difference relative to the largest magnitude, if rounding to the type explains it.
fn difference(want: &Value<f64>, found: &Const) -> Option<f64> {
    let Value::Real(want) = want else {
        return (want.to_const(found.dtype())?.bytes() == found.bytes()).then_some(0.0);
    };
    if found.dtype().class() != Class::Real || want.data.len() != found.elements() {
        return None;
    }
    let exact = blocks(want, found)
        .all(|(want, found)| Const::from_f64(found.dtype(), found.shape(), want).is_some_and(|c| c.bytes() == found.bytes()));
    let unit = match found.dtype() {
        DType::F64 => f64::from(f32::EPSILON) / f64::from(1 << 20),
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 1.0 / 1024.0,
        _ => 1.0 / 128.0,
    };
    let largest = magnitude(&want.data);
    let mut worst: f64 = 0.0;
    for (want, found) in blocks(want, found) {
        for (w, f) in want.iter().zip(found.to_f64()?) {
            let off = (w - f).abs();
            if w.to_bits() == f.to_bits() || *w == f || (w.is_nan() && f.is_nan()) || (exact && !off.is_finite()) {
                continue;
            }
            // The second term allows for reordered sums, and for subnormal numbers.
            if !exact && (off > unit * w.abs() + largest * unit / 4096.0 || !off.is_finite()) {
                return None;
            }
            worst = worst.max(off / largest);
        }
    }
    Some(worst)
}

/// A few elements of both at a time: copying all of them would take longer than comparing.
fn blocks<'a>(want: &'a Tensor<f64>, found: &'a Const) -> impl Iterator<Item = (&'a [f64], Const)> {
    let size = found.dtype().size();
    want.data.chunks(BLOCK).enumerate().filter_map(move |(at, block)| {
        let start = at * BLOCK * size;
        let bytes = found.bytes().slice(start..start + block.len() * size);
        Some((block, Const::new(found.dtype(), &[block.len() as i64], bytes)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    /// The differences of `written` from the outputs of `graph`, for which it was written.
    fn differences(graph: &str, written: &[Const]) -> Result<Vec<f64>, Misfit> {
        let a = text::parse(graph).expect("a graph");
        let mut b = Graph::default();
        let pairs: Vec<_> = a.outputs().iter().zip(written).map(|(o, constant)| (o.value, b.add_const(constant.clone()))).collect();
        Folded::new(&a, &b, &pairs).differences()
    }

    fn f32s(shape: &[i64], values: &[f64]) -> Const {
        Const::from_f64(DType::F32, shape, values).expect("it fits")
    }

    #[test]
    fn what_is_only_moved_has_to_be_the_same() {
        let graph = "graph (x: f32[2]) { const c: f32[2,3] = [1, 2, 3, 4, 5, inf] t = Transpose(c, perm=[1,0]) r = Relu(x) output t }";
        let moved = [1.0, 4.0, 2.0, 5.0, 3.0, f64::INFINITY];
        assert_eq!(differences(graph, &[f32s(&[3, 2], &moved)]).unwrap(), [0.0]);
        for (at, other) in [(0, 1.0001), (5, 7.0), (3, f64::NAN)] {
            let mut wrong = moved;
            wrong[at] = other;
            assert!(matches!(differences(graph, &[f32s(&[3, 2], &wrong)]), Err(Misfit::Other(0))), "{at}");
        }
        assert!(matches!(differences(graph, &[f32s(&[6], &moved)]), Err(Misfit::Other(0))));
        assert!(matches!(differences(graph, &[Const::from_f64(DType::F64, &[3, 2], &moved).unwrap()]), Err(Misfit::Other(0))));
    }

    #[test]
    fn what_is_computed_may_be_rounded_once() {
        let graph = "graph () { const c: f32[2] = [1, 3] const d: f32[1] = [3] q = Div(c, d) s = Add(c, d) output q, s }";
        let third = f64::from(1f32 / 3.0);
        let off = differences(graph, &[f32s(&[2], &[third, 1.0]), f32s(&[2], &[4.0, 6.0])]).unwrap();
        assert!(off[0] > 0.0 && off[0] < 5e-8 && off[1] == f64::EPSILON / 2.0, "{off:?}");
        let wrong = differences(graph, &[f32s(&[2], &[third, 1.0]), f32s(&[2], &[4.0, 6.00001])]);
        assert!(matches!(wrong, Err(Misfit::Other(1))));
    }

    #[test]
    fn every_block_is_compared() {
        let elements = 3 * BLOCK + 5;
        let count = elements as i64;
        let graph = format!("graph () {{ const c: f32[{elements}] = 1 const d: f32[] = 3 q = Div(c, d) output q }}");
        let mut values = vec![f64::from(1f32 / 3.0); elements];
        let off = differences(&graph, &[f32s(&[count], &values)]).unwrap();
        assert!(off[0] > 0.0 && off[0] < 5e-8, "{off:?}");
        values[elements - 1] = 0.3334;
        assert!(differences(&graph, &[f32s(&[count], &values)]).is_err());
    }

    #[test]
    fn infinities_are_believed_where_all_is_exact() {
        let graph = "graph () { const c: f32[2] = [1e30, 1] p = Mul(c, c) output p }";
        assert_eq!(differences(graph, &[f32s(&[2], &[f64::INFINITY, 1.0])]).unwrap(), [f64::EPSILON / 2.0]);
        assert!(differences(graph, &[f32s(&[2], &[f64::INFINITY, 1.0000002])]).is_err());
    }
}
