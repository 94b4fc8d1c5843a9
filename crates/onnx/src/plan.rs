//! Decides how every node is written: the original node verbatim, a new spelling, or an
//! initializer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use regraft_ir::onnx::{ImportOperand, Imported, NoSpelling, OnnxSpelling, SpellingInput};
use regraft_ir::{Const, Graph, NodeId, Op, TensorType, ValueId};

use crate::error::WriteError;
use crate::import::{Import, OpaqueSource};
use crate::model::Model;
use crate::spell::Speller;

/// Where a verbatim node's input comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    /// Omitted.
    Nothing,
    /// A value of the graph.
    Value(ValueId),
    /// A constant of the original model that is no longer in the graph, by name: a parameter that
    /// became an attribute at import.
    Original(String),
}

/// How a node is written.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// An input: nothing to write.
    Input,
    /// The original initializer at this index.
    Initializer(usize),
    /// The original sparse initializer at this index.
    Sparse,
    /// A constant that is not in the original model.
    Constant(Const),
    /// The original node at `at`.
    Verbatim {
        /// Its index.
        at: usize,
        /// Its inputs.
        inputs: Vec<Read>,
        /// Names that its subgraphs capture, and the values they must refer to.
        captured: Vec<(String, ValueId)>,
    },
    /// A new node.
    Spelled(OnnxSpelling),
}

/// The forms of all nodes that are written.
pub(crate) struct Plan<'a> {
    pub model: &'a Model,
    pub graph: &'a Graph,
    pub speller: Speller,
    /// Ignore origins where a node can be spelled anew.
    pub respell: bool,
    /// Every node that is written or read, by id.
    pub forms: BTreeMap<NodeId, Form>,
    /// Values of constant cones that are written as initializers.
    pub folded: BTreeMap<ValueId, Const>,
    /// What stands instead of the original initializers at these indices.
    pub flushed: BTreeMap<usize, Const>,
    /// Original constants that verbatim nodes read and the graph no longer holds.
    pub originals: BTreeSet<String>,
    by_name: HashMap<&'a str, ValueId>,
    /// Types of the values of the original model.
    types: HashMap<&'a str, &'a TensorType>,
    initializers: HashMap<&'a str, (usize, &'a Const)>,
}

