//! From a checked `ModelProto` to a [`Graph`]: every node becomes an operator or stays opaque, with
//! a reason.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use regraft_ir::eval::exact_constant;
use regraft_ir::onnx::{ImportOperand, Imported, OnnxInput, OnnxNode};
use regraft_ir::ops::OpaqueOp;
use regraft_ir::ops::identity::Identity;
use regraft_ir::{
    Attr, Bindings, Class, Const, DType, Dim, EvalContext, Graph, NodeId, Op, OpKind, PartialType, TensorType, Value, ValueId,
};

use crate::attribute;
use crate::declared::{Agreement, Symbols, compare};
use crate::effects::Effects;
use crate::error::{LoadError, LoadFault, Location};
use crate::facts::{Fact, Given, Need};
use crate::presume::presume;
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{GraphProto, ModelProto, NodeProto, TensorProto, TypeProto};
use crate::refusal::{Refusal, operand_type};
use crate::scope::{Scope, describe};
use crate::stand_in::{self, kinds};
use crate::symbolic::{Sizes, View, follow};
use crate::tensor::{self, Decoded};

/// Largest tensor, in elements, that is computed at import to read an operator's parameters.
const MAX_EVALUATED: i64 = 64 * 1024;

/// Longest integer tensor that takes part in symbolic size arithmetic.
const MAX_SIZES: usize = 64;

/// Meaningless attributes: hints of old opsets.
const MEANINGLESS: [&str; 1] = ["consumed_inputs"];

/// What an original node became.
#[derive(Clone, Debug)]
pub(crate) enum Import {
    /// Operators, with how to recover the node's inputs from their operands.
    Op(Imported),
    /// A constant (a `Constant` node).
    Constant(Const),
    /// Kept verbatim. Operands beyond its inputs have these names, captured by its subgraphs.
    Opaque {
        /// The names, in the order of the extra operands.
        captured: Vec<String>,
    },
}

/// What an opaque operator stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpaqueSource {
    /// The node at this index.
    Node(usize),
    /// The initializer at this index: strings, an exotic type, or updated by training.
    Initializer(usize),
    /// The sparse initializer at this index.
    Sparse(usize),
    /// The graph input at this index: not a tensor of known rank.
    Input(usize),
}

/// An opaque node and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpaqueNode {
    /// The node's name, or its first output.
    pub node: String,
    /// Operator type, with its domain unless it is the standard one.
    pub op_type: String,
    /// The reason.
    pub why: String,
}

/// Everything that import learns.
pub(crate) struct Outcome {
    pub graph: Graph,
    pub imports: Vec<Option<Import>>,
    pub opaque_sources: Vec<OpaqueSource>,
    pub opaque_nodes: Vec<OpaqueNode>,
    pub idle: HashSet<usize>,
    pub read: HashSet<String>,
    pub notes: Vec<String>,
    pub facts: Vec<Fact>,
}

/// Reads one graph, node by node.
pub(crate) struct Importer<'a> {
    model: &'a ModelProto,
    proto: &'a GraphProto,
    scope: &'a Scope<'a>,
    trust: bool,
    effects: Effects<'a>,
    pub graph: Graph,
    /// Hands out the names of sizes.
    pub symbols: Symbols,
    varies: HashSet<String>,
    values: HashMap<&'a str, ValueId>,
    declared: HashMap<&'a str, &'a TypeProto>,
    sizes: HashMap<ValueId, Sizes>,
    computed: HashMap<NodeId, Option<Vec<Value<f64>>>>,
    imports: Vec<Option<Import>>,
    opaque_sources: Vec<OpaqueSource>,
    opaque_nodes: Vec<OpaqueNode>,
    /// Declared types that are shown to be wrong.
    pub distrust: Vec<String>,
    /// What the nodes that outputs depend on say about sizes.
    pub needs: Vec<Need>,
}

