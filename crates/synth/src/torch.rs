//! Operators as source of PyTorch.

use std::fmt::Write;

use regraft_ir::{Graph, NodeId, Op, ValueId};
use rustc_hash::FxHashMap;

/// Source of a file with a module for each graph of an operator: the formula as `FORMULA`, and as
/// `LAYERS` the modules by the shapes, without the batch, of what they read and make.
///
/// A module's input is its graph's first, its weights are parameters. The batch, the first axis,
/// may have any size. `None` if a graph has an operator or a size that [`graph`](crate::graph) does
/// not write.
pub fn source(formula: &str, graphs: &[Graph]) -> Option<String> {
    let mut text = String::from("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n");
    let _ = writeln!(text, "FORMULA = \"{formula}\"");
    let mut layers = String::from("\n\nLAYERS = {\n");
    for (at, graph) in graphs.iter().enumerate() {
        let name = format!("Layer{}", at + 1);
        text.push_str("\n\n");
        text.push_str(&module(graph, &name)?);
        let shape = |value| Some(tuple(&graph.ty(value)?.known_shape()?[1..]));
        let (input, output) = (shape(graph.inputs().first()?.out())?, shape(graph.outputs().first()?.value)?);
        let _ = writeln!(layers, "    ({input}, {output}): {name},");
    }
    Some(text + &layers + "}\n")
}

/// A class that computes a graph.
fn module(graph: &Graph, name: &str) -> Option<String> {
    let mut names: FxHashMap<ValueId, String> = FxHashMap::default();
    let (mut parameters, mut lines) = (String::new(), String::new());
    for (at, input) in graph.inputs().iter().enumerate() {
        let shape = graph.ty(input.out())?.known_shape()?;
        if at == 0 {
            names.insert(input.out(), "x".into());
            continue;
        }
        let weight = at - 1;
        names.insert(input.out(), format!("self.w{weight}"));
        let _ = writeln!(parameters, "        self.w{weight} = nn.Parameter(torch.empty({}))", list(&shape));
    }
    for id in graph.topological() {
        if names.contains_key(&id.out()) {
            continue;
        }
        let line = expression(graph, id, &names)?;
        let value = format!("v{}", names.len());
        let _ = writeln!(lines, "        {value} = {line}");
        names.insert(id.out(), value);
    }
    let result = names.get(&graph.outputs().first()?.value)?;
    Some(format!(
        "class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n{parameters}        \
         for weight in self.parameters():\n            nn.init.trunc_normal_(weight, std=0.1)\n\n    def forward(self, x):\n{lines}        return {result}\n"
    ))
}

fn list(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

fn tuple(sizes: &[i64]) -> String {
    format!("({}{})", list(sizes), if sizes.len() == 1 { "," } else { "" })
}

/// One operator as an expression.
fn expression(graph: &Graph, id: NodeId, names: &FxHashMap<ValueId, String>) -> Option<String> {
    let node = graph.node(id);
    let operands: Vec<&String> = node.inputs.iter().map(|value| names.get(value)).collect::<Option<_>>()?;
    // Whether the first axis is the batch: everything that comes from the input keeps it, weights
    // do not have one.
    let batched = |value: ValueId| reads_input(graph, value);
    let shape = |value: ValueId| graph.ty(value)?.known_shape();
    Some(match &node.op {
        Op::Constant(constant) => format!("torch.tensor([{}], device=x.device)", list(&constant.value.to_i64()?)),
        Op::Reshape(_) => {
            let (before, after) = (shape(node.inputs[0])?, shape(id.out())?);
            match batched(node.inputs[0]) {
                true if before[0] == after[0] => format!("{}.reshape(-1, {})", operands[0], list(&after[1..])),
                // Axes joined with the batch, or parted from it.
                true => format!("{}.reshape(-1, {})", operands[0], list(&after[1..])),
                false => format!("{}.reshape({})", operands[0], list(&after)),
            }
        }
        Op::Transpose(op) => format!("{}.permute({})", operands[0], list(&op.perm)),
        Op::Slice(op) => {
            let (axis, start, end) = (*op.axes.first()? as usize, op.starts.first()?.known()?, op.ends.first()?.known()?);
            let step = if op.steps[0] == 1 { String::new() } else { format!(":{}", op.steps[0]) };
            format!("{}[{}{start}:{end}{step}]", operands[0], ":, ".repeat(axis))
        }
        Op::Pad(op) => {
            let rank = op.pads.len() / 2;
            let pads: Vec<i64> = (0..rank).rev().flat_map(|axis| [op.pads[axis], op.pads[rank + axis]]).collect();
            format!("F.pad({}, ({}))", operands[0], list(&pads))
        }
        Op::Concat(op) => format!("torch.cat([{}], {})", operands.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", "), op.axis),
        Op::Unsqueeze(op) => format!("{}.unsqueeze({})", operands[0], op.axes.first()?),
        Op::Expand(_) => format!("{}.expand(-1, {})", operands[0], list(&shape(id.out())?[1..])),
        Op::Gather(op) => format!("{}.index_select({}, {})", operands[0], op.axis, operands[1]),
        Op::ReduceSum(op) => format!("{}.sum(({},))", operands[0], list(&op.axes)),
        Op::Mul(_) => format!("{} * {}", operands[0], operands[1]),
        Op::MatMul(_) => format!("{} @ {}", operands[0], operands[1]),
        Op::Einsum(op) => format!("torch.einsum(\"{}\", {}, {})", op.equation, operands[0], operands[1]),
        Op::Conv(op) => format!("F.conv2d({}, {}, padding=({}), groups={})", operands[0], operands[1], list(&op.pads[..2]), op.group),
        _ => return None,
    })
}

/// Whether a value depends on the graph's first input.
fn reads_input(graph: &Graph, value: ValueId) -> bool {
    let Some(first) = graph.inputs().first() else { return false };
    value == first.out() || graph.node(value.node).inputs.iter().any(|operand| reads_input(graph, *operand))
}
