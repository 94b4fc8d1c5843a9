//! All of a graph, for comparisons.

use std::fmt::Write;

use crate::graph::Graph;
use crate::op::Op;

/// Every observable part of a graph, ids and the order of operands included, but for the contents
/// of constants: equal texts mean that an edit was undone exactly. It cannot be read back; see
/// [`print`](super::print()).
pub fn inventory(graph: &Graph) -> String {
    let mut text = String::new();
    for id in graph.ids() {
        let node = graph.node(id);
        let mut users = node.users.to_vec();
        users.sort_unstable();
        let op = if matches!(node.op, Op::Constant(_)) { "constant".to_string() } else { format!("{:?}", node.op) };
        let _ = writeln!(
            text,
            "{} {op} {:?} {:?} {:?} {:?} {} {users:?}",
            id.0, node.inputs, node.types, node.names, node.origin, node.constant
        );
    }
    let _ = writeln!(text, "{:?} {:?} {}", graph.inputs(), graph.outputs(), graph.capacity());
    text
}
