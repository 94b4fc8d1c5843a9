//! From a plan and names to protobuf nodes, in order.

use std::collections::{HashMap, HashSet};

use regraft_ir::onnx::{NoSpelling, OnnxSpelling, SpellingInput};
use regraft_ir::{Attr, Const, NodeId, ValueId};

use crate::attribute;
use crate::error::WriteError;
use crate::names::Names;
use crate::plan::{Form, Plan, Read, value_name};
use crate::proto::{NodeProto, TensorProto};
use crate::scope;
use crate::sizes::SizeNodes;
use crate::tensor;

/// Writes nodes and constants.
pub(crate) struct Emitter<'p> {
    plan: &'p Plan<'p>,
    pub names: Names<'p>,
    pub nodes: Vec<NodeProto>,
    /// Initializers that are not in the original model.
    pub initializers: Vec<TensorProto>,
    /// Domains of new nodes.
    pub domains: HashSet<&'static str>,
    pub(crate) size_nodes: SizeNodes,
    constants: HashMap<Const, String>,
    emitted_aliases: HashSet<String>,
    emitted_originals: HashSet<String>,
    /// Models before IR version 4 must list initializers as inputs; there, new constants are
    /// `Constant` nodes.
    as_nodes: bool,
}

impl<'p> Emitter<'p> {
    /// Writes everything that the plan holds.
    pub(crate) fn emit(plan: &'p Plan<'p>, names: Names<'p>) -> Result<Emitter<'p>, WriteError> {
        let mut emitter = Emitter {
            plan,
            names,
            nodes: Vec::new(),
            initializers: Vec::new(),
            domains: HashSet::new(),
            size_nodes: SizeNodes::default(),
            constants: HashMap::new(),
            emitted_aliases: HashSet::new(),
            emitted_originals: HashSet::new(),
            as_nodes: plan.model.proto.ir_version() < 4,
        };
        emitter.new_constants();
        for id in order(plan)? {
            emitter.node(id)?;
        }
        let outputs: Vec<String> = plan.graph.outputs().iter().map(|o| o.name.to_string()).collect();
        outputs.iter().for_each(|name| emitter.alias(name));
        Ok(emitter)
    }

    /// Constants of the graph that are not in the original model, and folded values.
    fn new_constants(&mut self) {
        let plan = self.plan;
        let fresh =
            plan.forms.iter().filter_map(|(id, form)| if let Form::Constant(value) = form { Some((id.out(), value)) } else { None });
        let mut all: Vec<(ValueId, &Const)> = fresh.chain(plan.folded.iter().map(|(v, c)| (*v, c))).collect();
        all.sort_by_key(|(value, _)| *value);
        for (value, constant) in all {
            let name = self.names.get(value).to_string();
            self.define(&name, constant);
        }
    }

    fn define(&mut self, name: &str, constant: &Const) {
        if !self.as_nodes {
            self.initializers.push(tensor::encode(name, constant));
            return;
        }
        let value = attribute::encode("value", &Attr::Tensor(constant.clone())).ok().flatten();
        self.nodes.push(NodeProto {
            output: vec![name.to_string()],
            name: Some(name.to_string()),
            op_type: Some("Constant".into()),
            attribute: value.into_iter().collect(),
            ..NodeProto::default()
        });
    }

    /// The name of a constant introduced by a spelling; equal ones are written once.
    pub(crate) fn constant(&mut self, constant: &Const) -> String {
        if let Some(name) = self.constants.get(constant) {
            return name.clone();
        }
        let name = self.names.fresh("const");
        self.define(&name, constant);
        self.constants.insert(constant.clone(), name.clone());
        name
    }

    /// Adds a node of the standard domain with integer attributes; returns the name of its result.
    pub(crate) fn computed(&mut self, op_type: &str, inputs: &[&str], attrs: &[(&str, i64)]) -> String {
        let name = self.names.fresh(&op_type.to_lowercase());
        let attribute = attrs.iter().filter_map(|(n, v)| attribute::encode(n, &Attr::Int(*v)).ok().flatten()).collect();
        self.nodes.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![name.clone()],
            name: Some(name.clone()),
            op_type: Some(op_type.to_string()),
            attribute,
            ..NodeProto::default()
        });
        name
    }

    /// Writes the second name of a value, once.
    fn alias(&mut self, name: &str) {
        let Some(value) = self.names.aliases.get(name).copied() else { return };
        if !self.emitted_aliases.insert(name.to_string()) {
            return;
        }
        self.nodes.push(NodeProto {
            input: vec![self.names.get(value).to_string()],
            output: vec![name.to_string()],
            name: Some(self.names.fresh("alias")),
            op_type: Some("Identity".into()),
            ..NodeProto::default()
        });
    }

    fn node(&mut self, id: NodeId) -> Result<(), WriteError> {
        let plan = self.plan;
        match &plan.forms[&id] {
            Form::Input | Form::Initializer(_) | Form::Sparse | Form::Constant(_) => Ok(()),
            Form::Verbatim { at, inputs, captured } => {
                captured.iter().for_each(|(name, _)| self.alias(name));
                self.verbatim(id, *at, inputs);
                Ok(())
            }
            Form::Spelled(spelling) => self.spelled(id, spelling),
        }
    }

    fn verbatim(&mut self, id: NodeId, at: usize, inputs: &[Read]) {
        let mut proto = self.plan.model.graph_proto().node[at].clone();
        for (slot, read) in proto.input.iter_mut().zip(inputs) {
            match read {
                Read::Nothing => {}
                Read::Value(value) => *slot = self.names.get(*value).to_string(),
                Read::Original(name) => {
                    if let Some(maker) = self.plan.constant_node(name)
                        && self.emitted_originals.insert(name.clone())
                    {
                        self.nodes.push(self.plan.model.graph_proto().node[maker].clone());
                    }
                }
            }
        }
        let results = self.plan.graph.node(id).types.len();
        for (port, slot) in proto.output.iter_mut().enumerate().filter(|(_, name)| !name.is_empty()) {
            if port < results {
                *slot = self.result_name(id.port(port as u32));
            } else if !self.names.claim(slot) {
                *slot = self.names.fresh("unused");
            }
        }
        self.nodes.push(proto);
    }

    /// The name of a node's result. A folded result already carries its name as an initializer;
    /// this one is not read.
    fn result_name(&mut self, value: ValueId) -> String {
        if self.plan.folded.contains_key(&value) { self.names.fresh("unused") } else { self.names.get(value).to_string() }
    }

    fn spelled(&mut self, id: NodeId, spelling: &OnnxSpelling) -> Result<(), WriteError> {
        let node = self.plan.graph.node(id);
        let fail = |why: String| WriteError::NoSpelling {
            value: value_name(self.plan.graph, id.out()),
            source: NoSpelling { op: node.op.kind().name(), why },
        };
        let mut inputs = Vec::with_capacity(spelling.inputs.len());
        for input in &spelling.inputs {
            inputs.push(match input {
                SpellingInput::Missing => String::new(),
                SpellingInput::Const(constant) => self.constant(constant),
                SpellingInput::Operand(at) => {
                    let value = node.inputs.get(*at).ok_or_else(|| fail(format!("it has no operand {at}")))?;
                    self.names.get(*value).to_string()
                }
                SpellingInput::Dims(sizes) => {
                    self.sizes(self.plan.graph, sizes).map_err(|symbol| fail(format!("no input carries the size {symbol}")))?
                }
            });
        }
        while inputs.last().is_some_and(String::is_empty) {
            inputs.pop();
        }
        let mut attributes = Vec::with_capacity(spelling.attrs.len());
        for (name, value) in &spelling.attrs {
            attributes.extend(attribute::encode(name, value).map_err(&fail)?);
        }
        let output: Vec<String> = (0..node.types.len()).map(|port| self.result_name(id.port(port as u32))).collect();
        let original = node.origin.and_then(|at| self.plan.model.graph_proto().node.get(at as usize)).and_then(|n| n.name.clone());
        let name = original.or_else(|| output.first().cloned());
        self.domains.insert(spelling.domain);
        self.nodes.push(NodeProto {
            input: inputs,
            output,
            name,
            op_type: Some(spelling.op_type.to_string()),
            domain: (!spelling.domain.is_empty()).then(|| spelling.domain.to_string()),
            attribute: attributes,
            ..NodeProto::default()
        });
        Ok(())
    }
}

/// Nodes of the plan, operands before readers, smallest id first.
fn order(plan: &Plan<'_>) -> Result<Vec<NodeId>, WriteError> {
    let ids: Vec<NodeId> = plan.forms.keys().copied().collect();
    let position: HashMap<NodeId, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut sources = Vec::with_capacity(ids.len());
    for (id, form) in &plan.forms {
        let reads = plan.reads(*id, form).into_iter().filter(|v| !plan.folded.contains_key(v));
        sources.push(reads.filter_map(|v| position.get(&v.node).copied()).collect());
    }
    let order = scope::sort(&sources);
    if order.len() < ids.len() {
        let at = scope::on_cycle(&sources, &order);
        return Err(WriteError::Cycle(value_name(plan.graph, ids[at].out())));
    }
    Ok(order.into_iter().map(|at| ids[at]).collect())
}
