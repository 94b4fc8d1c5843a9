//! The neutral view of an ONNX node, so that each operator can state its own ONNX mapping without a
//! protobuf dependency.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::attr::Attr;
use crate::constant::Const;
use crate::op::Op;
use crate::ty::TensorType;

/// An ONNX node as seen by its operator's importer.
#[derive(Clone, Debug)]
pub struct OnnxNode {
    /// Operator type.
    pub op_type: String,
    /// Domain; empty for the standard one.
    pub domain: String,
    /// Opset version of that domain in the model.
    pub version: i64,
    /// Attributes as written (without graphs and other kinds that no defined operator uses).
    pub attrs: Attrs,
    /// Inputs in order; `None` where ONNX leaves an optional input out.
    pub inputs: Vec<Option<OnnxInput>>,
    /// For every output that the node lists, whether it is read.
    pub outputs: Vec<bool>,
}

/// Attributes of a node. They remember which of them an importer has read: an unread attribute may
/// have a meaning that the operator's definition does not know.
#[derive(Clone, Debug, Default)]
pub struct Attrs {
    values: BTreeMap<String, Attr>,
    read: RefCell<BTreeSet<String>>,
}

impl Attrs {
    /// The attribute `name`.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        let (name, value) = self.values.get_key_value(name)?;
        self.read.borrow_mut().insert(name.clone());
        Some(value)
    }

    /// Names of the attributes that were not read.
    pub fn unread(&self) -> Vec<&str> {
        let read = self.read.borrow();
        self.values.keys().map(String::as_str).filter(|name| !read.contains(*name)).collect()
    }

    /// Declares that these attributes do not affect what is imported.
    pub fn ignore(&self, names: &[&str]) {
        self.read.borrow_mut().extend(names.iter().map(ToString::to_string));
    }
}

impl FromIterator<(String, Attr)> for Attrs {
    fn from_iter<I: IntoIterator<Item = (String, Attr)>>(iter: I) -> Attrs {
        Attrs { values: iter.into_iter().collect(), read: RefCell::default() }
    }
}

/// What is known about an input at import.
#[derive(Clone, Debug)]
pub struct OnnxInput {
    /// Type, if known.
    pub ty: Option<TensorType>,
    /// Value, if it is a constant (any constant cone, evaluated if small).
    pub value: Option<Const>,
    /// Known sizes if this is the 1-D integer tensor of a computed shape (`Shape` and arithmetic on
    /// it).
    pub dims: Option<Vec<crate::Dim>>,
}

/// The import of a node: an operator on some of the node's inputs.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The operator.
    pub op: Op,
    /// Its operands.
    pub operands: Vec<ImportOperand>,
}

/// An operand of an imported operator.
#[derive(Clone, Debug)]
pub enum ImportOperand {
    /// The node's input at this index.
    Input(usize),
    /// A constant made by the importer.
    Const(Const),
    /// Another operator (first output), for nodes that become several operators here.
    Node(Box<Imported>),
}

/// Why a node stays opaque. Never an error for the user: the node is kept verbatim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Opaque(pub String);

/// How an operator is spelled in ONNX at some opset version.
#[derive(Clone, Debug)]
pub struct OnnxSpelling {
    /// Operator type.
    pub op_type: &'static str,
    /// Domain; empty for the standard one.
    pub domain: &'static str,
    /// Attributes.
    pub attrs: Vec<(&'static str, Attr)>,
    /// Inputs in order.
    pub inputs: Vec<SpellingInput>,
}

/// An input of a spelled node.
#[derive(Clone, Debug)]
pub enum SpellingInput {
    /// The operator's operand at this index.
    Operand(usize),
    /// A constant that the writer turns into an initializer.
    Const(Const),
    /// A 1-D `int64` tensor of sizes: an initializer if all are numbers, otherwise computed from
    /// the shapes of values that carry the symbols.
    Dims(Vec<crate::Dim>),
    /// An optional input that is left out.
    Missing,
}

impl OnnxSpelling {
    /// The plain spelling: standard domain, all `operands` in order, no attributes.
    pub fn plain(op_type: &'static str, operands: usize) -> OnnxSpelling {
        OnnxSpelling { op_type, domain: "", attrs: Vec::new(), inputs: (0..operands).map(SpellingInput::Operand).collect() }
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &'static str, value: Attr) -> OnnxSpelling {
        self.attrs.push((name, value));
        self
    }

