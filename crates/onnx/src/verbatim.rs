//! What opaque operators stand for in the model's own form.

use regraft_ir::ops::OpaqueOp;

use crate::import::{Import, OpaqueSource};
use crate::model::Model;
use crate::proto::{AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};

/// What an opaque operator is in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verbatim<'a> {
    /// A node.
    Node {
        /// Its index among the nodes of its graph.
        at: usize,
        /// The node.
        proto: &'a NodeProto,
        /// Names that its subgraphs capture: those of the operands beyond its own inputs, in order.
        captured: &'a [String],
    },
    /// An initializer of an exotic type, or one that training updates.
    Initializer(&'a TensorProto),
    /// A sparse initializer.
    Sparse(&'a SparseTensorProto),
    /// An input that is not a tensor of known rank.
    Input(&'a ValueInfoProto),
}

impl Verbatim<'_> {
    /// Whether both are the same except for names of nodes, values and initializers, and for
    /// bodies: only the presence of bodies counts.
    pub fn alike(&self, other: &Verbatim<'_>) -> bool {
        match (self, other) {
            (Verbatim::Node { proto: a, .. }, Verbatim::Node { proto: b, .. }) => alike(a, b),
            (Verbatim::Input(a), Verbatim::Input(b)) => a.name() == b.name() && a.r#type == b.r#type,
            (Verbatim::Initializer(a), Verbatim::Initializer(b)) => {
                let unnamed = |t: &TensorProto| TensorProto { name: None, ..t.clone() };
                unnamed(a) == unnamed(b)
            }
            (Verbatim::Sparse(a), Verbatim::Sparse(b)) => a == b,
            _ => false,
        }
    }
}

fn alike(a: &NodeProto, b: &NodeProto) -> bool {
    let left_out = |names: &[String]| names.iter().map(String::is_empty).collect::<Vec<bool>>();
    let bare = |a: &AttributeProto| AttributeProto { g: a.g.as_ref().map(|_| GraphProto::default()), doc_string: None, ..a.clone() };
    let attributes = |node: &NodeProto| node.attribute.iter().map(bare).collect::<Vec<_>>();
    (a.op_type(), a.domain(), a.overload()) == (b.op_type(), b.domain(), b.overload())
        && left_out(&a.input) == left_out(&b.input)
        && left_out(&a.output) == left_out(&b.output)
        && attributes(a) == attributes(b)
}

impl Model {
    /// What an opaque operator of [`Model::graph`], or of a graph made from it, stands for; `None`
    /// if it belongs to another model.
    pub fn verbatim(&self, op: &OpaqueOp) -> Option<Verbatim<'_>> {
        let graph = self.graph_proto();
        Some(match self.opaque_sources.get(op.id as usize)? {
            OpaqueSource::Node(at) => {
                let captured = match self.imports.get(*at)? {
                    Some(Import::Opaque { captured }) => captured.as_slice(),
                    _ => &[],
                };
                Verbatim::Node { at: *at, proto: graph.node.get(*at)?, captured }
            }
            OpaqueSource::Initializer(at) => Verbatim::Initializer(graph.initializer.get(*at)?),
            OpaqueSource::Sparse(at) => Verbatim::Sparse(graph.sparse_initializer.get(*at)?),
            OpaqueSource::Input(at) => Verbatim::Input(graph.input.get(*at)?),
        })
    }
}