impl<'a> Importer<'a> {
    /// An importer that has read nothing yet; with `trust`, it believes declared intermediate
    /// sizes.
    pub(crate) fn new(model: &'a ModelProto, proto: &'a GraphProto, scope: &'a Scope<'a>, trust: bool, given: &Given) -> Importer<'a> {
        let infos = proto.value_info.iter().chain(&proto.output);
        Importer {
            model,
            proto,
            scope,
            trust,
            effects: Effects::of(model),
            graph: Graph::new(proto.name()),
            symbols: Symbols::new(proto, given),
            varies: HashSet::new(),
            values: HashMap::new(),
            declared: infos.filter_map(|i| Some((i.name(), i.r#type.as_ref()?))).collect(),
            sizes: HashMap::new(),
            computed: HashMap::new(),
            imports: vec![None; proto.node.len()],
            opaque_sources: Vec::new(),
            opaque_nodes: Vec::new(),
            distrust: Vec::new(),
            needs: Vec::new(),
        }
    }

    /// Reads everything.
    pub(crate) fn run(mut self) -> Result<Importer<'a>, LoadError> {
        self.leaves()?;
        for at in self.scope.order.clone() {
            self.node(at);
        }
        for output in &self.proto.output {
            // The scope has checked that the name is defined; unread leaves of unknown type have no
            // value and are not outputs.
            if let Some(value) = self.values.get(output.name()) {
                self.graph.add_output(output.name(), *value);
            }
        }
        Ok(self)
    }

    /// What was read.
    pub(crate) fn finish(self) -> Outcome {
        Outcome {
            graph: self.graph,
            imports: self.imports,
            opaque_sources: self.opaque_sources,
            opaque_nodes: self.opaque_nodes,
            idle: self.scope.idle.clone(),
            read: self.scope.read.iter().map(ToString::to_string).collect(),
            notes: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// Inputs and initializers.
    pub(crate) fn leaves(&mut self) -> Result<(), LoadError> {
        let constant_inputs = self.model.ir_version() < 4;
        let initializers: HashMap<&str, usize> = self.proto.initializer.iter().enumerate().map(|(at, t)| (t.name(), at)).collect();
        for (at, input) in self.proto.input.iter().enumerate() {
            let initializer = initializers.get(input.name()).map(|i| &self.proto.initializer[*i]);
            if initializer.is_some() && constant_inputs {
                continue;
            }
            let declared = input.r#type.as_ref().and_then(|ty| self.symbols.tensor_type(ty, input.name(), true));
            let default =
                initializer.filter(|t| t.data_type() > 0).map(|t| TensorType::new(DType::from_onnx(t.data_type()), t.dims.iter().copied()));
            if let Some(ty) = declared.or(default) {
                let mut symbols = Vec::new();
                ty.shape.iter().for_each(|d| d.symbols(&mut symbols));
                self.varies.extend(symbols);
                let value = self.graph.add_input(input.name(), ty);
                self.values.insert(input.name(), value);
            } else {
                self.opaque_leaf(OpaqueSource::Input(at), input.name(), "Input", "its type is no tensor of known rank", None);
            }
        }
        let updated = self.updated_by_training();
        for (at, tensor) in self.proto.initializer.iter().enumerate() {
            if self.values.contains_key(tensor.name()) {
                self.check_default(tensor)?;
                continue;
            }
            let location = || Location { graph: self.proto.name().to_string(), node: None };
            let decoded = tensor::decode(tensor).map_err(|fault| LoadError::at(location(), fault))?;
            match decoded {
                Decoded::Const(value) if !updated.contains(tensor.name()) => {
                    let id = self.graph.add_const(value);
                    self.graph.set_name(id, tensor.name());
                    self.values.insert(tensor.name(), id);
                }
                Decoded::Const(value) => {
                    let ty = Some(value.ty());
                    self.opaque_leaf(OpaqueSource::Initializer(at), tensor.name(), "Initializer", "training updates it", ty);
                }
                Decoded::Exotic(dtype) => {
                    let ty = Some(TensorType::new(dtype, tensor.dims.iter().copied()));
                    self.opaque_leaf(
                        OpaqueSource::Initializer(at),
                        tensor.name(),
                        "Initializer",
                        "its element type has no arithmetic here",
                        ty,
                    );
                }
                Decoded::Unknown(code) if self.scope.read.contains(tensor.name()) => {
                    let fault = LoadFault::DType { tensor: tensor.name().to_string(), code };
                    return Err(LoadError::at(location(), fault));
                }
                Decoded::Unknown(_) => {}
            }
        }
        for (at, sparse) in self.proto.sparse_initializer.iter().enumerate() {
            let Some(values) = &sparse.values else { continue };
            let known = sparse.dims.iter().all(|d| *d >= 0) && values.data_type() > 0;
            let ty = known.then(|| TensorType::new(DType::from_onnx(values.data_type()), sparse.dims.iter().copied()));
            self.opaque_leaf(OpaqueSource::Sparse(at), values.name(), "SparseInitializer", "it is sparse", ty);
        }
        Ok(())
    }

    fn check_default(&self, tensor: &TensorProto) -> Result<(), LoadError> {
        tensor::decode(tensor).map(|_| ()).map_err(LoadError::new)
    }

    fn opaque_leaf(&mut self, source: OpaqueSource, name: &'a str, op_type: &str, why: &str, ty: Option<TensorType>) {
        let op = Op::Opaque(self.opaque(source, op_type, "", &[], 1, why));
        let value = self.graph.add_typed(op, &[], vec![ty]).out();
        self.graph.set_name(value, name);
        self.values.insert(name, value);
    }

    fn opaque(&mut self, source: OpaqueSource, op_type: &str, domain: &str, given: &[bool], results: usize, why: &str) -> OpaqueOp {
        let id = self.opaque_sources.len() as u32;
        self.opaque_sources.push(source);
        let why = Arc::from(why);
        OpaqueOp { op_type: op_type.into(), domain: domain.into(), given: given.into(), results, why, effects: false, id }
    }

    /// Names of initializers that a training step writes.
    fn updated_by_training(&self) -> HashSet<&'a str> {
        let infos = self.model.training_info.iter();
        infos.flat_map(|t| t.initialization_binding.iter().chain(&t.update_binding)).map(|e| e.key()).collect()
    }

    fn node(&mut self, at: usize) {
        let node = &self.proto.node[at];
        match self.defined(at, node) {
            Ok((import, id)) => {
                self.graph.set_origin(id, at as u32);
                self.imports[at] = Some(import);
                self.name_results(node, id);
                self.check_declared(node, id);
            }
            Err(refusal) => self.keep(at, node, refusal),
        }
        self.track(node);
    }

    fn name_results(&mut self, node: &'a NodeProto, id: NodeId) {
        let results = self.graph.node(id).types.len();
        for (port, name) in node.output.iter().enumerate().take(results).filter(|(_, n)| !n.is_empty()) {
            let value = id.port(port as u32);
            self.graph.set_name(value, name);
            self.values.insert(name, value);
        }
    }

    fn keep(&mut self, at: usize, node: &'a NodeProto, refusal: Refusal) {
        if !self.scope.idle.contains(&at) {
            self.needs.extend(refusal.needs.into_iter().map(|sizes| Need { node: describe(node), sizes }));
        }
        let domain = standard(node.domain());
        let op_type = if domain.is_empty() { node.op_type().to_string() } else { format!("{domain}:{}", node.op_type()) };
        self.opaque_nodes.push(OpaqueNode { node: describe(node), op_type, why: refusal.why.clone() });
        let given: Vec<bool> = node.input.iter().map(|n| !n.is_empty()).collect();
        let captured = self.scope.captured.get(&at).cloned().unwrap_or_default();
        let read = node.input.iter().map(String::as_str).filter(|n| !n.is_empty()).chain(captured.iter().copied());
        let operands: Vec<ValueId> = read.filter_map(|n| self.values.get(n).copied()).collect();
        let mut types: Vec<Option<TensorType>> = node.output.iter().map(|name| self.declared_type(name)).collect();
        let attrs = || node.attribute.iter().filter_map(|a| Some((a.name().to_string(), attribute::decode(a)?)));
        let stand_in = |view: &View<'_>| stand_in::first_result(view, &attrs().collect());
        let mut presumed = self.with_view(node, |view| Some(presume(view, &stand_in))).unwrap_or_default().into_iter();
        let mut inferred = refusal.types.into_iter();
        for (ty, name) in types.iter_mut().zip(&node.output) {
            if let (Some(sure), _) | (None, Some(Some(sure))) = (inferred.next(), presumed.next()) {
                *ty = Some(self.completed(sure, ty.take(), name));
            }
        }
        if let (("", "OptionalGetElement"), [first, ..]) = ((domain, node.op_type()), types.as_mut_slice())
            && first.is_none()
        {
            *first = node.input.first().and_then(|name| self.declared_element(name));
        }
        let effects = self.effects.has(node);
        let op = OpaqueOp { effects, ..self.opaque(OpaqueSource::Node(at), node.op_type(), domain, &given, types.len(), &refusal.why) };
        let id = self.graph.add_typed(Op::Opaque(op), &operands, types);
        self.graph.set_origin(id, at as u32);
        self.imports[at] = Some(Import::Opaque { captured: captured.iter().map(ToString::to_string).collect() });
        self.name_results(node, id);
    }

    /// The sure type, with declared sizes or symbols of their own where it is open.
    fn completed(&mut self, sure: PartialType, declared: Option<TensorType>, name: &str) -> TensorType {
        let declared = declared.filter(|ty| ty.rank() == sure.shape.len());
        let size = |(axis, size): (usize, Option<Dim>)| {
            size.or_else(|| Some(declared.as_ref()?.shape[axis].clone())).unwrap_or_else(|| self.symbols.fresh(name, axis))
        };
        TensorType { dtype: sure.dtype, shape: sure.shape.into_iter().enumerate().map(size).collect() }
    }

    fn declared_type(&mut self, name: &str) -> Option<TensorType> {
        let ty = *self.declared.get(name)?;
        self.symbols.tensor_type(ty, name, self.trust)
    }

    /// The declared element type of an optional value.
    fn declared_element(&mut self, name: &str) -> Option<TensorType> {
        let input = self.proto.input.iter().find(|input| input.name() == name).and_then(|input| input.r#type.as_ref());
        let Some(TypeValue::OptionalType(optional)) = &input.or(self.declared.get(name).copied())?.value else { return None };
        self.symbols.tensor_type(optional.elem_type.as_ref()?, name, self.trust)
    }

    /// Notes where the model declares a type other than the inferred one.
    fn check_declared(&mut self, node: &NodeProto, id: NodeId) {
        for (port, name) in node.output.iter().enumerate() {
            let Some(declared) = self.declared.get(name.as_str()) else { continue };
            let Some(Some(inferred)) = self.graph.node(id).types.get(port) else { continue };
            let doubt = match compare(declared, inferred, &self.varies) {
                Agreement::Fits => continue,
                Agreement::Stale => format!("`{name}` is {inferred}"),
                Agreement::Contradicts => format!("`{name}` is {inferred}, another element type or rank is declared"),
            };
            if self.distrust.len() < 3 {
                self.distrust.push(doubt);
            }
        }
    }

    /// The node as defined operators, or the reason why it must stay opaque.
    fn defined(&mut self, at: usize, node: &'a NodeProto) -> Result<(Import, NodeId), Refusal> {
        let domain = standard(node.domain());
        if self.model.functions.iter().any(|f| f.name() == node.op_type() && standard(f.domain()) == domain) {
            return Err("it calls a local function".into());
        }
        if self.scope.captured.contains_key(&at) {
            return Err("it has subgraphs".into());
        }
        if domain.is_empty() && node.op_type() == "Constant" {
            let value = constant_node(node)?;
            let id = self.graph.add_const(value.clone()).node;
            return Ok((Import::Constant(value), id));
        }
        if domain.is_empty() && node.op_type() == "NonZero" {
            let places = self.places(node).ok_or("its result has as many columns as its operand has elements that are not 0")?;
            let imported = Imported { op: Op::Identity(Identity {}), operands: vec![ImportOperand::Const(places)] };
            let id = self.build(&imported, node)?;
            return Ok((Import::Op(imported), id));
        }
        let key = if domain.is_empty() { node.op_type().to_string() } else { format!("{domain}:{}", node.op_type()) };
        let Some(kinds) = kinds().get(key.as_str()) else { return Err("the operator is not defined here".into()) };
        let view = self.view(node, domain)?;
        let mut first = None;
        for kind in kinds {
            match self.operator(*kind, &view, node) {
                Ok(imported) => {
                    let id = self.build(&imported, node)?;
                    return Ok((Import::Op(imported), id));
                }
                Err(refusal) => first = first.or(Some(refusal)),
            }
        }
        Err(first.unwrap_or_else(|| "the operator is not defined here".into()))
    }

    /// What `NonZero` gives for a constant that no rounding decides: exporters write `arange` so.
    fn places(&self, node: &NodeProto) -> Option<Const> {
        let constant = exact_constant(&self.graph, self.operand(node, 0).ok()?, MAX_EVALUATED as usize)?;
        if constant.elements() as i64 > MAX_EVALUATED { None } else { constant.nonzero() }
    }

    /// The node as an operator of this kind, fully determined.
    fn operator(&self, kind: OpKind, view: &OnnxNode, node: &NodeProto) -> Result<Imported, Refusal> {
        let imported = kind.import(view).map_err(|opaque| opaque.0)?;
        if let Some(name) = view.attrs.unread().into_iter().find(|name| !MEANINGLESS.contains(name)) {
            return Err(format!("the attribute `{name}` of {} has no meaning here", node.op_type()).into());
        }
        let inputs = imported.operands.iter().map(|operand| self.operand_type(operand, node)).collect::<Result<Vec<_>, Refusal>>()?;
        let types = imported.op.infer(&inputs)?;
        let wanted = view.outputs.iter().rposition(|used| *used).map_or(0, |last| last + 1);
        let why = if types.len() < wanted {
            Some(format!("result {} is used, which is not defined here", wanted - 1))
        } else if let Some(symbol) = self.unread_symbol(&types, &imported, node)? {
            Some(format!("its size {symbol} is that of a value which it reads the shape of only"))
        } else if reads_computed(view, &imported) {
            // Inputs that are no longer operands must be expressible when writing.
            imported.op.spell(&inputs, &types, view.version).err().map(|e| e.to_string())
        } else {
            None
        };
        match why {
            Some(why) => Err(Refusal { types: types.into_iter().map(PartialType::from).collect(), ..why.into() }),
            None => Ok(imported),
        }
    }

    /// The neutral view of the node.
    fn view(&mut self, node: &'a NodeProto, domain: &str) -> Result<OnnxNode, String> {
        let mut attrs = Vec::with_capacity(node.attribute.len());
        for attribute in &node.attribute {
            let value =
                attribute::decode(attribute).ok_or_else(|| format!("the attribute `{}` is of a kind not used here", attribute.name()))?;
            attrs.push((attribute.name().to_string(), value));
        }
        let mut inputs = Vec::with_capacity(node.input.len());
        for name in &node.input {
            inputs.push(if name.is_empty() { None } else { Some(self.input(name)?) });
        }
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        let outputs = node.output.iter().map(|n| !n.is_empty() && self.scope.read.contains(n.as_str())).collect();
        Ok(OnnxNode {
            op_type: node.op_type().to_string(),
            domain: domain.to_string(),
            version: self.version(domain),
            attrs: attrs.into_iter().collect(),
            inputs,
            outputs,
        })
    }

    fn input(&mut self, name: &str) -> Result<OnnxInput, String> {
        let value = *self.values.get(name).ok_or_else(|| format!("the input `{name}` has no value here"))?;
        let constant = self.constant(value);
        let dims = if constant.is_none() { self.sizes.get(&value).map(|s| s.dims.clone()) } else { None };
        Ok(OnnxInput { ty: self.graph.ty(value).cloned(), value: constant, dims })
    }

    fn version(&self, domain: &str) -> i64 {
        version_of(self.model, domain).unwrap_or(1)
    }

    fn operand(&self, node: &NodeProto, input: usize) -> Result<ValueId, String> {
        let name = node.input.get(input).ok_or_else(|| format!("input {input} is left out"))?;
        self.values.get(name.as_str()).copied().ok_or_else(|| format!("input {input} is left out"))
    }

    /// The type of an import's operand, without touching the graph.
    fn operand_type(&self, operand: &ImportOperand, node: &NodeProto) -> Result<TensorType, Refusal> {
        operand_type(operand, &|input| {
            let value = self.operand(node, input)?;
            self.graph.ty(value).cloned().ok_or_else(|| format!("the type of input {input} is not known"))
        })
    }

    /// A symbol in the result types that neither an input of the model nor an operand carries: once
    /// the shape is an attribute, nothing keeps alive the value that the size is read from.
    fn unread_symbol(&self, types: &[TensorType], imported: &Imported, node: &NodeProto) -> Result<Option<String>, String> {
        let mut wanted = Vec::new();
        types.iter().flat_map(|ty| ty.shape.iter()).for_each(|size| size.symbols(&mut wanted));
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut known = Vec::new();
        let inputs = self.graph.inputs().iter().filter_map(|id| self.graph.ty(id.out()));
        inputs.flat_map(|ty| ty.shape.iter()).for_each(|size| size.symbols(&mut known));
        self.operand_symbols(imported, node, &mut known)?;
        Ok(wanted.into_iter().find(|symbol| !known.contains(symbol)))
    }

    fn operand_symbols(&self, imported: &Imported, node: &NodeProto, symbols: &mut Vec<String>) -> Result<(), String> {
        for operand in &imported.operands {
            match operand {
                ImportOperand::Input(input) => {
                    let ty = self.graph.ty(self.operand(node, *input)?);
                    ty.iter().flat_map(|ty| ty.shape.iter()).for_each(|size| size.symbols(symbols));
                }
                ImportOperand::Const(_) => {}
                ImportOperand::Node(inner) => self.operand_symbols(inner, node, symbols)?,
            }
        }
        Ok(())
    }

    fn build(&mut self, imported: &Imported, node: &NodeProto) -> Result<NodeId, String> {
        let mut operands = Vec::with_capacity(imported.operands.len());
        for operand in &imported.operands {
            operands.push(match operand {
                ImportOperand::Input(input) => self.operand(node, *input)?,
                ImportOperand::Const(value) => self.graph.add_const(value.clone()),
                ImportOperand::Node(inner) => self.build(inner, node)?.out(),
            });
        }
        self.graph.add(imported.op.clone(), &operands).map_err(|e| e.to_string())
    }

    /// The constant behind a value: computes small cones of constants and of numeric sizes.
    fn constant(&mut self, value: ValueId) -> Option<Const> {
        if let Some(constant) = self.graph.constant(value) {
            return Some(constant.clone());
        }
        let dtype = self.graph.ty(value)?.dtype;
        self.compute(value.node);
        self.computed.get(&value.node)?.as_ref()?.get(value.port as usize)?.to_const(dtype)
    }

    /// The value of a computed shape whose sizes are all numbers.
    fn settled(&self, value: ValueId) -> Option<Const> {
        let sizes = self.sizes.get(&value)?;
        let numbers: Vec<i64> = sizes.dims.iter().map(Dim::known).collect::<Option<_>>()?;
        let shape: &[i64] = if sizes.scalar { &[] } else { &[numbers.len() as i64] };
        Const::from_i64(self.graph.ty(value).map_or(DType::I64, |t| t.dtype), shape, &numbers)
    }

    /// Computes a node and everything below it, each once, unless one depends on an input or an
    /// intermediate tensor is large.
    fn compute(&mut self, root: NodeId) {
        let mut stack = vec![root];
        while let Some(id) = stack.last().copied() {
            if self.computed.contains_key(&id) {
                stack.pop();
                continue;
            }
            if let Some(settled) = self.settled(id.out()) {
                self.computed.insert(id, Value::from_const(&settled).map(|v| vec![v]));
                continue;
            }
            let node = self.graph.node(id);
            if matches!(node.op, Op::Input(_) | Op::Opaque(_)) {
                self.computed.insert(id, None);
                continue;
            }
            let small = node.types.iter().all(|t| t.as_ref().is_some_and(|t| t.elements().known().is_some_and(|n| n <= MAX_EVALUATED)));
            if !small {
                self.computed.insert(id, None);
                continue;
            }
            let open: Vec<NodeId> = node.inputs.iter().map(|v| v.node).filter(|n| !self.computed.contains_key(n)).collect();
            if !open.is_empty() {
                stack.extend(open);
                continue;
            }
            let results = self.evaluate(id);
            self.computed.insert(id, results);
        }
    }

    fn evaluate(&self, id: NodeId) -> Option<Vec<Value<f64>>> {
        let node = self.graph.node(id);
        let mut operands = Vec::with_capacity(node.inputs.len());
        for v in &node.inputs {
            operands.push(self.computed.get(&v.node)?.as_ref()?.get(v.port as usize)?.clone());
        }
        let input_types: Vec<TensorType> = node.inputs.iter().map(|v| self.graph.ty(*v).cloned()).collect::<Option<_>>()?;
        let output_types: Vec<TensorType> = node.types.iter().cloned().collect::<Option<_>>()?;
        let context = EvalContext { bindings: &Bindings::new(), input_types: &input_types, output_types: &output_types };
        node.op.eval(&operands, &context).ok()
    }

    /// Tracks symbolic sizes through the node, constant ones too: those of a tensor that is too large
    /// to be computed are known all the same.
    fn track(&mut self, node: &'a NodeProto) {
        let Some(value) = node.output.first().and_then(|n| self.values.get(n.as_str())).copied() else { return };
        if self.graph.constant(value).is_none()
            && let Some(sizes) = self.with_view(node, follow)
        {
            self.sizes.insert(value, sizes);
        }
    }

    /// The result of `f` on a node that does not call a local function.
    fn with_view<T>(&mut self, node: &'a NodeProto, f: impl FnOnce(&View<'_>) -> Option<T>) -> Option<T> {
        let domain = standard(node.domain());
        if self.model.functions.iter().any(|f| f.name() == node.op_type() && standard(f.domain()) == domain) {
            return None;
        }
        let qualified = format!("{domain}:{}", node.op_type());
        let inputs: Vec<Option<ValueId>> = node.input.iter().map(|n| self.values.get(n.as_str()).copied()).collect();
        let types: Vec<Option<TensorType>> = inputs.iter().map(|v| v.and_then(|v| self.graph.ty(v).cloned())).collect();
        let sizes: Vec<Option<Sizes>> = inputs.iter().map(|v| v.and_then(|v| self.known_sizes(v))).collect();
        let given: Vec<bool> = inputs.iter().map(Option::is_some).collect();
        let attr = |name: &str| -> Option<Attr> { node.attribute.iter().find(|a| a.name() == name).and_then(attribute::decode) };
        f(&View {
            op_type: if domain.is_empty() { node.op_type() } else { &qualified },
            version: self.version(domain),
            attr: &attr,
            results: node.output.len(),
            given: &given,
            types: &types,
            sizes: &sizes,
        })
    }

    fn known_sizes(&mut self, value: ValueId) -> Option<Sizes> {
        if let Some(sizes) = self.sizes.get(&value) {
            return Some(sizes.clone());
        }
        let ty = self.graph.ty(value)?;
        let scalar = ty.rank() == 0;
        if ty.rank() > 1 || ty.dtype.class() != Class::Int || ty.elements().known().is_none_or(|n| n > MAX_SIZES as i64) {
            return None;
        }
        let numbers = self.constant(value)?.to_i64()?;
        Some(Sizes { scalar, dims: numbers.into_iter().map(Dim::from).collect() })
    }
}

/// Whether the node has a computed input that is not an operand of the import.
fn reads_computed(view: &OnnxNode, imported: &Imported) -> bool {
    fn takes(imported: &Imported, at: usize) -> bool {
        imported.operands.iter().any(|operand| match operand {
            ImportOperand::Input(input) => *input == at,
            ImportOperand::Const(_) => false,
            ImportOperand::Node(inner) => takes(inner, at),
        })
    }
    let computed = |input: &Option<OnnxInput>| input.as_ref().is_some_and(|input| input.value.is_none());
    view.inputs.iter().enumerate().any(|(at, input)| computed(input) && !takes(imported, at))
}

/// The standard domain has two names; the empty one is used here.
pub(crate) fn standard(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The version of a domain that the model imports.
pub(crate) fn version_of(model: &ModelProto, domain: &str) -> Option<i64> {
    model.opset_import.iter().find(|o| standard(o.domain()) == domain).map(|o| o.version())
}

/// The value of a `Constant` node, or the reason why it stays opaque.
fn constant_node(node: &NodeProto) -> Result<Const, String> {
    let [attribute] = node.attribute.as_slice() else { return Err("a Constant needs exactly one attribute".into()) };
    let value = attribute::decode(attribute).ok_or_else(|| format!("its attribute `{}` has no arithmetic here", attribute.name()))?;
    let made = match (attribute.name(), &value) {
        ("value", Attr::Tensor(value)) => Some(value.clone()),
        ("value_float", Attr::Float(v)) => Const::from_f64(DType::F32, &[], &[v.0]),
        ("value_floats", Attr::Floats(v)) => Const::from_f64(DType::F32, &[v.len() as i64], &v.iter().map(|f| f.0).collect::<Vec<_>>()),
        ("value_int", Attr::Int(v)) => Const::from_i64(DType::I64, &[], &[*v]),
        ("value_ints", Attr::Ints(v)) => Const::from_i64(DType::I64, &[v.len() as i64], v),
        _ => None,
    };
    made.ok_or_else(|| format!("its attribute `{}` has no arithmetic here", attribute.name()))
}
