//! What a price belongs to: a node with its operand types, and the kinds of nodes around it.

use std::fmt::{self, Write};

use regraft_ir::{Attr, Bindings, Const, Graph, NodeId, Op, OpKind, TensorType, ValueId};

/// Separates the core from the context.
const CONTEXT: &str = " | ";
/// Separates the two halves of the context.
const READERS: &str = " > ";
/// Stands for an unknown type or size.
const UNKNOWN: char = '?';

/// Identity of a node for pricing, under concrete sizes. Equal signatures cost the same.
///
/// Its text is `core | producers > readers`, for example `Relu(f32[1,64,56,56]) | Conv.1 > Conv.0`:
/// stable between runs and versions of this program, and short (values of constants are never part
/// of it, except single exponents).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    /// Operator, attributes and operand types; constant operands are marked `c`.
    pub core: String,
    /// For each operand, the kind of its producer, and whether this node is the producer's only
    /// reader (`.1`) or not (`.n`).
    pub producers: String,
    /// Kinds and operand slots of the readers, sorted; `*` if several are alike; `out` if a result
    /// is a declared output.
    pub readers: String,
}

impl Signature {
    /// The signature of a node in its context.
    pub fn of(graph: &Graph, bindings: &Bindings, id: NodeId) -> Signature {
        Signature { core: core(graph, bindings, id), producers: producers(graph, id), readers: readers(graph, id) }
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(text: &str) -> Option<Signature> {
        let (core, context) = text.rsplit_once(CONTEXT)?;
        let (producers, readers) = context.split_once(READERS)?;
        Some(Signature { core: core.to_owned(), producers: producers.to_owned(), readers: readers.to_owned() })
    }

    /// Whether all operand types are known: only then does the text mean the same in another model.
    pub fn is_complete(&self) -> bool {
        !self.core.contains(UNKNOWN)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{CONTEXT}{}{READERS}{}", self.core, self.producers, self.readers)
    }
}

fn core(graph: &Graph, bindings: &Bindings, id: NodeId) -> String {
    let node = graph.node(id);
    let mut text = String::new();
    match &node.op {
        Op::Opaque(op) => {
            let domain = if op.domain.is_empty() { "ai.onnx" } else { &op.domain };
            // A question mark stands only for types.
            text.push_str(&format!("{domain}.{}", op.op_type).replace(UNKNOWN, "_"));
            text.push('<');
            text.extend(op.given.iter().map(|given| if *given { '1' } else { '0' }));
            text.push('>');
        }
        op => text.push_str(op.kind().name()),
    }
    let attrs = node.op.attrs();
    if !attrs.is_empty() {
        let list: Vec<String> = attrs.iter().map(|(name, value)| format!("{name}={}", attribute(value, bindings))).collect();
        let _ = write!(text, "{{{}}}", list.join(";"));
    }
    text.push('(');
    for (at, value) in node.inputs.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        if graph.is_constant(*value) {
            text.push_str("c ");
        }
        text.push_str(&type_text(graph.ty(*value), bindings));
        if let Some(exponent) = exponent(graph, node.op.kind(), *value, at) {
            let _ = write!(text, "={exponent:?}");
        }
    }
    text.push(')');
    text
}

/// The one constant whose value determines the speed: squares are cheap, other powers are not.
fn exponent(graph: &Graph, kind: OpKind, value: ValueId, slot: usize) -> Option<f64> {
    let constant = graph.constant(value).filter(|c| kind == OpKind::Pow && slot == 1 && c.elements() == 1)?;
    constant.splat()
}

fn type_text(ty: Option<&TensorType>, bindings: &Bindings) -> String {
    let Some(ty) = ty else { return UNKNOWN.to_string() };
    let sizes: Vec<String> = ty.shape.iter().map(|d| d.eval(bindings).map_or(UNKNOWN.to_string(), |size| size.to_string())).collect();
    format!("{}[{}]", ty.dtype, sizes.join(","))
}

/// An attribute under concrete sizes. Of floats, only 0 and 1 are distinguished: others change
/// results, not times.
fn attribute(value: &Attr, bindings: &Bindings) -> String {
    let float = |v: f64| {
        if v == 0.0 {
            "0"
        } else if v == 1.0 {
            "1"
        } else {
            "~"
        }
    };
    let comma = |items: Vec<String>| items.join(",");
    match value {
        Attr::Int(v) => v.to_string(),
        Attr::Float(v) => float(v.0).to_owned(),
        Attr::Bool(v) => u8::from(*v).to_string(),
        Attr::Str(v) => v.replace(UNKNOWN, "_"),
        Attr::Ints(v) => comma(v.iter().map(i64::to_string).collect()),
        Attr::Floats(v) => comma(v.iter().map(|x| float(x.0).to_owned()).collect()),
        Attr::Strs(v) => comma(v.iter().map(|s| s.replace(UNKNOWN, "_")).collect()),
        Attr::Dims(v) => comma(v.iter().map(|d| d.eval(bindings).map_or(UNKNOWN.to_string(), |size| size.to_string())).collect()),
        Attr::DType(v) => v.to_string(),
        Attr::Tensor(v) => tensor(v),
        Attr::Absent => "-".to_owned(),
    }
}

fn tensor(value: &Const) -> String {
    format!("{}{:?}", value.dtype(), value.shape()).replace(' ', "")
}

fn producers(graph: &Graph, id: NodeId) -> String {
    let one = |value: &ValueId| {
        let producer = graph.node(value.node);
        if producer.constant {
            return "c".to_owned();
        }
        format!("{}.{}", producer.op.kind().name(), if producer.users.len() == 1 { '1' } else { 'n' })
    };
    graph.node(id).inputs.iter().map(one).collect::<Vec<_>>().join(",")
}

fn readers(graph: &Graph, id: NodeId) -> String {
    let mut readers: Vec<String> =
        graph.node(id).users.iter().map(|(user, slot)| format!("{}.{slot}", graph.node(*user).op.kind().name())).collect();
    readers.sort_unstable();
    let mut texts: Vec<String> =
        readers.chunk_by(|a, b| a == b).map(|alike| format!("{}{}", alike[0], if alike.len() > 1 { "*" } else { "" })).collect();
    if graph.feeds_output(id) {
        texts.push("out".to_owned());
    }
    texts.join(",")
}
