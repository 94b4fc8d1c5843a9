//! Weights with zeros instead of subnormal numbers.

use std::collections::{BTreeMap, HashSet};

use regraft_ir::{Const, Graph, Op, OpKind, ValueId};

use crate::plan::{Form, Plan};

/// Operators to which such a number is next to nothing beside the other elements of its tensor: they
/// multiply and add. To what divides, compares or takes logarithms, zero is another matter.
const READERS: [OpKind; 10] = [
    OpKind::Add,
    OpKind::Conv,
    OpKind::ConvTranspose,
    OpKind::Gemm,
    OpKind::GRU,
    OpKind::LSTM,
    OpKind::MatMul,
    OpKind::Mul,
    OpKind::RNN,
    OpKind::Sub,
];

/// Number of constants that [`WriteOptions::flush`](crate::WriteOptions::flush) changes, if all of
/// them are written.
pub fn flushable(graph: &Graph) -> usize {
    let constants = graph.ids().filter_map(|id| Some((id.out(), graph.constant(id.out())?)));
    constants.filter(|(value, constant)| of(graph, *value, constant).is_some()).count()
}

/// The constant as it is written; `None` if it has no such elements, or somebody else reads it.
fn of(graph: &Graph, value: ValueId, constant: &Const) -> Option<Const> {
    let mut readers = graph.users(value).peekable();
    let is_weight = readers.peek().is_some() && readers.all(|(reader, _)| READERS.contains(&graph.node(reader).op.kind()));
    let (flushed, _) = constant.flushed().filter(|_| is_weight && !graph.feeds_output(value.node))?;
    Some(flushed)
}

/// Plans to write all of them so. What the model lists among its inputs, or reads by name, stays.
pub(crate) fn flush(plan: &mut Plan<'_>) {
    let (graph, model) = (plan.graph, plan.model.graph_proto());
    let listed: HashSet<&str> = model.input.iter().map(|input| input.name()).collect();
    let mut initializers = BTreeMap::new();
    for (id, form) in &mut plan.forms {
        let Op::Constant(constant) = &graph.node(*id).op else { continue };
        let Some(flushed) = of(graph, id.out(), &constant.value) else { continue };
        match form {
            Form::Initializer(at) => {
                let name = model.initializer[*at].name();
                if !listed.contains(name) && !plan.originals.contains(name) {
                    initializers.insert(*at, flushed);
                }
            }
            form => *form = Form::Constant(flushed),
        }
    }
    plan.flushed = initializers;
    for (value, constant) in &mut plan.folded {
        if let Some(flushed) = of(graph, *value, constant) {
            *constant = flushed;
        }
    }
}
