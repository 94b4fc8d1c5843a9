//! Writing graphs as text.

use std::collections::HashSet;
use std::fmt::Write;

use crate::attr::Attr;
use crate::constant::Const;
use crate::dim::Dim;
use crate::graph::{Graph, NodeId, ValueId};
use crate::op::Op;
use crate::ops::OpaqueOp;
use crate::text::literal::{elements, seeded};
use crate::text::quoted;
use crate::ty::TensorType;

/// The graph in the text format. Reading it back gives the same graph, up to node ids.
///
/// Unnamed values are called after the output that returns them, or else `v0`, `v1`, ... Constants
/// are written with their data, unless it follows from their name. Not kept: where nodes came from,
/// payloads of NaNs, data of exotic types.
pub fn print(graph: &Graph) -> String {
    let order = graph.topological();
    let names = Names::new(graph, &order);
    let mut text = String::from("graph ");
    if !graph.name.is_empty() {
        text.push_str(&quoted(&graph.name));
        text.push(' ');
    }
    let inputs: Vec<String> =
        graph.inputs().iter().map(|id| format!("{}: {}", names.of(id.out()), graph.ty(id.out()).map_or_else(|| "?".into(), ty))).collect();
    let _ = writeln!(text, "({}) {{", inputs.join(", "));
    let mut opaque = 0;
    for id in order {
        let node = graph.node(id);
        match &node.op {
            Op::Input(_) => {}
            Op::Constant(c) => {
                let _ = writeln!(text, "  const {}: {}{}", names.of(id.out()), ty(&c.value.ty()), data(&c.value, names.raw(id.out())));
            }
            op => {
                let results: Vec<String> = (0..node.types.len() as u32).map(|port| names.of(id.port(port))).collect();
                let call = match op {
                    Op::Opaque(op) => {
                        opaque += 1;
                        self::opaque(graph, id, op, opaque - 1, &names)
                    }
                    op => call(op, &node.inputs, &names),
                };
                let results = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
                let _ = writeln!(text, "  {results}{call}");
            }
        }
    }
    if !graph.outputs().is_empty() {
        let outputs: Vec<String> = graph
            .outputs()
            .iter()
            .map(|output| {
                let value = names.of(output.value);
                if names.raw(output.value) == output.name.as_ref() { value } else { format!("{value} as {}", quoted(&output.name)) }
            })
            .collect();
        let _ = writeln!(text, "  output {}", outputs.join(", "));
    }
    text.push_str("}\n");
    text
}

fn call(op: &Op, inputs: &[ValueId], names: &Names) -> String {
    let operands = inputs.iter().map(|v| names.of(*v));
    let attrs = op.attrs().into_iter().filter(|(_, value)| *value != Attr::Absent).map(|(name, value)| format!("{name}={}", attr(&value)));
    format!("{}({})", op.kind().name(), operands.chain(attrs).collect::<Vec<_>>().join(", "))
}

fn opaque(graph: &Graph, id: NodeId, op: &OpaqueOp, count: u32, names: &Names) -> String {
    let node = graph.node(id);
    let mut operands = node.inputs.iter().map(|v| names.of(*v));
    let given: Vec<String> =
        op.given.iter().map(|given| if *given { operands.next() } else { None }.unwrap_or_else(|| "_".into())).collect();
    let captured: Vec<String> = operands.collect();
    let mut inside = given.join(", ");
    if !captured.is_empty() {
        let _ = write!(inside, "{}| {}", if inside.is_empty() { "" } else { " " }, captured.join(", "));
    }
    let mut attrs = Vec::new();
    if op.id != count {
        attrs.push(format!("id={}", op.id));
    }
    if !op.why.is_empty() {
        attrs.push(format!("why={:?}", op.why));
    }
    if op.effects {
        attrs.push("effects=true".into());
    }
    for attr in attrs {
        let _ = write!(inside, "{}{attr}", if inside.is_empty() { "" } else { ", " });
    }
    let domain = if op.domain.is_empty() { String::new() } else { format!("{}::", quoted(&op.domain)) };
    let types: Vec<String> = node.types.iter().map(|t| t.as_ref().map_or_else(|| "?".into(), ty)).collect();
    let arrow = if types.is_empty() { "" } else { " -> " };
    format!("opaque:{domain}{}({inside}){arrow}{}", quoted(&op.op_type), types.join(", "))
}

fn ty(ty: &TensorType) -> String {
    let sizes: Vec<String> = ty.shape.iter().map(|d| format!("{d:#}")).collect();
    format!("{}[{}]", ty.dtype, sizes.join(","))
}

fn attr(value: &Attr) -> String {
    match value {
        Attr::Dims(dims) => format!("[{}]", dims.iter().map(|d: &Dim| format!("{d:#}")).collect::<Vec<_>>().join(", ")),
        Attr::Tensor(value) => format!("{}({})", ty(&value.ty()), elements(value).unwrap_or_default().join(", ")),
        other => other.to_string(),
    }
}

/// ` = ..`, or nothing if the data follows from the name.
fn data(constant: &Const, name: &str) -> String {
    if seeded(constant.dtype(), constant.shape(), name).is_some_and(|made| made == *constant) {
        return String::new();
    }
    let Some(elements) = elements(constant) else { return String::new() };
    match elements.as_slice() {
        [first, rest @ ..] if rest.iter().all(|e| e == first) => format!(" = {first}"),
        _ => format!(" = [{}]", elements.join(", ")),
    }
}

/// A unique name for every value.
struct Names(Vec<Vec<String>>);

impl Names {
    fn new(graph: &Graph, order: &[NodeId]) -> Names {
        let mut names: Vec<Vec<Option<String>>> = vec![Vec::new(); graph.capacity()];
        let mut taken: HashSet<String> = HashSet::new();
        // Inputs keep their names, whatever else has the same name.
        for id in graph.inputs() {
            let name = match &graph.node(*id).op {
                Op::Input(input) => input.name.to_string(),
                _ => continue,
            };
            names[id.0 as usize] = vec![taken.insert(name.clone()).then_some(name)];
        }
        for id in order {
            let slots = &mut names[id.0 as usize];
            if slots.is_empty() {
                *slots = graph
                    .node(*id)
                    .names
                    .iter()
                    .map(|name| name.as_deref().map(String::from).filter(|n| taken.insert(n.clone())))
                    .collect();
            }
        }
        for output in graph.outputs() {
            let Some(slot) = names[output.value.node.0 as usize].get_mut(output.value.port as usize) else { continue };
            if slot.is_none() && taken.insert(output.name.to_string()) {
                *slot = Some(output.name.to_string());
            }
        }
        let mut count = 0;
        let mut fresh = || loop {
            let name = format!("v{count}");
            count += 1;
            if taken.insert(name.clone()) {
                return name;
            }
        };
        let mut named: Vec<Vec<String>> = vec![Vec::new(); names.len()];
        for id in order {
            let slots = std::mem::take(&mut names[id.0 as usize]);
            named[id.0 as usize] = slots.into_iter().map(|name| name.unwrap_or_else(&mut fresh)).collect();
        }
        Names(named)
    }

    fn raw(&self, value: ValueId) -> &str {
        self.0.get(value.node.0 as usize).and_then(|n| n.get(value.port as usize)).map_or("_", String::as_str)
    }

    fn of(&self, value: ValueId) -> String {
        quoted(self.raw(value))
    }
}
