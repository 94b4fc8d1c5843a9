//! A model in simpler terms, for a comparison: nodes that are kept verbatim, but whose meaning
//! other nodes can express, are replaced.
//!
//! * `If` of a constant condition is the branch that it takes.
//! * `NonZero` of a constant is a constant.
//! * `Shape` of a value of known sizes is a constant, where an `If` or a `NonZero` remains.

use std::collections::{HashMap, HashSet};

use regraft_ir::{Const, Graph, Op, ValueId, eval};
use regraft_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use regraft_onnx::{Model, Verbatim};

use crate::equivalence::renamed;

/// Maximum number of rounds: nested nodes, and those that depend on replaced ones, take one each.
const ROUNDS: usize = 8;
/// Constants with more elements are not computed, nor searched.
const LARGEST: usize = 1 << 20;
/// Code of the element type `i64`.
const INT64: i32 = 7;

/// The model with these nodes replaced; `None` if there are none, or if it can no longer be read.
pub(crate) fn plain(model: &Model) -> Option<Model> {
    let mut found = None;
    for _ in 0..ROUNDS {
        let current = found.as_ref().unwrap_or(model);
        let read = |proto| Some(Model::from_proto(proto).ok()?.under(model).ok()?.into_owned());
        let Some(next) = round(current).and_then(read) else { break };
        found = Some(next);
    }
    found
}

/// The model with the currently replaceable nodes replaced.
fn round(model: &Model) -> Option<ModelProto> {
    let graph = model.graph();
    let mut plain = Plain { proto: model.proto(), names: HashSet::new(), constants: Vec::new(), open: false };
    let mut instead: HashMap<usize, Vec<NodeProto>> = HashMap::new();
    for id in graph.ids() {
        let Op::Opaque(opaque) = &graph.node(id).op else { continue };
        let Some(Verbatim::Node { at, proto, .. }) = model.verbatim(opaque) else { continue };
        if !matches!(proto.domain(), "" | "ai.onnx") {
            continue;
        }
        let operands = &graph.node(id).inputs;
        let nodes = match proto.op_type() {
            "If" => plain.branch(graph, proto, operands),
            "NonZero" => plain.places(graph, proto, operands),
            _ => None,
        };
        if let Some(nodes) = nodes {
            instead.insert(at, nodes);
        }
    }
    if plain.open {
        instead.extend(plain.shapes(graph));
    }
    if instead.is_empty() {
        return None;
    }
    let constants = plain.constants;
    let mut proto = model.proto().clone();
    let graph = proto.graph.as_mut()?;
    let nodes = std::mem::take(&mut graph.node).into_iter().enumerate();
    graph.node = nodes.flat_map(|(at, node)| instead.remove(&at).unwrap_or_else(|| vec![node])).collect();
    graph.initializer.extend(constants);
    Some(proto)
}

/// Expresses nodes by others.
struct Plain<'m> {
    proto: &'m ModelProto,
    /// All names in the model and its bodies, once needed.
    names: HashSet<String>,
    /// New initializers.
    constants: Vec<TensorProto>,
    /// True if some node depends on whether its operand is a constant.
    open: bool,
}

