//! Builds models from the catalogue's expressions.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use regraft_ir::DType;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

use super::number;
use super::term::{Attribute, Program, Term};
use crate::generate::attribute;
use crate::generate::random::Random;

/// Domain of local functions.
const DOMAIN: &str = "attack";

/// An input of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: DType,
    /// Sizes: numbers or symbols.
    pub dims: Vec<String>,
    /// The least and the greatest value to feed it, if not all of its type.
    pub range: Option<(i64, i64)>,
}

/// The context of a model's expressions.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The type `T`.
    pub ty: DType,
    /// Inputs that a model has if it reads them, or always if `whole`.
    pub inputs: Vec<Input>,
    /// Functions: name, formal parameters, and body.
    pub functions: Vec<(String, Vec<String>, Program)>,
    /// Version of the standard operators.
    pub opset: i64,
}

/// A value: its name, and its element type if known.
type Value = (String, Option<DType>);

/// Operators whose operands broadcast.
const BROADCAST: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Pow",
    "Max",
    "Min",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "And",
    "Or",
    "Xor",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BitShift",
    "Where",
    "Sum",
    "Mean",
];

/// Operators with boolean results.
const TRUTHS: &[&str] = &["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"];

/// The model of `program`.
pub fn model(program: &Program, frame: &Frame, random: &mut Random) -> Result<ModelProto> {
    let mut scope = Scope { frame, random, nodes: Vec::new(), initializers: None, names: HashMap::new(), count: 0 };
    for input in &frame.inputs {
        scope.names.insert(input.name.clone(), (input.name.clone(), Some(input.ty)));
    }
    scope.initializers = Some(Vec::new());
    let results = scope.program(program)?;
    let mut output = Vec::new();
    for (at, (value, ty)) in results.into_iter().enumerate() {
        let name = format!("out{at}");
        scope.node("Identity", vec![value], vec![name.clone()], vec![]);
        output.push(info(&name, ty, None));
    }
    let (node, initializer) = (scope.nodes, scope.initializers.unwrap_or_default());
    let input = frame.inputs.iter().map(|i| info(&i.name, Some(i.ty), Some(&i.dims))).collect();
    let mut functions = Vec::new();
    for (name, formals, program) in &frame.functions {
        functions.push(function(name, formals, program, frame, random)?);
    }
    let opset_import = imports(frame);
    let graph = GraphProto { name: Some("attack".into()), node, initializer, input, output, ..GraphProto::default() };
    Ok(ModelProto { ir_version: Some(8), opset_import, functions, graph: Some(graph), ..ModelProto::default() })
}

/// Versions of operators, and of functions if there are any.
fn imports(frame: &Frame) -> Vec<OperatorSetIdProto> {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let local = (!frame.functions.is_empty()).then(|| opset(DOMAIN, 1));
    [opset("", frame.opset)].into_iter().chain(local).collect()
}

fn function(name: &str, formals: &[String], program: &Program, frame: &Frame, random: &mut Random) -> Result<FunctionProto> {
    let mut scope = Scope { frame, random, nodes: Vec::new(), initializers: None, names: HashMap::new(), count: 0 };
    for formal in formals {
        scope.names.insert(formal.clone(), (formal.clone(), Some(frame.ty)));
    }
    let output = scope.program(program)?.into_iter().map(|(name, _)| name).collect();
    Ok(FunctionProto {
        name: Some(name.into()),
        domain: Some(DOMAIN.into()),
        input: formals.to_vec(),
        output,
        node: scope.nodes,
        opset_import: imports(frame),
        ..FunctionProto::default()
    })
}

/// The number of results an operator must have.
fn results(op: &str, operands: &[Term], attributes: &[(String, Attribute)]) -> usize {
    match (op, operands) {
        ("Split", [_, Term::List { items, .. }]) => items.len(),
        ("BatchNormalization", _) if attributes.iter().any(|(name, _)| name == "training_mode") => 3,
        _ => 1,
    }
}

/// A declared value.
fn info(name: &str, ty: Option<DType>, dims: Option<&[String]>) -> ValueInfoProto {
    let dim = |text: &String| {
        let value = text.parse().map_or_else(|_| dimension::Value::DimParam(text.clone()), dimension::Value::DimValue);
        Dimension { value: Some(value), denotation: None }
    };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = |ty: DType| type_proto::Tensor { elem_type: Some(ty.to_onnx()), shape };
    let ty = ty.map(|ty| TypeProto { value: Some(type_proto::Value::TensorType(tensor(ty))), ..TypeProto::default() });
    ValueInfoProto { name: Some(name.into()), r#type: ty, ..ValueInfoProto::default() }
}

struct Scope<'f> {
    frame: &'f Frame,
    random: &'f mut Random,
    nodes: Vec<NodeProto>,
    /// Constants of the model; `None` in bodies and functions, where they are nodes.
    initializers: Option<Vec<TensorProto>>,
    names: HashMap<String, Value>,
    count: usize,
}

