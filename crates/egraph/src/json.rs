//! E-graphs as JSON: the format of the crate `egraph-serialize`.
//!
//! An object with `nodes` (by name: `op`, `children`, `eclass`, `cost`, `subsumed`) and
//! `root_eclasses`. What else a file contains, such as `class_data`, is skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use crate::egraph::{EGraph, Node};
use crate::error::EGraphError;

#[derive(Deserialize)]
struct File {
    #[serde(deserialize_with = "nodes")]
    nodes: Vec<Node>,
    #[serde(default)]
    root_eclasses: Vec<String>,
}

/// A node without its name.
#[derive(Deserialize)]
struct Body {
    op: String,
    #[serde(default)]
    children: Vec<String>,
    eclass: String,
    #[serde(default = "one")]
    cost: f64,
    #[serde(default)]
    subsumed: bool,
}

fn one() -> f64 {
    1.0
}

/// Nodes in the order of the file, each as often as it occurs.
fn nodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Node>, D::Error> {
    struct Each;
    impl<'de> Visitor<'de> for Each {
        type Value = Vec<Node>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with the nodes by their names")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Node>, A::Error> {
            let mut nodes = Vec::new();
            while let Some((name, body)) = map.next_entry::<String, Body>()? {
                let Body { op, children, eclass: class, cost, subsumed } = body;
                nodes.push(Node { name, op, class, children, cost, subsumed });
            }
            Ok(nodes)
        }
    }
    deserializer.deserialize_map(Each)
}

impl EGraph {
    /// Reads an e-graph.
    pub fn read(text: &[u8]) -> Result<EGraph, EGraphError> {
        let file: File = serde_json::from_slice(text).map_err(|error| match error.is_eof() {
            true => EGraphError::CutOff { line: error.line() },
            false => EGraphError::Format { message: error.to_string() },
        })?;
        EGraph::new(file.nodes, &file.root_eclasses)
    }

    /// The e-graph as text that [`read`](Self::read) understands, in the same order.
    pub fn to_json(&self) -> String {
        written(self.nodes().iter(), self.roots())
    }

    /// Some of its nodes as an e-graph of their own, by their numbers: an extraction, where each
    /// child becomes the chosen node of its class. Children without one stay as they are.
    pub fn to_json_of(&self, chosen: &[usize]) -> String {
        let mut name_of: Vec<Option<&str>> = vec![None; self.classes().len()];
        for &node in chosen {
            name_of[self.class_of(node)] = Some(&self.nodes()[node].name);
        }
        let nodes: Vec<Node> = chosen
            .iter()
            .map(|&number| {
                let node = &self.nodes()[number];
                let named = self.child_classes(number).map(|class| name_of[class]).zip(&node.children);
                Node { children: named.map(|(name, old)| name.unwrap_or(old).to_owned()).collect(), ..node.clone() }
            })
            .collect();
        written(nodes.iter(), self.roots())
    }
}

/// One node a line.
fn written<'a>(nodes: impl Iterator<Item = &'a Node>, roots: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> = nodes
        .map(|node| {
            let mut body = json!({"op": node.op, "children": node.children, "eclass": node.class, "cost": node.cost});
            if node.subsumed {
                body["subsumed"] = Value::Bool(true);
            }
            format!("    {}: {body}", json!(node.name))
        })
        .collect();
    let roots = json!(roots.collect::<Vec<_>>());
    format!("{{\n  \"nodes\": {{\n{}\n  }},\n  \"root_eclasses\": {roots}\n}}\n", lines.join(",\n"))
}