    /// Adds a constant input at the end.
    pub fn with_const(mut self, value: Const) -> OnnxSpelling {
        self.inputs.push(SpellingInput::Const(value));
        self
    }

    /// Adds a 1-D `int64` input of sizes, possibly symbolic, at the end.
    pub fn with_dims(mut self, sizes: &[crate::Dim]) -> OnnxSpelling {
        self.inputs.push(SpellingInput::Dims(sizes.to_vec()));
        self
    }

    /// Adds a 1-D `int64` constant input at the end.
    pub fn with_ints(self, values: &[i64]) -> OnnxSpelling {
        match Const::from_i64(crate::DType::I64, &[values.len() as i64], values) {
            Some(value) => self.with_const(value),
            None => self,
        }
    }
}

/// Why an operator cannot be written at an opset version, for instance because it was added later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{op}` cannot be written: {why}")]
pub struct NoSpelling {
    /// Operator name.
    pub op: &'static str,
    /// Reason, human-readable.
    pub why: String,
}

impl OnnxNode {
    /// The attribute `name` as an integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attrs.get(name)? {
            Attr::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// The attribute `name` as a flag, 0 or 1. Runtimes disagree on the meaning of other numbers.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Opaque> {
        match self.int(name) {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(Opaque(format!("{name} is {other}, and neither 0 nor 1"))),
        }
    }

    /// The attribute `name` as a float.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.attrs.get(name)? {
            Attr::Float(v) => Some(v.0),
            _ => None,
        }
    }

    /// The attribute `name` as a list of integers.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attrs.get(name)? {
            Attr::Ints(v) => Some(v.clone()),
            _ => None,
        }
    }

    /// The attribute `name` as a word.
    pub fn str(&self, name: &str) -> Option<&str> {
        match self.attrs.get(name)? {
            Attr::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The type of input `at`, or the reason to stay opaque.
    pub fn ty(&self, at: usize) -> Result<&TensorType, Opaque> {
        self.inputs
            .get(at)
            .and_then(Option::as_ref)
            .and_then(|i| i.ty.as_ref())
            .ok_or_else(|| Opaque(format!("the type of input {at} of {} is not known", self.op_type)))
    }

    /// Whether input `at` is present.
    pub fn has(&self, at: usize) -> bool {
        self.inputs.get(at).is_some_and(Option::is_some)
    }

    /// The constant value of input `at`; `None` if left out; the reason to stay opaque if it is
    /// computed at run time.
    pub fn constant(&self, at: usize) -> Result<Option<&Const>, Opaque> {
        match self.inputs.get(at).and_then(Option::as_ref) {
            None => Ok(None),
            Some(input) => match &input.value {
                Some(value) => Ok(Some(value)),
                None => Err(Opaque(format!("input {at} of {} is computed at run time", self.op_type))),
            },
        }
    }

    /// The constant integers of input `at`; `None` if left out.
    pub fn constant_ints(&self, at: usize) -> Result<Option<Vec<i64>>, Opaque> {
        match self.constant(at)? {
            None => Ok(None),
            Some(value) => {
                value.to_i64().map(Some).ok_or_else(|| Opaque(format!("input {at} of {} is not of an integer type", self.op_type)))
            }
        }
    }

    /// `axis` counted from the front of `rank` dimensions.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<i64, Opaque> {
        let rank = rank as i64;
        if (-rank..rank).contains(&axis) {
            Ok(axis.rem_euclid(rank))
        } else {
            Err(Opaque(format!("axis {axis} of {} is outside rank {rank}", self.op_type)))
        }
    }

    /// The operator on all present inputs, in order (no optional input left out in the middle).
    pub fn import(&self, op: Op) -> Result<Imported, Opaque> {
        let given = self.inputs.iter().take_while(|i| i.is_some()).count();
        if self.inputs.iter().skip(given).any(Option::is_some) {
            return Err(Opaque(format!("{} leaves out an input in the middle", self.op_type)));
        }
        Ok(Imported { op, operands: (0..given).map(ImportOperand::Input).collect() })
    }

    /// The operator on these inputs only.
    pub fn import_with(&self, op: Op, inputs: &[usize]) -> Imported {
        Imported { op, operands: inputs.iter().copied().map(ImportOperand::Input).collect() }
    }
}
