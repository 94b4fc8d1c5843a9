//! Names over a graph and all its bodies.

use std::collections::BTreeSet;

use regraft_onnx::proto::{GraphProto, ModelProto};

fn defined(graph: &GraphProto) -> Vec<&str> {
    let mut names: BTreeSet<&str> = graph.input.iter().map(|i| i.name()).collect();
    names.extend(graph.initializer.iter().map(|t| t.name()));
    let mut names: Vec<&str> = names.into_iter().collect();
    names.extend(graph.node.iter().flat_map(|n| n.output.iter().map(String::as_str)).filter(|n| !n.is_empty()));
    names
}

fn bodies(graph: &GraphProto) -> impl Iterator<Item = &GraphProto> {
    graph.node.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_ref())
}

/// Names defined in a body although they are visible from outside.
pub fn shadowed(model: &ModelProto) -> BTreeSet<String> {
    fn visit<'a>(graph: &'a GraphProto, visible: &BTreeSet<&'a str>, into: &mut BTreeSet<String>) {
        let own = defined(graph);
        into.extend(own.iter().filter(|n| visible.contains(*n)).map(ToString::to_string));
        let visible = visible.iter().copied().chain(own).collect();
        bodies(graph).for_each(|body| visit(body, &visible, into));
    }
    let mut found = BTreeSet::new();
    model.graph.iter().for_each(|graph| visit(graph, &BTreeSet::new(), &mut found));
    found
}

/// A name that rewriting assigned twice, anywhere in the model.
pub fn new_twice(before: &ModelProto, after: &ModelProto) -> Option<String> {
    fn all<'a>(graph: &'a GraphProto, into: &mut Vec<&'a str>) {
        into.extend(defined(graph));
        bodies(graph).for_each(|body| all(body, into));
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    before.graph.iter().for_each(|graph| all(graph, &mut old));
    after.graph.iter().for_each(|graph| all(graph, &mut new));
    let old: BTreeSet<&str> = old.into_iter().collect();
    let mut seen = BTreeSet::new();
    new.into_iter().find(|name| !old.contains(name) && !seen.insert(*name)).map(ToString::to_string)
}
