//! Names in a graph and in the subgraphs of its nodes: which are defined, read and captured, and in
//! which order nodes can run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::error::{LoadError, LoadFault, Location};
use crate::proto::{AttributeProto, GraphProto, NodeProto};

/// A human-readable name for a node: its name, or else its first output, with the operator.
pub(crate) fn describe(node: &NodeProto) -> String {
    let name = if node.name().is_empty() { node.output.first().map_or("", String::as_str) } else { node.name() };
    if name.is_empty() { node.op_type().to_string() } else { format!("{name} ({})", node.op_type()) }
}

/// The place of node `at` of `graph`.
pub(crate) fn location(graph: &GraphProto, at: usize) -> Location {
    let node = graph.node.get(at).map(|n| (describe(n), at + 1, graph.node.len()));
    Location { graph: graph.name().to_string(), node }
}

/// Subgraphs of a node.
fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|a: &AttributeProto| a.g.iter().chain(&a.graphs))
}

/// Outer names that the node's subgraphs read, without duplicates, in order of first use.
pub(crate) fn captured(node: &NodeProto) -> Vec<&str> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for graph in subgraphs(node) {
        for name in free(graph) {
            if seen.insert(name) {
                names.push(name);
            }
        }
    }
    names
}

/// Names that a subgraph reads but does not define.
pub(crate) fn free(graph: &GraphProto) -> Vec<&str> {
    let mut defined: HashSet<&str> = HashSet::new();
    defined.extend(graph.input.iter().map(|i| i.name()));
    defined.extend(graph.initializer.iter().map(|t| t.name()));
    defined.extend(graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref()).map(|t| t.name()));
    defined.extend(graph.node.iter().flat_map(|n| n.output.iter().map(String::as_str)));
    let mut names: Vec<&str> = Vec::new();
    for node in &graph.node {
        names.extend(node.input.iter().map(String::as_str));
        names.extend(captured(node));
    }
    names.extend(graph.output.iter().map(|o| o.name()));
    names.retain(|name| !name.is_empty() && !defined.contains(name));
    names
}

/// Every name in a graph and all its subgraphs, for new names to avoid.
pub(crate) fn all_names(graph: &GraphProto, into: &mut HashSet<String>) {
    into.extend(graph.input.iter().chain(&graph.output).chain(&graph.value_info).map(|i| i.name().to_string()));
    into.extend(graph.initializer.iter().map(|t| t.name().to_string()));
    into.extend(graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref()).map(|t| t.name().to_string()));
    for node in &graph.node {
        into.insert(node.name().to_string());
        into.extend(node.input.iter().chain(&node.output).cloned());
        for inner in subgraphs(node) {
            all_names(inner, into);
        }
    }
}

/// What the names of a graph refer to.
pub(crate) struct Scope<'a> {
    /// Node indices, operands before readers; ascending if the file is sorted.
    pub order: Vec<usize>,
    /// Names that some node, subgraph or output reads.
    pub read: HashSet<&'a str>,
    /// Names captured by the subgraphs of each node that has any.
    pub captured: HashMap<usize, Vec<&'a str>>,
    /// Nodes that no output depends on.
    pub idle: HashSet<usize>,
}