impl Scope<'_> {
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("t{}", self.count)
    }

    fn node(&mut self, op: &str, input: Vec<String>, output: Vec<String>, attribute: Vec<AttributeProto>) {
        let local = self.frame.functions.iter().any(|f| f.0 == op);
        let domain = local.then(|| DOMAIN.to_string());
        self.nodes.push(NodeProto { op_type: Some(op.into()), domain, input, output, attribute, ..NodeProto::default() });
    }

    fn program(&mut self, program: &Program) -> Result<Vec<Value>> {
        for (name, term) in &program.lets {
            let value = self.term(term, None)?;
            self.names.insert(name.clone(), value);
        }
        program.results.iter().map(|term| self.term(term, None)).collect()
    }

    fn ty(&self, name: &str) -> Result<DType> {
        if name == "T" { Ok(self.frame.ty) } else { DType::from_name(name).with_context(|| format!("`{name}` is no type")) }
    }

    fn constant(&mut self, ty: DType, dims: Vec<i64>, items: &[&str]) -> Result<Value> {
        let mut bytes = Vec::new();
        for item in items {
            bytes.extend(number::bytes(item, ty).with_context(|| format!("{item} is no {ty}"))?);
        }
        let name = self.fresh();
        let tensor =
            |name| TensorProto { name, dims, data_type: Some(ty.to_onnx()), raw_data: Some(Bytes::from(bytes)), ..TensorProto::default() };
        match &mut self.initializers {
            Some(initializers) if !self.random.once_in(3) => initializers.push(tensor(Some(name.clone()))),
            _ => self.node("Constant", vec![], vec![name.clone()], vec![attribute::tensor("value", tensor(None))]),
        }
        Ok((name, Some(ty)))
    }

    /// A value; `expected` is the type of a number that states none.
    fn term(&mut self, term: &Term, expected: Option<(DType, bool)>) -> Result<Value> {
        match term {
            Term::Absent => Ok((String::new(), None)),
            Term::Name(name) => self.names.get(name).cloned().with_context(|| format!("there is no `{name}`")),
            Term::Number { text, ty } => {
                let (neighbour, broadcasts) = expected.unwrap_or((self.frame.ty, false));
                let neighbour = if matches!(text.as_str(), "true" | "false") { DType::Bool } else { neighbour };
                let ty = ty.as_ref().map_or(Ok(neighbour), |name| self.ty(name))?;
                let dims = if broadcasts && self.random.once_in(4) { vec![1] } else { vec![] };
                self.constant(ty, dims, &[text])
            }
            Term::List { items, ty } => {
                let ty = ty.as_ref().map_or(Ok(DType::I64), |name| self.ty(name))?;
                self.constant(ty, vec![items.len() as i64], &items.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Term::Call { op, operands, attributes, port } => self.call(op, operands, attributes, *port),
        }
    }

    fn call(&mut self, op: &str, operands: &[Term], attributes: &[(String, Attribute)], port: usize) -> Result<Value> {
        let untyped = |term: &Term| matches!(term, Term::Number { ty: None, .. });
        let mut values: Vec<Option<Value>> = Vec::new();
        for operand in operands {
            values.push(if untyped(operand) { None } else { Some(self.term(operand, None)?) });
        }
        // The condition of a choice says nothing about the type of the alternatives.
        let skip = usize::from(op == "Where");
        let neighbour = values.iter().skip(skip).flatten().find_map(|v| v.1).unwrap_or(self.frame.ty);
        let broadcasts = BROADCAST.contains(&op);
        let mut named = Vec::new();
        for (value, operand) in values.into_iter().zip(operands) {
            named.push(value.map_or_else(|| self.term(operand, Some((neighbour, broadcasts))), Ok)?);
        }
        let mut protos = Vec::new();
        let mut result = self.result(op, port, &named, attributes, neighbour);
        for (name, value) in attributes {
            protos.push(self.attribute(name, value, op, &named, &mut result)?);
        }
        let outputs: Vec<String> = (0..results(op, operands, attributes).max(port + 1)).map(|_| self.fresh()).collect();
        let name = outputs[port].clone();
        self.node(op, named.into_iter().map(|v| v.0).collect(), outputs, protos);
        Ok((name, result))
    }

    /// The element type of a result.
    fn result(&self, op: &str, port: usize, operands: &[Value], attributes: &[(String, Attribute)], neighbour: DType) -> Option<DType> {
        let operand = |at: usize| operands.get(at).and_then(|v| v.1);
        let named = |name: &str| attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value);
        let typed = |name: &str| match named(name) {
            Some(Attribute::Type(ty)) => self.ty(ty).ok(),
            Some(Attribute::Tensor { ty, .. }) => self.ty(ty).ok(),
            _ => None,
        };
        match (op, port) {
            (op, _) if TRUTHS.contains(&op) => Some(DType::Bool),
            ("Cast", _) => typed("to"),
            ("CastLike", _) => operand(1),
            ("Shape" | "Size" | "ArgMax" | "ArgMin" | "NonZero", _) | ("MaxPool" | "TopK", 1) => Some(DType::I64),
            ("Dropout", 1) => Some(DType::Bool),
            ("OneHot" | "QuantizeLinear", _) => operand(2),
            ("DequantizeLinear", _) => operand(1),
            ("Loop", _) => operand(2 + port),
            ("ConstantOfShape", _) => Some(typed("value").unwrap_or(DType::F32)),
            ("RandomNormal" | "RandomUniform" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" | "EyeLike", _) => {
                typed("dtype").or(if operands.is_empty() { Some(DType::F32) } else { operand(0) })
            }
            ("Multinomial", _) => Some(typed("dtype").unwrap_or(DType::I32)),
            ("If", _) => None,
            _ => Some(neighbour),
        }
    }

    fn attribute(
        &mut self,
        name: &str,
        value: &Attribute,
        op: &str,
        operands: &[Value],
        result: &mut Option<DType>,
    ) -> Result<AttributeProto> {
        Ok(match value {
            Attribute::Int(value) => attribute::int(name, *value),
            Attribute::Float(value) => attribute::float(name, *value),
            Attribute::Ints(values) => attribute::ints(name, values),
            Attribute::Floats(values) => attribute::floats(name, values),
            Attribute::Word(word) => attribute::word(name, word),
            Attribute::Type(ty) => attribute::int(name, i64::from(self.ty(ty)?.to_onnx())),
            Attribute::Tensor { text, ty } => {
                let ty = self.ty(ty)?;
                let bytes = number::bytes(text, ty).with_context(|| format!("{text} is no {ty}"))?;
                let data_type = Some(ty.to_onnx());
                attribute::tensor(name, TensorProto { dims: vec![1], data_type, raw_data: Some(bytes.into()), ..TensorProto::default() })
            }
            Attribute::Body { formals, program } => {
                let carried = match op {
                    "Loop" => [DType::I64, DType::Bool].into_iter().map(Some).chain(operands.iter().skip(2).map(|v| v.1)).collect(),
                    "If" => Vec::new(),
                    _ => bail!("{op} has no body"),
                };
                ensure!(formals.len() == carried.len(), "a body of {op} has {} operands", carried.len());
                let (body, types) = self.body(formals, &carried, program)?;
                if op == "If" {
                    *result = types.first().copied().flatten();
                }
                attribute::graph(name, body)
            }
        })
    }

    fn body(&mut self, formals: &[String], types: &[Option<DType>], program: &Program) -> Result<(GraphProto, Vec<Option<DType>>)> {
        let outer = (std::mem::take(&mut self.nodes), self.initializers.take(), self.names.clone());
        let mut input = Vec::new();
        for (at, (formal, ty)) in formals.iter().zip(types).enumerate() {
            let inner = format!("{formal}{}", self.fresh());
            // A counter and a condition are scalars; carried values keep the sizes they are given.
            input.push(info(&inner, *ty, (at < 2).then_some(&[])));
            self.names.insert(formal.clone(), (inner, *ty));
        }
        let results = self.program(program)?;
        let mut output = Vec::new();
        for (value, ty) in &results {
            let name = self.fresh();
            self.node("Identity", vec![value.clone()], vec![name.clone()], vec![]);
            output.push(info(&name, *ty, None));
        }
        let node = std::mem::replace(&mut self.nodes, outer.0);
        (self.initializers, self.names) = (outer.1, outer.2);
        let body = GraphProto { name: Some("body".into()), node, input, output, ..GraphProto::default() };
        Ok((body, results.into_iter().map(|(_, ty)| ty).collect()))
    }
}
