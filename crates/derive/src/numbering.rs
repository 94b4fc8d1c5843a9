//! One numbering for the values of several graphs: equal expressions over equal inputs get equal
//! numbers.

use regraft_ir::{Graph, NodeId, Op, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of an expression.
pub(crate) type Number = u32;

/// The parts of an expression.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Expression {
    /// The input of this name.
    Input(Op),
    /// An operator on numbered operands, sorted if commutative.
    Node(Op, SmallVec<[(Number, u32); 3]>),
}

/// Numbers assigned so far.
#[derive(Default)]
pub(crate) struct Numbering {
    known: FxHashMap<Expression, Number>,
}

impl Numbering {
    /// The numbers of the nodes of a graph, by node.
    pub fn number(&mut self, graph: &Graph) -> FxHashMap<NodeId, Number> {
        let mut numbers: FxHashMap<NodeId, Number> = FxHashMap::default();
        for id in graph.topological() {
            let node = graph.node(id);
            let expression = if matches!(node.op, Op::Input(_)) {
                Expression::Input(node.op.clone())
            } else {
                let mut operands: SmallVec<[(Number, u32); 3]> = node.inputs.iter().map(|v| (numbers[&v.node], v.port)).collect();
                if operands.len() == 2 && node.op.kind().commutative() {
                    operands.sort_unstable();
                }
                Expression::Node(node.op.clone(), operands)
            };
            let next = self.known.len() as Number;
            numbers.insert(id, *self.known.entry(expression).or_insert(next));
        }
        numbers
    }
}

/// Whether two graphs return the same expressions over the same inputs, in the same order.
pub(crate) fn same(a: &Graph, b: &Graph) -> bool {
    let mut numbering = Numbering::default();
    let (first, second) = (numbering.number(a), numbering.number(b));
    let number = |numbers: &FxHashMap<NodeId, Number>, value: ValueId| (numbers[&value.node], value.port);
    a.outputs().len() == b.outputs().len()
        && a.outputs().iter().zip(b.outputs()).all(|(x, y)| number(&first, x.value) == number(&second, y.value))
}
