//! Outputs decided by floats: integers and booleans behind a comparison of floats, which the
//! slightest difference can flip.

use std::collections::HashSet;

use regraft_ir::{Class, Graph, NodeId, ValueId};

/// An integer or boolean output, and the operator that turns floats into integers or booleans on
/// the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Name of the output.
    pub output: String,
    /// Operator that decides it.
    pub operator: String,
    /// Name of its result; empty if it has none.
    pub at: String,
}

impl std::fmt::Display for Decided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "output `{}` is decided by floats ({} at `{}`): rounding can flip values of it", self.output, self.operator, self.at)
    }
}

/// All such outputs, each with the nearest operator that decides it.
pub fn decided_by_floats(graph: &Graph) -> Vec<Decided> {
    let class = |value: ValueId| graph.ty(value).map(|t| t.dtype.class());
    let discrete = |value: ValueId| matches!(class(value), Some(Class::Int | Class::Bool));
    let mut found = Vec::new();
    for output in graph.outputs().iter().filter(|o| discrete(o.value)) {
        let mut seen: HashSet<NodeId> = HashSet::new();
        let mut frontier = std::collections::VecDeque::from([output.value.node]);
        while let Some(id) = frontier.pop_front() {
            let node = graph.node(id);
            if node.constant || !seen.insert(id) {
                continue;
            }
            // The shape of a float tensor is not a float.
            if matches!(node.op.kind(), regraft_ir::OpKind::Shape | regraft_ir::OpKind::Size) {
                continue;
            }
            if node.inputs.iter().any(|v| class(*v) == Some(Class::Real) && !graph.node(v.node).constant) {
                let at = node.names.iter().flatten().next().map_or_else(String::new, |n| n.to_string());
                found.push(Decided { output: output.name.to_string(), operator: node.op.kind().name().to_string(), at });
                break;
            }
            frontier.extend(node.inputs.iter().filter(|v| discrete(**v)).map(|v| v.node));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        decided_by_floats(&regraft_ir::text::parse(text).expect("a graph")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn comparisons_of_floats_decide() {
        let said =
            found("graph (x: f32[4], k: i64[4]) { m = Greater(x, Relu(x)) output Not(m) as mask, Relu(x) as y, Add(k, k) as twice }");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("output `mask` is decided by floats (Greater at `"), "{said:?}");
        assert_eq!(found("graph (x: f32[4]) { output ArgMax(x, axis=0, keepdims=true, select_last_index=false) as best }").len(), 1);
    }

    #[test]
    fn shapes_and_integers_do_not() {
        assert_eq!(
            found("graph (x: f32[4], k: i64[4]) { output Shape(x, start=0, end=1) as shape, Less(k, Add(k, k)) as less }"),
            Vec::<String>::new()
        );
    }
}
