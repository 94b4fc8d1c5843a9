//! Bodies: the graphs in the attributes of `If`, `Loop` and `Scan`, each as a separate model, and
//! back into its attribute.
//!
//! In the model of a body, captured outer values are inputs with their outer types, and captured
//! constants are initializers. It is then read, rewritten and written like any other model. Back in
//! the attribute, captured values are outer names again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use regraft_ir::{Bindings, Dim, Graph, Op, TensorType, ValueId};

use crate::error::WriteError;
use crate::facts::Fact;
use crate::formals::{Link, links};
use crate::import::{Import, OpaqueSource};
use crate::model::Model;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor, Value};
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto, ValueInfoProto};
use crate::scope;
use crate::tensor;
use crate::write::WriteOptions;

/// Attempts to find sizes that every iteration preserves, before all changing sizes are left open.
const ATTEMPTS: usize = 4;

/// What a body model must know about the model around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Every name outside and in other bodies, for new names to avoid.
    pub names: Arc<HashSet<String>>,
    /// A part of new names that is unique to this body.
    pub tag: String,
}

/// A body of a node.
#[derive(Clone, Debug)]
pub struct Body {
    node: usize,
    attribute: usize,
    label: String,
    original: GraphProto,
    captured: HashSet<String>,
    model: Model,
    /// Sizes of the body model in terms of the outer graph's.
    sizes: Vec<(String, Dim)>,
}

/// A rewritten body, to be put in place with [`Model::put_body`].
#[derive(Clone, Debug)]
pub struct WrittenBody {
    node: usize,
    attribute: usize,
    graph: GraphProto,
    opsets: Vec<OperatorSetIdProto>,
}

impl Body {
    /// Where the body is, in words: `the then-branch of check`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The indices of its node and attribute in the model around it.
    pub fn place(&self) -> (usize, usize) {
        (self.node, self.attribute)
    }

    /// The body as a separate model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Values of the body's symbols, where they follow from those of the outer graph. A size that
    /// varies between iterations has its first value.
    pub fn bindings(&self, outer: &Bindings) -> Bindings {
        self.sizes.iter().filter_map(|(symbol, size)| Some((symbol.clone(), size.eval(outer)?))).collect()
    }

    /// Writes a rewritten form of `model` (this body's own, perhaps with other bodies inside) as a
    /// body. An error means that its names clash with the model around it; then the body must stay
    /// as it is.
    pub fn write(&self, model: &Model, graph: &Graph, options: &WriteOptions) -> Result<WrittenBody, WriteError> {
        let proto = model.write(graph, options)?.proto;
        let written = proto.graph.unwrap_or_default();
        let mut body = GraphProto {
            node: written.node,
            initializer: written.initializer,
            sparse_initializer: written.sparse_initializer,
            value_info: written.value_info,
            quantization_annotation: written.quantization_annotation,
            ..self.original.clone()
        };
        body.initializer.retain(|t| !self.captured.contains(t.name()));
        if let Some(shadow) = defined(&body).find(|name| self.captured.contains(*name)) {
            return Err(WriteError::NameConflict(shadow.to_string()));
        }
        if let Some(lost) = scope::free(&body).into_iter().find(|name| !self.captured.contains(*name)) {
            return Err(WriteError::NameConflict(lost.to_string()));
        }
        Ok(WrittenBody { node: self.node, attribute: self.attribute, graph: body, opsets: proto.opset_import })
    }
}

/// A body as a separate model.
struct Apart {
    model: Model,
    /// What its symbols stand for outside.
    sizes: Vec<(String, Dim)>,
    /// The outer names that it reads.
    captured: HashSet<String>,
}

impl Model {
    /// The bodies of this graph's own nodes that can be rewritten; nested bodies belong to their
    /// models.
    ///
    /// Left out, and so kept as they are: bodies of nodes other than `If`, `Loop` and `Scan`,
    /// bodies that return a captured value unchanged, and those that are not in order.
    pub fn bodies(&self) -> Vec<Body> {
        let graph = self.graph();
        let mut names = (*self.surroundings.names).clone();
        scope::all_names(self.graph_proto(), &mut names);
        let names = Arc::new(names);
        let mut bodies = Vec::new();
        for id in graph.ids() {
            let Op::Opaque(opaque) = &graph.node(id).op else { continue };
            let Some(OpaqueSource::Node(at)) = self.opaque_sources.get(opaque.id as usize) else { continue };
            let node = &self.graph_proto().node[*at];
            let Some(Import::Opaque { captured }) = &self.imports[*at] else { continue };
            if !opaque.domain.is_empty() || self.is_function(node) {
                continue;
            }
            let operands = &graph.node(id).inputs;
            let given = node.input.iter().filter(|n| !n.is_empty()).count();
            let outer: Vec<(&str, ValueId)> = captured.iter().map(String::as_str).zip(operands.iter().skip(given).copied()).collect();
            let types = self.input_types(node, operands);
            for (attribute, proto) in node.attribute.iter().enumerate() {
                let Some(body) = &proto.g else { continue };
                let Some(links) = links(node, body, &types, self.opset("").unwrap_or(1)) else { continue };
                let tag = format!("{}b{at}_{attribute}_", self.surroundings.tag);
                let surroundings = Surroundings { names: names.clone(), tag };
                if let Some(Apart { model, sizes, captured }) = self.body_model(body, &outer, &links, surroundings) {
                    let label = format!("the {} of {}", part(proto), name_of(node));
                    bodies.push(Body { node: *at, attribute, label, original: body.clone(), captured, model, sizes });
                }
            }
        }
        bodies
    }

