//! A part of a written model as a separate model.

use std::collections::{BTreeSet, HashMap};

use regraft_ir::{TensorType, ValueId};
use regraft_onnx::Written;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto};

use crate::units::Size;

/// A written model, ready to be cut.
pub struct Cutter<'a> {
    written: &'a Written,
    names: HashMap<ValueId, &'a str>,
    nodes: HashMap<&'a str, usize>,
    initializers: HashMap<&'a str, &'a TensorProto>,
}

/// A value where a model is cut: its name in the part, its value in the whole, and what the part
/// declares of it.
pub struct End {
    /// Name in the part.
    pub name: String,
    /// The value.
    pub value: ValueId,
    /// Its type.
    pub ty: TensorType,
    /// The sizes that the part declares; none at all if it leaves them open.
    pub shape: Option<Vec<Size>>,
}

impl<'a> Cutter<'a> {
    /// A cutter for a model.
    pub fn new(written: &'a Written) -> Cutter<'a> {
        let mut names: HashMap<ValueId, &str> = HashMap::new();
        for (name, value) in &written.values {
            let known = names.entry(*value).or_insert(name);
            *known = (*known).min(name);
        }
        let (mut nodes, mut initializers) = (HashMap::new(), HashMap::new());
        if let Some(graph) = &written.proto.graph {
            for (at, node) in graph.node.iter().enumerate() {
                nodes.extend(node.output.iter().filter(|o| !o.is_empty()).map(|output| (output.as_str(), at)));
            }
            initializers.extend(graph.initializer.iter().map(|tensor| (tensor.name(), tensor)));
        }
        Cutter { written, names, nodes, initializers }
    }

    /// True if the value can be an end: the file has it under a name.
    pub fn has(&self, value: ValueId) -> bool {
        let defined = |name: &&str| self.nodes.contains_key(name) || self.initializers.contains_key(name) || self.is_input(name);
        self.names.get(&value).is_some_and(defined)
    }

    /// The name of a value in the file.
    pub fn name(&self, value: ValueId) -> Option<&'a str> {
        self.names.get(&value).copied()
    }

    fn is_input(&self, name: &str) -> bool {
        self.written.proto.graph.iter().any(|g| g.input.iter().any(|i| i.name() == name))
    }

    /// The part that computes `outputs` from `inputs`; an error names what is missing.
    pub fn cut(&self, inputs: &[End], outputs: &[End]) -> Result<ModelProto, String> {
        let name = |end: &End| self.name(end.value).ok_or_else(|| format!("`{}` is not in the file", end.name));
        let ends: HashMap<&str, &str> = inputs.iter().map(|end| Ok((name(end)?, end.name.as_str()))).collect::<Result<_, String>>()?;
        let (mut nodes, mut tensors, mut seen) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        let mut stack: Vec<&str> = outputs.iter().map(name).collect::<Result<_, String>>()?;
        let graph = self.written.proto.graph.as_ref().ok_or("no graph")?;
        while let Some(name) = stack.pop() {
            if name.is_empty() || ends.contains_key(name) || !seen.insert(name) {
                continue;
            }
            if let Some(tensor) = self.initializers.get(name) {
                tensors.push((*tensor).clone());
            } else if let Some(at) = self.nodes.get(name) {
                if nodes.insert(*at) {
                    read(&graph.node[*at], &mut stack);
                }
            } else if self.is_input(name) {
                return Err(format!("`{name}` is needed as well"));
            }
        }
        let identity = |from: &str, to: &str| NodeProto {
            op_type: Some("Identity".into()),
            input: vec![from.to_string()],
            output: vec![to.to_string()],
            ..NodeProto::default()
        };
        let mut part = GraphProto { name: graph.name.clone(), initializer: tensors, ..GraphProto::default() };
        part.node.extend(ends.iter().filter(|(inner, outer)| inner != outer).map(|(inner, outer)| identity(outer, inner)));
        part.node.extend(nodes.into_iter().map(|at| graph.node[at].clone()));
        for output in outputs.iter().filter(|output| self.name(output.value) != Some(&output.name)) {
            part.node.push(identity(name(output)?, &output.name));
        }
        part.input = inputs.iter().map(declared).collect();
        part.output = outputs.iter().map(declared).collect();
        let whole = &self.written.proto;
        Ok(ModelProto {
            graph: Some(part),
            ir_version: whole.ir_version.map(|version| version.max(4)),
            opset_import: whole.opset_import.clone(),
            functions: whole.functions.clone(),
            ..ModelProto::default()
        })
    }
}

/// Everything a node reads; in its subgraphs every name, even one of their own.
fn read<'a>(node: &'a NodeProto, into: &mut Vec<&'a str>) {
    into.extend(node.input.iter().map(String::as_str));
    for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
        graph.node.iter().for_each(|inner| read(inner, into));
        into.extend(graph.output.iter().map(ValueInfoProto::name));
    }
}

fn declared(end: &End) -> ValueInfoProto {
    let dim = |size: &Size| {
        let value = match size {
            Size::Known(size) => dimension::Value::DimValue(*size as i64),
            Size::Symbol(name) => dimension::Value::DimParam(name.clone()),
        };
        Dimension { value: Some(value), ..Dimension::default() }
    };
    let shape = end.shape.as_ref().map(|sizes| TensorShapeProto { dim: sizes.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(end.ty.dtype.to_onnx()), shape };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(end.name.clone()), r#type: Some(ty), ..ValueInfoProto::default() }
}
