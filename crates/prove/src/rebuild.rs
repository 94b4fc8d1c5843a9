//! Rebuilds a graph with other sizes.

use std::collections::HashMap;

use regraft_ir::ops::Input;
use regraft_ir::{Graph, Node, Op, TensorType, ValueId};

/// The graph with its input types and operators replaced, and types inferred anew; `None` if a
/// replacement is missing, or does not fit.
pub(crate) fn rebuilt(
    graph: &Graph,
    input: impl Fn(&TensorType) -> Option<TensorType>,
    operator: impl Fn(&Node) -> Option<Op>,
) -> Option<Graph> {
    let mut result = Graph::new(graph.name.clone());
    let mut values: HashMap<ValueId, ValueId> = HashMap::new();
    let operators = graph.topological().into_iter().filter(|id| !matches!(graph.node(*id).op, Op::Input(_)));
    for id in graph.inputs().iter().copied().chain(operators) {
        let node = graph.node(id);
        let added = match &node.op {
            Op::Input(Input { name, ty }) if node.constant => result.add_parameter(name, input(ty)?).node,
            Op::Input(Input { name, ty }) => result.add_input(name, input(ty)?).node,
            Op::Constant(constant) => result.add_const(constant.value.clone()).node,
            _ => {
                let operands: Vec<ValueId> = node.inputs.iter().map(|v| values.get(v).copied()).collect::<Option<_>>()?;
                result.add(operator(node)?, &operands).ok()?
            }
        };
        values.extend((0..node.types.len() as u32).map(|port| (id.port(port), added.port(port))));
    }
    for output in graph.outputs() {
        result.add_output(&output.name, *values.get(&output.value)?);
    }
    Some(result)
}