/// Checks that every name has exactly one definition and that the nodes can be ordered.
pub(crate) fn analyze(graph: &GraphProto) -> Result<Scope<'_>, LoadError> {
    let at_graph = |fault| LoadError::at(Location { graph: graph.name().to_string(), node: None }, fault);
    let at_node = |fault, at| LoadError::at(location(graph, at), fault);

    let mut made_by: HashMap<&str, Option<usize>> = HashMap::new();
    let mut inputs: HashSet<&str> = HashSet::new();
    let duplicate = |value: &str, first: &str, second: String| LoadFault::Duplicate { value: value.into(), first: first.into(), second };
    for input in &graph.input {
        if !inputs.insert(input.name()) {
            return Err(at_graph(duplicate(input.name(), "a graph input", "another graph input".into())));
        }
    }
    let dense = graph.initializer.iter().map(|t| t.name());
    let sparse = graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref()).map(|t| t.name());
    for name in dense.chain(sparse) {
        if made_by.insert(name, None).is_some() {
            return Err(at_graph(duplicate(name, "an initializer", "another initializer".into())));
        }
    }
    made_by.extend(inputs.iter().map(|name| (*name, None)));
    for (at, node) in graph.node.iter().enumerate() {
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            if let Some(first) = made_by.insert(name, Some(at)) {
                let first =
                    first.map_or("a graph input or initializer".to_string(), |i| format!("node {} `{}`", i + 1, describe(&graph.node[i])));
                return Err(at_node(duplicate(name, &first, format!("node {}", at + 1)), at));
            }
        }
    }

    let mut scope = Scope { order: Vec::new(), read: HashSet::new(), captured: HashMap::new(), idle: HashSet::new() };
    let mut sources: Vec<Vec<usize>> = Vec::with_capacity(graph.node.len());
    for (at, node) in graph.node.iter().enumerate() {
        let captured = captured(node);
        let mut from = Vec::new();
        let named = node.input.iter().enumerate().filter(|(_, n)| !n.is_empty());
        let reads = named.map(|(i, n)| (n.as_str(), Some(i))).chain(captured.iter().map(|n| (*n, None)));
        for (name, input) in reads {
            let Some(maker) = made_by.get(name) else {
                let reader = input.map_or("a subgraph".to_string(), |i| format!("input {i}"));
                return Err(at_node(LoadFault::Undefined { reader, value: name.to_string() }, at));
            };
            from.extend(*maker);
            scope.read.insert(name);
        }
        if !captured.is_empty() {
            scope.captured.insert(at, captured);
        }
        sources.push(from);
    }
    for output in &graph.output {
        if !made_by.contains_key(output.name()) {
            return Err(at_graph(LoadFault::Undefined { reader: "a graph output".into(), value: output.name().to_string() }));
        }
        scope.read.insert(output.name());
    }

    scope.order = sort(&sources);
    if scope.order.len() < graph.node.len() {
        let at = on_cycle(&sources, &scope.order);
        return Err(at_node(LoadFault::Cycle(describe(&graph.node[at])), at));
    }
    let mut alive = vec![false; graph.node.len()];
    let mut stack: Vec<usize> = graph.output.iter().filter_map(|o| made_by.get(o.name()).copied().flatten()).collect();
    while let Some(at) = stack.pop() {
        if !std::mem::replace(&mut alive[at], true) {
            stack.extend(&sources[at]);
        }
    }
    scope.idle = (0..alive.len()).filter(|at| !alive[*at]).collect();
    Ok(scope)
}

/// Indices with sources before readers, smallest first; those on or behind a cycle are left out.
pub(crate) fn sort(sources: &[Vec<usize>]) -> Vec<usize> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); sources.len()];
    let mut waiting: Vec<usize> = vec![0; sources.len()];
    for (at, from) in sources.iter().enumerate() {
        waiting[at] = from.len();
        for source in from {
            readers[*source].push(at);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..sources.len()).filter(|at| waiting[*at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(sources.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for reader in &readers[at] {
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
    }
    order
}

/// An index on a cycle, given that `order` leaves some out.
pub(crate) fn on_cycle(sources: &[Vec<usize>], order: &[usize]) -> usize {
    let sorted: HashSet<usize> = order.iter().copied().collect();
    let mut at = (0..sources.len()).find(|i| !sorted.contains(i)).unwrap_or(0);
    // Every node left out has a source left out: walking back that way must revisit a node, and
    // that one is on a cycle.
    let mut seen = HashSet::new();
    while seen.insert(at) {
        match sources[at].iter().find(|s| !sorted.contains(s)) {
            Some(source) => at = *source,
            None => break,
        }
    }
    at
}