impl<'a> Plan<'a> {
    /// The plan without any folding.
    pub(crate) fn new(model: &'a Model, graph: &'a Graph, respell: bool) -> Result<Plan<'a>, WriteError> {
        let mut by_name = HashMap::new();
        for id in graph.ids() {
            for (port, name) in graph.node(id).names.iter().enumerate() {
                if let Some(name) = name {
                    by_name.insert(name.as_ref(), id.port(port as u32));
                }
            }
        }
        let mut types = HashMap::new();
        for node in model.graph().ids().map(|id| model.graph().node(id)) {
            let named = node.names.iter().zip(&node.types);
            types.extend(named.filter_map(|(name, ty)| Some((name.as_deref()?, ty.as_ref()?))));
        }
        let positions: HashMap<&str, usize> = model.graph_proto().initializer.iter().enumerate().map(|(at, t)| (t.name(), at)).collect();
        let mut initializers = HashMap::new();
        for id in model.graph().ids() {
            let node = model.graph().node(id);
            if let (Op::Constant(constant), None, Some(name)) = (&node.op, node.origin, node.names.first().and_then(Option::as_deref))
                && let Some(at) = positions.get(name)
            {
                initializers.insert(name, (*at, &constant.value));
            }
        }
        let mut plan = Plan {
            model,
            graph,
            speller: Speller::new(model),
            respell,
            forms: BTreeMap::new(),
            folded: BTreeMap::new(),
            flushed: BTreeMap::new(),
            originals: BTreeSet::new(),
            by_name,
            types,
            initializers,
        };
        plan.build()?;
        Ok(plan)
    }

    /// Decides again, with the folded values as leaves.
    pub(crate) fn build(&mut self) -> Result<(), WriteError> {
        self.originals.clear();
        let mut forms = std::mem::take(&mut self.forms);
        // Nodes that were dead in the original model stay, unless their value is now an
        // initializer.
        let folded: BTreeSet<NodeId> = self.folded.keys().map(|v| v.node).collect();
        let idle =
            |id: &NodeId| !folded.contains(id) && self.graph.node(*id).origin.is_some_and(|at| self.model.idle.contains(&(at as usize)));
        let mut stack: Vec<NodeId> = self.graph.ids().filter(idle).collect();
        stack.extend(self.graph.inputs());
        stack.extend(self.graph.outputs().iter().filter(|o| !self.folded.contains_key(&o.value)).map(|o| o.value.node));
        while let Some(id) = stack.pop() {
            if self.forms.contains_key(&id) {
                continue;
            }
            let form = match forms.remove(&id) {
                Some(known) => known,
                None => self.form(id)?,
            };
            stack.extend(self.reads(id, &form).into_iter().filter(|v| !self.folded.contains_key(v)).map(|v| v.node));
            if let Form::Verbatim { inputs, .. } = &form {
                self.originals.extend(inputs.iter().filter_map(|r| if let Read::Original(name) = r { Some(name.clone()) } else { None }));
            }
            self.forms.insert(id, form);
        }
        Ok(())
    }

    fn form(&self, id: NodeId) -> Result<Form, WriteError> {
        let node = self.graph.node(id);
        let imported = node.origin.and_then(|at| Some((at as usize, self.model.imports.get(at as usize)?.as_ref()?)));
        match (&node.op, imported) {
            (Op::Input(_), _) => Ok(Form::Input),
            (Op::Constant(constant), Some((at, Import::Constant(original)))) if !self.respell && constant.value == *original => {
                Ok(Form::Verbatim { at, inputs: Vec::new(), captured: Vec::new() })
            }
            (Op::Constant(constant), _) => {
                let known = node.names.first().and_then(Option::as_deref).and_then(|name| self.initializers.get(name));
                Ok(match known {
                    Some((at, value)) if **value == constant.value => Form::Initializer(*at),
                    _ => Form::Constant(constant.value.clone()),
                })
            }
            (Op::Opaque(opaque), _) => Ok(self.opaque_form(id, opaque.id)),
            (_, Some((at, Import::Op(imported)))) => {
                let verbatim = || self.recover(at, id, imported).map(|inputs| Form::Verbatim { at, inputs, captured: Vec::new() });
                if !self.respell
                    && let Some(form) = verbatim()
                {
                    return Ok(form);
                }
                self.spelled(id).or_else(|error| verbatim().ok_or(error))
            }
            _ => self.spelled(id),
        }
    }

    fn opaque_form(&self, id: NodeId, source: u32) -> Form {
        let node = self.graph.node(id);
        match self.model.opaque_sources.get(source as usize) {
            Some(OpaqueSource::Initializer(at)) => Form::Initializer(*at),
            Some(OpaqueSource::Sparse(_)) => Form::Sparse,
            Some(OpaqueSource::Node(at)) => {
                let proto = &self.model.graph_proto().node[*at];
                let mut operands = node.inputs.iter().copied();
                let take = |name: &String| if name.is_empty() { Read::Nothing } else { operands.next().map_or(Read::Nothing, Read::Value) };
                let inputs = proto.input.iter().map(take).collect();
                let captured = match &self.model.imports[*at] {
                    Some(Import::Opaque { captured }) => captured.iter().cloned().zip(operands).collect(),
                    _ => Vec::new(),
                };
                Form::Verbatim { at: *at, inputs, captured }
            }
            Some(OpaqueSource::Input(_)) | None => Form::Input,
        }
    }

    /// The inputs of the original node `at`, if the node still is what it was imported as.
    fn recover(&self, at: usize, id: NodeId, imported: &Imported) -> Option<Vec<Read>> {
        let proto = self.model.graph_proto().node.get(at)?;
        let mut found: Vec<Option<ValueId>> = vec![None; proto.input.len()];
        self.match_import(id, imported, &mut found)?;
        let read = |(name, value): (&String, Option<ValueId>)| match value {
            // Parts of a node that became several operators may now read a reshaped operand, whose
            // shape the whole node would take over.
            Some(value) if self.graph.ty(value) != self.types.get(name.as_str()).copied() => None,
            Some(value) => Some(Read::Value(value)),
            None if name.is_empty() => Some(Read::Nothing),
            None => match self.by_name.get(name.as_str()) {
                Some(value) => Some(Read::Value(*value)),
                None => self.is_original_constant(name).then(|| Read::Original(name.clone())),
            },
        };
        proto.input.iter().zip(found).map(read).collect()
    }

    fn match_import(&self, id: NodeId, imported: &Imported, found: &mut [Option<ValueId>]) -> Option<()> {
        let node = self.graph.node(id);
        if node.op != imported.op || node.inputs.len() != imported.operands.len() {
            return None;
        }
        for (value, operand) in node.inputs.iter().zip(&imported.operands) {
            match operand {
                ImportOperand::Input(input) => {
                    let slot = found.get_mut(*input)?;
                    if slot.is_some_and(|known| known != *value) {
                        return None;
                    }
                    *slot = Some(*value);
                }
                ImportOperand::Const(constant) => {
                    if self.graph.constant(*value) != Some(constant) {
                        return None;
                    }
                }
                ImportOperand::Node(inner) => {
                    if value.port != 0 {
                        return None;
                    }
                    self.match_import(value.node, inner, found)?;
                }
            }
        }
        Some(())
    }

    fn is_original_constant(&self, name: &str) -> bool {
        self.initializers.contains_key(name) || self.constant_node(name).is_some()
    }

    /// The index of the original `Constant` node that makes this value.
    pub(crate) fn constant_node(&self, name: &str) -> Option<usize> {
        let nodes = &self.model.graph_proto().node;
        let made = |at: &usize| matches!(self.model.imports[*at], Some(Import::Constant(_))) && nodes[*at].output.iter().any(|o| o == name);
        (0..nodes.len()).find(made)
    }

    /// The index of the original initializer of this name.
    pub(crate) fn initializer(&self, name: &str) -> Option<usize> {
        self.initializers.get(name).map(|(at, _)| *at)
    }

    fn spelled(&self, id: NodeId) -> Result<Form, WriteError> {
        let node = self.graph.node(id);
        let fail = |source| WriteError::NoSpelling { value: value_name(self.graph, id.out()), source };
        let unknown = || fail(NoSpelling { op: node.op.kind().name(), why: "a type is not known".into() });
        let inputs: Vec<TensorType> = node.inputs.iter().map(|v| self.graph.ty(*v).cloned()).collect::<Option<_>>().ok_or_else(unknown)?;
        let outputs: Vec<TensorType> = node.types.iter().cloned().collect::<Option<_>>().ok_or_else(unknown)?;
        self.speller.spell(&node.op, &inputs, &outputs).map(Form::Spelled).map_err(fail)
    }

    /// Values that a node of this form reads.
    pub(crate) fn reads(&self, id: NodeId, form: &Form) -> Vec<ValueId> {
        match form {
            Form::Verbatim { inputs, captured, .. } => {
                let direct = inputs.iter().filter_map(|r| if let Read::Value(v) = r { Some(*v) } else { None });
                direct.chain(captured.iter().map(|c| c.1)).collect()
            }
            Form::Spelled(spelling) => {
                let node = self.graph.node(id);
                let operand = |input: &SpellingInput| match input {
                    SpellingInput::Operand(at) => node.inputs.get(*at).copied(),
                    _ => None,
                };
                let sizes = spelling.inputs.iter().filter_map(|i| if let SpellingInput::Dims(d) = i { Some(d) } else { None });
                let carriers = sizes.flatten().flat_map(|d| self.speller.carriers(self.graph, d));
                spelling.inputs.iter().filter_map(operand).chain(carriers).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A human-readable name for a value.
pub(crate) fn value_name(graph: &Graph, value: ValueId) -> String {
    let node = graph.node(value.node);
    match node.names.get(value.port as usize).and_then(Option::as_ref) {
        Some(name) => name.to_string(),
        None => format!("{} %{}", node.op.kind().name(), value.node.0),
    }
}