    /// Puts a rewritten body in place.
    pub fn put_body(&mut self, body: WrittenBody) {
        let WrittenBody { node, attribute, graph, opsets } = body;
        let place = self.proto.graph.as_mut().and_then(|g| g.node.get_mut(node)).and_then(|n| n.attribute.get_mut(attribute));
        let Some(place) = place else { return };
        place.g = Some(graph);
        let known: HashSet<String> = self.proto.opset_import.iter().map(|o| o.domain().to_string()).collect();
        self.proto.opset_import.extend(opsets.into_iter().filter(|o| !known.contains(o.domain())));
    }

    fn is_function(&self, node: &NodeProto) -> bool {
        let functions = self.proto.functions.iter();
        functions.filter(|f| matches!(f.domain(), "" | "ai.onnx")).any(|f| f.name() == node.op_type())
    }

    /// Types of a node's own inputs, by position.
    fn input_types(&self, node: &NodeProto, operands: &[ValueId]) -> Vec<Option<TensorType>> {
        let mut operands = operands.iter();
        let mut next = |name: &String| if name.is_empty() { None } else { operands.next().and_then(|v| self.graph().ty(*v).cloned()) };
        node.input.iter().map(&mut next).collect()
    }

    /// Turns a body into a separate model, if possible.
    fn body_model(&self, body: &GraphProto, outer: &[(&str, ValueId)], links: &[Link], surroundings: Surroundings) -> Option<Apart> {
        let captured: HashSet<String> = scope::free(body).into_iter().map(ToString::to_string).collect();
        let formals: HashSet<&str> = body.input.iter().map(|i| i.name()).collect();
        let returns_captured = body.output.iter().any(|o| captured.contains(o.name()));
        if returns_captured || !is_in_order(body) || body.initializer.iter().any(|t| formals.contains(t.name())) {
            return None;
        }
        let mut proto = self.proto.clone_header();
        proto.training_info.clear();
        let mut inner = body.clone();
        let mut sizes: Vec<(String, Dim)> = Vec::new();
        let mut initializers = Vec::new();
        for (name, value) in outer.iter().filter(|(name, _)| captured.contains(*name)) {
            // The writer gives a second name to what is the same as another value.
            match self.graph().constant(self.graph().named(*value)) {
                Some(constant) => initializers.push(tensor::encode(name, constant)),
                None => {
                    let ty = self.graph().ty(*value).map(|ty| declare(ty, self.facts(), &mut sizes));
                    inner.input.push(ValueInfoProto { name: Some((*name).to_string()), r#type: ty, ..ValueInfoProto::default() });
                }
            }
        }
        initializers.append(&mut inner.initializer);
        inner.initializer = initializers;
        let mut open: Vec<Vec<bool>> = links.iter().map(|l| vec![false; l.start().map_or(0, TensorType::rank)]).collect();
        let mut lost = vec![false; links.len()];
        for attempt in 0..=ATTEMPTS {
            for (at, link) in links.iter().enumerate() {
                inner.input[at].r#type =
                    link.declare(&body.input[at], &open[at], lost[at], &mut |ty| declare(ty, self.facts(), &mut sizes));
            }
            proto.graph = Some(inner.clone());
            let model = Model::load_body(proto.clone(), surroundings.clone()).ok()?;
            if settle(&model, links, &mut open, &mut lost, attempt + 1 >= ATTEMPTS) {
                first_sizes(&model, links, &mut sizes);
                return Some(Apart { model, sizes, captured });
            }
        }
        None
    }

    fn load_body(proto: ModelProto, surroundings: Surroundings) -> Result<Model, crate::LoadError> {
        let mut model = Model::load_cautiously(proto)?;
        model.surroundings = surroundings;
        Ok(model)
    }
}

/// Compares what is fed back with what was assumed about it, and retracts assumptions that an
/// iteration breaks (all of them, to `give_up`). True if none was broken: then they hold in every
/// iteration.
fn settle(model: &Model, links: &[Link], open: &mut [Vec<bool>], lost: &mut [bool], give_up: bool) -> bool {
    let types: HashMap<String, Option<TensorType>> = model.outputs().into_iter().map(|o| (o.name, o.ty)).collect();
    let mut broken = Vec::new();
    for (at, link) in links.iter().enumerate() {
        let Link::Carried { start: Some(start), output } = link else { continue };
        let proto = model.graph_proto();
        let Some(assumed) = proto.input.get(at).and_then(|i| input_type(model, i.name())).filter(|ty| ty.rank() == start.rank()) else {
            continue;
        };
        let returned = proto.output.get(*output).and_then(|o| types.get(o.name())).and_then(Option::as_ref);
        let Some(returned) = returned.filter(|ty| ty.rank() == assumed.rank() && ty.dtype == assumed.dtype) else {
            if !lost[at] {
                broken.push((at, None));
            }
            continue;
        };
        let changes = |axis: &usize| !open[at][*axis] && !lost[at] && returned.shape[*axis] != assumed.shape[*axis];
        broken.extend((0..assumed.rank()).filter(changes).map(|axis| (at, Some(axis))));
    }
    for (at, axis) in &broken {
        match axis {
            Some(axis) => open[*at][*axis] = true,
            None => lost[*at] = true,
        }
    }
    if give_up && !broken.is_empty() {
        lost.fill(true);
    }
    broken.is_empty()
}

/// The type of an input of the body model, if it has one.
fn input_type<'m>(model: &'m Model, name: &str) -> Option<&'m TensorType> {
    let graph = model.graph();
    let id = graph.inputs().iter().find(|id| graph.node(**id).names[0].as_deref() == Some(name))?;
    graph.ty(id.out())
}

