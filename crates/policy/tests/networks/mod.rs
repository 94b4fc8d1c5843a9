//! Networks and rules to search with.

use regraft_ir::{Graph, normal};
use regraft_rules::Library;

/// A network of the zoo, in normal form and without weights.
pub fn network(name: &str) -> Graph {
    let options = regraft_zoo::Options { weights: regraft_zoo::Weights::Zeros, ..Default::default() };
    let proto = regraft_zoo::build(name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut graph = regraft_onnx::Model::from_proto(proto).unwrap_or_else(|e| panic!("{name}: {e}")).graph().clone();
    normal::dce(&mut graph);
    normal::cse(&mut graph);
    graph
}

/// The rules that come with the program.
pub fn shipped() -> Library {
    Library::shipped().unwrap_or_else(|e| panic!("{e}"))
}
