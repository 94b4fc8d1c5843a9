//! The differences between two graphs.

use regraft_ir::{Graph, NodeId, Op, TensorType, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::numbering::{Number, Numbering};

/// A value by the number of the expression that computes it.
type Numbered = (Number, u32);

/// Pairs of graphs, each of which suffices to show that `a` and `b` are equal: the smallest first,
/// the graphs themselves last.
///
/// The first shows only operators that the graphs do not share; values that both compute are
/// inputs. The second also shows what computes these.
pub(crate) fn differences(a: &Graph, b: &Graph) -> Vec<(Graph, Graph)> {
    let mut numbering = Numbering::default();
    let sides = [a, b].map(|graph| Side { graph, numbers: numbering.number(graph) });
    let mut goals: Vec<(ValueId, ValueId)> = a.outputs().iter().zip(b.outputs()).map(|(x, y)| (x.value, y.value)).collect();
    for goal in &mut goals {
        while let Some(inner) = operand(&sides, *goal) {
            *goal = inner;
        }
    }
    goals.retain(|(x, y)| sides[0].number(*x) != sides[1].number(*y));
    let roots: [Vec<ValueId>; 2] = [goals.iter().map(|g| g.0).collect(), goals.iter().map(|g| g.1).collect()];
    let other: FxHashSet<Number> = sides[1].numbers.values().copied().collect();
    let common: FxHashSet<Number> = sides[0].numbers.values().copied().filter(|number| other.contains(number)).collect();
    let cuts = [common, FxHashSet::default()].into_iter().filter_map(|free| cut(&sides, &roots, &free));
    cuts.chain([(a.clone(), b.clone())]).collect()
}

/// One of the graphs.
struct Side<'a> {
    graph: &'a Graph,
    numbers: FxHashMap<NodeId, Number>,
}

impl Side<'_> {
    fn number(&self, value: ValueId) -> Numbered {
        (self.numbers[&value.node], value.port)
    }
}

/// The only differing pair of operands of two values of one operator, if there is exactly one.
fn operand([left, right]: &[Side<'_>; 2], (a, b): (ValueId, ValueId)) -> Option<(ValueId, ValueId)> {
    let (x, y) = (left.graph.node(a.node), right.graph.node(b.node));
    if x.op != y.op || a.port != b.port || x.inputs.len() != y.inputs.len() || left.number(a) == right.number(b) {
        return None;
    }
    let alike = |(v, w): &(ValueId, ValueId)| left.number(*v) == right.number(*w);
    let mut pairs: Vec<(ValueId, ValueId)> = x.inputs.iter().copied().zip(y.inputs.iter().copied()).collect();
    if x.op.kind().commutative() && pairs.len() == 2 && !pairs.iter().any(alike) {
        pairs = x.inputs.iter().copied().zip(y.inputs.iter().rev().copied()).collect();
    }
    pairs.retain(|pair| !alike(pair));
    pairs.dedup();
    let [(v, w)] = pairs[..] else { return None };
    (left.graph.ty(v) == right.graph.ty(w)).then_some((v, w))
}

/// What computes these values in both graphs, from inputs and from values with a `free` number,
/// which become inputs of the same names on both sides. Constants are always shown.
fn cut(sides: &[Side<'_>; 2], roots: &[Vec<ValueId>; 2], free: &FxHashSet<Number>) -> Option<(Graph, Graph)> {
    let mut leaves: Vec<(Numbered, &TensorType)> = Vec::new();
    let mut shown: [FxHashSet<NodeId>; 2] = Default::default();
    for (side, (roots, shown)) in sides.iter().zip(roots.iter().zip(&mut shown)) {
        let mut stack: Vec<ValueId> = roots.clone();
        while let Some(value) = stack.pop() {
            let (node, number) = (side.graph.node(value.node), side.number(value));
            if matches!(node.op, Op::Input(_)) || (free.contains(&number.0) && !node.constant) {
                if !leaves.iter().any(|(known, _)| *known == number) {
                    leaves.push((number, side.graph.ty(value)?));
                }
            } else if shown.insert(value.node) {
                stack.extend(&node.inputs);
            }
        }
    }
    let copy = |at: usize| -> Option<Graph> {
        let (side, mut copy) = (&sides[at], Graph::default());
        let mut values: FxHashMap<Numbered, ValueId> = FxHashMap::default();
        for (at, (number, ty)) in leaves.iter().enumerate() {
            values.insert(*number, copy.add_input(&format!("x{at}"), (*ty).clone()));
        }
        for id in side.graph.topological().into_iter().filter(|id| shown[at].contains(id)) {
            let node = side.graph.node(id);
            let inputs: Vec<ValueId> = node.inputs.iter().map(|v| values.get(&side.number(*v)).copied()).collect::<Option<_>>()?;
            let made = copy.add_typed(node.op.clone(), &inputs, node.types.to_vec());
            for port in 0..node.types.len() as u32 {
                values.entry(side.number(id.port(port))).or_insert(made.port(port));
            }
        }
        for (at, root) in roots[at].iter().enumerate() {
            copy.add_output(&format!("y{at}"), *values.get(&side.number(*root))?);
        }
        Some(copy)
    };
    Some((copy(0)?, copy(1)?))
}