/// Initializes open sizes with those of the first values fed.
fn first_sizes(model: &Model, links: &[Link], sizes: &mut Vec<(String, Dim)>) {
    for (link, input) in links.iter().zip(&model.graph_proto().input) {
        let Some(start) = link.start() else { continue };
        let Some(ty) = input_type(model, input.name()).filter(|ty| ty.rank() == start.rank()) else { continue };
        for (here, first) in ty.shape.iter().zip(&start.shape) {
            if let Some(symbol) = here.as_symbol()
                && !sizes.iter().any(|(known, _)| known == symbol)
            {
                sizes.push((symbol.to_string(), first.clone()));
            }
        }
    }
}

/// A type as the body model declares it; the meanings of its symbols go into `sizes`.
fn declare(ty: &TensorType, facts: &[Fact], sizes: &mut Vec<(String, Dim)>) -> TypeProto {
    let mut dim = |size: &Dim| {
        let value = match size.known() {
            Some(number) => dimension::Value::DimValue(number),
            None => {
                // A computed size gets its own symbol inside: equal ones stay equal there.
                let outside = || facts.iter().find(|fact| fact.size == *size).map(|fact| fact.symbol.clone());
                let symbol = size.as_symbol().map(ToString::to_string).or_else(outside).unwrap_or_else(|| format!("expr({size})"));
                if !sizes.iter().any(|(known, _)| *known == symbol) {
                    sizes.push((symbol.clone(), size.clone()));
                }
                dimension::Value::DimParam(symbol)
            }
        };
        Dimension { value: Some(value), denotation: None }
    };
    let shape = TensorShapeProto { dim: ty.shape.iter().map(&mut dim).collect() };
    TypeProto { value: Some(Value::TensorType(Tensor { elem_type: Some(ty.dtype.to_onnx()), shape: Some(shape) })), denotation: None }
}

/// Names that a graph defines.
fn defined(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let leaves = graph.input.iter().map(|i| i.name()).chain(graph.initializer.iter().map(|t| t.name()));
    let sparse = graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref()).map(|t| t.name());
    let results = graph.node.iter().flat_map(|n| n.output.iter().map(String::as_str));
    leaves.chain(sparse).chain(results).filter(|n| !n.is_empty())
}

/// Whether no node reads a value that a later one defines: such a name could refer to an outer
/// value.
fn is_in_order(graph: &GraphProto) -> bool {
    let mut later: HashSet<&str> = graph.node.iter().flat_map(|n| n.output.iter().map(String::as_str)).filter(|n| !n.is_empty()).collect();
    for node in &graph.node {
        if node.input.iter().map(String::as_str).chain(scope::captured(node)).any(|name| later.contains(name)) {
            return false;
        }
        for name in &node.output {
            later.remove(name.as_str());
        }
    }
    true
}

fn name_of(node: &NodeProto) -> &str {
    if node.name().is_empty() {
        node.output.iter().map(String::as_str).find(|n| !n.is_empty()).unwrap_or(node.op_type())
    } else {
        node.name()
    }
}

fn part(attribute: &AttributeProto) -> String {
    attribute.name().replace('_', "-")
}