impl Plain<'_> {
    /// The branch that an `If` takes, with fresh names.
    fn branch(&mut self, graph: &Graph, node: &NodeProto, operands: &[ValueId]) -> Option<Vec<NodeProto>> {
        let condition = self.known(graph, *operands.first()?)?;
        let taken = match condition.to_i64()?.as_slice() {
            [0] => "else_branch",
            [_] => "then_branch",
            _ => return None,
        };
        let body = node.attribute.iter().find(|a| a.name() == taken)?.g.as_ref()?;
        if !body.sparse_initializer.is_empty() || !body.quantization_annotation.is_empty() || body.output.len() < node.output.len() {
            return None;
        }
        let defined = body.initializer.iter().map(TensorProto::name);
        let defined = defined.chain(body.node.iter().flat_map(|n| n.output.iter().map(String::as_str))).filter(|name| !name.is_empty());
        let defined: Vec<String> = defined.map(Into::into).collect();
        let names: HashMap<String, String> = defined.into_iter().map(|name| (name.clone(), self.fresh(&name))).collect();
        let name = |name: &String| names.get(name).unwrap_or(name).clone();
        for tensor in &body.initializer {
            self.constants.push(TensorProto { name: tensor.name.as_ref().map(name), ..tensor.clone() });
        }
        let inner = |a: &AttributeProto| AttributeProto { g: a.g.as_ref().map(|g| renamed(g, &names)), ..a.clone() };
        if body.node.iter().any(|n| n.attribute.iter().any(|a| !a.graphs.is_empty())) {
            return None;
        }
        let mut nodes: Vec<NodeProto> = body
            .node
            .iter()
            .map(|n| NodeProto {
                input: n.input.iter().map(name).collect(),
                output: n.output.iter().map(name).collect(),
                attribute: n.attribute.iter().map(inner).collect(),
                ..n.clone()
            })
            .collect();
        let outputs = body.output.iter().map(|o| name(&o.name().to_string())).zip(&node.output).filter(|(_, own)| !own.is_empty());
        nodes.extend(outputs.map(|(value, own)| call("Identity", &[&value], own)));
        Some(nodes)
    }

    /// The indices at which a constant is not 0.
    fn places(&mut self, graph: &Graph, node: &NodeProto, operands: &[ValueId]) -> Option<Vec<NodeProto>> {
        let constant = self.known(graph, *operands.first()?)?;
        let places = if constant.elements() > LARGEST { None } else { constant.nonzero() }?;
        let value = self.constant("places", places.shape(), &places.to_i64()?);
        Some(vec![call("Identity", &[&value], node.output.first()?)])
    }

    /// The constant that determines what an operator does, if known.
    fn known(&mut self, graph: &Graph, value: ValueId) -> Option<Const> {
        let found = eval::exact_constant(graph, value, LARGEST);
        self.open |= found.is_none();
        found
    }

    /// Constants in place of known sizes.
    fn shapes(&mut self, graph: &Graph) -> HashMap<usize, Vec<NodeProto>> {
        let types = graph.ids().flat_map(|id| (0..).zip(&graph.node(id).names).map(move |(port, name)| (name.as_deref(), id.port(port))));
        let types: HashMap<&str, ValueId> = types.filter_map(|(name, value)| Some((name?, value))).collect();
        let nodes = self.proto.graph.iter().flat_map(|g| &g.node).enumerate();
        let plain = |n: &NodeProto| n.op_type() == "Shape" && matches!(n.domain(), "" | "ai.onnx") && n.attribute.is_empty();
        nodes
            .filter(|(_, node)| plain(node))
            .filter_map(|(at, node)| {
                let ([operand], [result]) = (node.input.as_slice(), node.output.as_slice()) else { return None };
                let shape = graph.ty(*types.get(operand.as_str())?)?.known_shape()?;
                let value = self.constant("sizes", &[shape.len() as i64], &shape);
                Some((at, vec![call("Identity", &[&value], result)]))
            })
            .collect()
    }

    fn constant(&mut self, name: &str, shape: &[i64], elements: &[i64]) -> String {
        let name = self.fresh(name);
        let mut tensor = TensorProto { name: Some(name.clone()), dims: shape.to_vec(), ..TensorProto::default() };
        (tensor.data_type, tensor.int64_data) = (Some(INT64), elements.to_vec());
        self.constants.push(tensor);
        name
    }

    /// An unused name.
    fn fresh(&mut self, name: &str) -> String {
        if self.names.is_empty() {
            self.proto.graph.iter().for_each(|graph| collect(graph, &mut self.names));
        }
        let mut fresh = name.to_string();
        while !self.names.insert(fresh.clone()) {
            fresh.push('\u{2032}');
        }
        fresh
    }
}

fn call(kind: &str, operands: &[&str], result: &str) -> NodeProto {
    let input = operands.iter().map(|name| (*name).to_string()).collect();
    NodeProto { op_type: Some(kind.into()), input, output: vec![result.into()], ..NodeProto::default() }
}

/// All names in a graph and its bodies.
fn collect(graph: &GraphProto, names: &mut HashSet<String>) {
    names.extend(graph.input.iter().chain(&graph.output).map(|v| v.name().to_string()));
    names.extend(graph.initializer.iter().map(|t| t.name().to_string()));
    names.extend(graph.sparse_initializer.iter().filter_map(|t| t.values.as_ref()).map(|t| t.name().to_string()));
    for node in &graph.node {
        names.extend(node.input.iter().chain(&node.output).cloned());
        let bodies = node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs));
        bodies.for_each(|body| collect(body, names));
    }
}
