//! Weights with zeros instead of subnormal numbers.

use std::collections::{BTreeMap, HashSet};

use regraft_ir::{Const, Graph, NodeId, Op, OpKind, ValueId};

use crate::model::Model;
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

impl Model {
    /// Number of constants of a graph, made from that of this model, that
    /// [`WriteOptions::flush`](crate::WriteOptions::flush) changes if they are written as they are.
    /// This reads all weights.
    pub fn flushable(&self, graph: &Graph) -> usize {
        let listed = listed(self);
        let is_listed = |id: NodeId| graph.node(id).names.iter().flatten().any(|name| listed.contains(name.as_ref()));
        let constants = graph.ids().filter(|id| !is_listed(*id)).filter_map(|id| Some((id.out(), graph.constant(id.out())?)));
        constants.filter(|(value, constant)| of(graph, *value, constant).is_some()).count()
    }
}

/// Names that the model lists among its inputs.
fn listed(model: &Model) -> HashSet<&str> {
    model.graph_proto().input.iter().map(|input| input.name()).collect()
}

/// The constant as it is written; `None` if it has no such elements, or somebody else reads it.
fn of(graph: &Graph, value: ValueId, constant: &Const) -> Option<Const> {
    let mut readers = graph.users(value).peekable();
    let is_weight = readers.peek().is_some() && readers.all(|(reader, _)| READERS.contains(&graph.node(reader).op.kind()));
    // Elements are looked at last: there may be many.
    if is_weight && !graph.feeds_output(value.node) { Some(constant.flushed()?.0) } else { None }
}

/// Plans to write all of them so. What the model lists among its inputs, or reads by name, stays.
pub(crate) fn flush(plan: &mut Plan<'_>) {
    let (graph, listed) = (plan.graph, listed(plan.model));
    let mut initializers = BTreeMap::new();
    for (id, form) in &mut plan.forms {
        let Op::Constant(constant) = &graph.node(*id).op else { continue };
        let Some(flushed) = of(graph, id.out(), &constant.value) else { continue };
        match form {
            Form::Initializer(at) => {
                let name = plan.model.graph_proto().initializer[*at].name();
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
