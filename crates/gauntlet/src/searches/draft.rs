//! `Draft`: a graph as it is drawn, and smaller ones made of it.

use regraft_ir::{Graph, normal, text};

/// Rows of every value.
const ROWS: usize = 2;
/// Columns of both inputs, and of every product.
const COLUMNS: usize = 2;

/// A form of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of one operand.
    Unary(&'static str),
    /// Of two operands of one shape.
    Binary(&'static str),
    /// A product with a weight of this name, of two columns.
    Product(&'static str),
    /// A product with the constant number of this name.
    Scale(&'static str),
    /// Two operands side by side.
    Join,
    /// Two parts, of one column and of the others, or of two each.
    Split,
}

/// An input (0 and 1), or a result of an operator, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// 0 and 1 are the inputs; the others are operators.
    node: usize,
    /// Which result.
    port: usize,
}

#[derive(Clone, Debug)]
struct Node {
    form: Form,
    operands: Vec<Value>,
    /// Columns of its results.
    widths: Vec<usize>,
}

/// A graph in the order in which it was drawn.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    nodes: Vec<Node>,
    /// Outputs.
    pub outputs: Vec<Value>,
}

impl Draft {
    /// Number of operators.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The inputs, and all results.
    pub fn values(&self) -> Vec<Value> {
        let inputs = (0..2).map(|node| Value { node, port: 0 });
        let results =
            self.nodes.iter().enumerate().flat_map(|(at, node)| (0..node.widths.len()).map(move |port| Value { node: at + 2, port }));
        inputs.chain(results).collect()
    }

    /// Columns of a value.
    pub fn width(&self, value: Value) -> usize {
        value.node.checked_sub(2).map_or(COLUMNS, |at| self.nodes[at].widths[value.port])
    }

    /// Whether an operator reads a value.
    pub fn is_read(&self, value: Value) -> bool {
        self.nodes.iter().any(|node| node.operands.contains(&value))
    }

    /// Adds an operator.
    pub fn add(&mut self, form: Form, operands: Vec<Value>) {
        let width = self.width(operands[0]);
        let widths = match form {
            Form::Unary(_) | Form::Binary(_) | Form::Scale(_) => vec![width],
            Form::Product(_) => vec![COLUMNS],
            Form::Join => vec![operands.iter().map(|value| self.width(*value)).sum()],
            // One column cannot be split any further.
            Form::Split if width == 1 => vec![1],
            Form::Split if width == 4 => vec![2, 2],
            Form::Split => vec![1, width - 1],
        };
        self.nodes.push(Node { form, operands, widths });
    }

    /// All drafts with one output or one operator less. What read the operator reads its operand
    /// instead, where that has the same shape.
    pub fn smaller(&self) -> Vec<Draft> {
        let mut all = Vec::new();
        for at in 0..self.outputs.len() {
            if self.outputs.len() > 1 {
                let mut outputs = self.outputs.clone();
                outputs.remove(at);
                all.push(Draft { outputs, ..self.clone() });
            }
        }
        for at in (0..self.nodes.len()).rev() {
            all.extend(self.nodes[at].operands.iter().filter_map(|by| self.without(at, *by)));
        }
        all
    }

    /// This without an operator, its results replaced; `None` if a result of another shape is read.
    fn without(&self, at: usize, by: Value) -> Option<Draft> {
        let fits = |value: &Value| value.node != at + 2 || self.width(*value) == self.width(by);
        let renamed = |value: &Value| {
            let value = if value.node == at + 2 { by } else { *value };
            Value { node: value.node - usize::from(value.node > at + 2), ..value }
        };
        let read = self.nodes.iter().flat_map(|node| &node.operands).chain(&self.outputs);
        if !read.clone().all(fits) {
            return None;
        }
        let mut nodes = self.nodes.clone();
        nodes.remove(at);
        for node in &mut nodes {
            node.operands = node.operands.iter().map(renamed).collect();
        }
        let mut outputs: Vec<Value> = Vec::new();
        for output in self.outputs.iter().map(renamed).filter(|value| value.node >= 2) {
            if !outputs.contains(&output) {
                outputs.push(output);
            }
        }
        (!outputs.is_empty()).then_some(Draft { nodes, outputs })
    }

    /// As text.
    pub fn text(&self) -> String {
        let name = |value: &Value| match value.node {
            0 => "x".to_string(),
            1 => "y".to_string(),
            node => format!("v{}_{}", node - 2, value.port),
        };
        let mut body = String::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let operands: Vec<String> = node.operands.iter().map(name).collect();
            let (operands, width) = (operands.join(", "), self.width(node.operands[0]));
            let results: Vec<String> = (0..node.widths.len()).map(|port| name(&Value { node: at + 2, port })).collect();
            let op = match node.form {
                Form::Unary(op) | Form::Binary(op) => format!("{op}({operands})"),
                Form::Product(weight) => format!("MatMul({operands}, {weight}{width})"),
                Form::Scale(number) => format!("Mul({operands}, {number})"),
                Form::Join => format!("Concat({operands}, axis=1)"),
                Form::Split => format!("Split({operands}, axis=1, sizes={:?})", node.widths),
            };
            body += &format!("{} = {op} ", results.join(", "));
        }
        let weights = |name: &str| -> String {
            let used = |width: &usize| body.contains(&format!(", {name}{width})"));
            (1..=8).filter(used).map(|width| format!("const {name}{width}: f32[{width},{COLUMNS}] ")).collect()
        };
        let numbers = |name: &str| if body.contains(&format!(", {name})")) { format!("const {name}: f32[] ") } else { String::new() };
        let constants = [weights("w"), weights("v"), numbers("b"), numbers("c")].concat();
        let outputs: Vec<String> = self.outputs.iter().map(name).collect();
        format!("graph (x: f32[{ROWS},{COLUMNS}], y: f32[{ROWS},{COLUMNS}]) {{ {constants}{body}output {} }}", outputs.join(", "))
    }

    /// The graph as searches receive it.
    pub fn graph(&self) -> Graph {
        let mut graph = text::parse(&self.text()).unwrap_or_else(|why| panic!("{why}: {}", self.text()));
        normal::dce(&mut graph);
        normal::cse(&mut graph);
        graph
    }
}
