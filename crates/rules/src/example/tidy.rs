//! Graphs made readable: names of the rule's variables, single precision, short numbers.

use std::collections::{HashMap, HashSet};

use regraft_ir::ops::{Constant, Input};
use regraft_ir::{Attr, Class, Const, DType, Float, Graph, NodeId, Op, PatchValue, TensorType, ValueId, text};

use crate::expr::Val;
use crate::matcher::Found;
use crate::operator::operator;
use crate::rule::Rule;

/// Numbers to substitute for longer ones.
const SHORT: [f64; 6] = [2.0, 0.5, 3.0, 1.0, 0.25, 0.0];
/// Maximum number of constant elements to write individually.
const WRITTEN: usize = 8;

/// The graph made readable as long as `keeps` still finds the required match, whose variables name
/// the values. `None` if it does not find one to begin with.
pub(super) fn tidied(rule: &Rule, graph: &Graph, keeps: &dyn Fn(&Graph) -> Option<Found>) -> Option<Graph> {
    let mut graph = rebuilt(graph, &|_, op| op.clone(), &HashMap::new())?;
    keeps(&graph)?;
    let adopt = |graph: &mut Graph, other: Option<Graph>| {
        let kept = other.filter(|other| keeps(other).is_some());
        let adopted = kept.is_some();
        *graph = kept.unwrap_or_else(|| std::mem::take(graph));
        adopted
    };
    let single = rebuilt(&graph, &|_, op| single(op), &HashMap::new());
    adopt(&mut graph, single);
    for number in numbers(&graph).into_iter().filter(|v| v.is_finite() && is_long(*v)) {
        let used = numbers(&graph);
        [0.5].iter().chain(&SHORT).filter(|short| !used.contains(short)).any(|short| {
            let shorter = rebuilt(&graph, &|_, op| with_number(op, number, *short), &HashMap::new());
            adopt(&mut graph, shorter)
        });
    }
    let found = keeps(&graph)?;
    let named = named(rule, &graph, &found);
    adopt(&mut graph, named);
    for id in graph.ids().collect::<Vec<_>>() {
        for shorter in shorter_constants(&graph, id) {
            let other = rebuilt(
                &graph,
                &|at, op| if at == id { Op::Constant(Constant { value: shorter.clone() }) } else { op.clone() },
                &names(&graph),
            );
            if adopt(&mut graph, other) {
                break;
            }
        }
    }
    // As a file would contain it.
    text::parse(&text::print(&graph)).ok().filter(|graph| keeps(graph).is_some())
}

/// The elements that the text format assigns to a constant of this name.
pub(super) fn seeded(name: &str, ty: &TensorType) -> Option<Const> {
    let graph = text::parse(&format!("graph () {{ const {name}: {ty} output {name} }}")).ok()?;
    graph.constant(graph.outputs()[0].value).cloned()
}

/// The graph with other operators and without dead nodes. Weights without elements get some.
fn rebuilt(graph: &Graph, remake: &dyn Fn(NodeId, &Op) -> Op, names: &HashMap<ValueId, String>) -> Option<Graph> {
    let mut new = Graph::new("");
    let mut values: HashMap<ValueId, ValueId> = HashMap::new();
    let order = graph.topological();
    let mut needed: HashSet<NodeId> = graph.outputs().iter().map(|output| output.value.node).collect();
    for id in order.iter().rev() {
        if needed.contains(id) {
            needed.extend(graph.node(*id).inputs.iter().map(|v| v.node));
        }
    }
    for id in order.into_iter().filter(|id| needed.contains(id)) {
        let node = graph.node(id);
        let made = match remake(id, &node.op) {
            Op::Input(Input { name, ty }) if node.constant => new.add_const(seeded(&name, &ty)?).node,
            Op::Input(Input { name, ty }) => new.add_input(names.get(&id.out()).map_or(name.as_ref(), String::as_str), ty).node,
            Op::Constant(Constant { value }) => new.add_const(value).node,
            op => {
                let inputs: Vec<ValueId> = node.inputs.iter().map(|v| values.get(v).copied()).collect::<Option<_>>()?;
                new.add(op, &inputs).ok()?
            }
        };
        for port in 0..node.types.len() as u32 {
            values.insert(id.port(port), made.port(port));
            if let Some(name) = names.get(&id.port(port)) {
                new.set_name(made.port(port), name);
            }
        }
    }
    for output in graph.outputs() {
        let name = names.get(&output.value).map_or(output.name.as_ref(), String::as_str);
        new.add_output(name, *values.get(&output.value)?);
    }
    Some(new)
}

/// The names that values have.
fn names(graph: &Graph) -> HashMap<ValueId, String> {
    let values = graph.ids().flat_map(|id| (0..graph.node(id).types.len() as u32).map(move |port| id.port(port)));
    values.filter_map(|v| Some((v, graph.node(v.node).names[v.port as usize].as_deref()?.to_string()))).collect()
}

/// The operator in single instead of double precision.
fn single(op: &Op) -> Op {
    match op {
        Op::Input(Input { name, ty }) if ty.dtype == DType::F64 => {
            Op::Input(Input { name: name.clone(), ty: TensorType { dtype: DType::F32, ..ty.clone() } })
        }
        Op::Constant(Constant { value }) if value.dtype() == DType::F64 => {
            let other = value.to_f64().and_then(|elements| Const::from_f64(DType::F32, value.shape(), &elements));
            Op::Constant(Constant { value: other.unwrap_or_else(|| value.clone()) })
        }
        op => op.clone(),
    }
}

fn is_long(number: f64) -> bool {
    (number * 1000.0).fract() != 0.0
}

/// Numbers among the attributes, ascending.
fn numbers(graph: &Graph) -> Vec<f64> {
    let attrs = graph.ids().flat_map(|id| graph.node(id).op.attrs());
    let mut all: Vec<f64> = attrs.filter_map(|(_, attr)| if let Attr::Float(Float(v)) = attr { Some(v) } else { None }).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn with_number(op: &Op, old: f64, new: f64) -> Op {
    if !op.attrs().iter().any(|(_, attr)| *attr == Attr::Float(Float(old))) {
        return op.clone();
    }
    let replaced =
        |(name, attr): (&str, Attr)| (name.to_string(), if attr == Attr::Float(Float(old)) { Attr::Float(Float(new)) } else { attr });
    operator(op.kind(), op.attrs().into_iter().map(replaced).collect()).unwrap_or_else(|_| op.clone())
}

/// The graph with the names of the rule's variables.
fn named(rule: &Rule, graph: &Graph, found: &Found) -> Option<Graph> {
    let mut names: HashMap<ValueId, String> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    let mut give = |value: ValueId, name: String| {
        if !names.contains_key(&value) && taken.insert(name.clone()) {
            names.insert(value, name);
        }
    };
    for (variable, value) in rule.variables.iter().zip(&found.env) {
        let name = variable.replace('-', "_");
        match value {
            Some(Val::Value(PatchValue::Old(value))) => give(*value, name),
            Some(Val::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    if let Val::Value(PatchValue::Old(value)) = item {
                        give(*value, format!("{name}{}", at + 1));
                    }
                }
            }
            _ => {}
        }
    }
    let roots = graph.outputs().len();
    for (at, output) in graph.outputs().iter().enumerate() {
        give(output.value, if roots == 1 { "result".into() } else { format!("result{}", at + 1) });
    }
    for (at, id) in graph.inputs().iter().enumerate() {
        give(id.out(), format!("other{}", at + 1));
    }
    for (at, id) in graph.ids().filter(|id| matches!(graph.node(*id).op, Op::Constant(_))).enumerate() {
        give(id.out(), format!("c{}", at + 1));
    }
    rebuilt(graph, &|_, op| op.clone(), &names)
}

/// Constants that could replace this one and are shorter to write, the best first.
fn shorter_constants(graph: &Graph, id: NodeId) -> Vec<Const> {
    let node = graph.node(id);
    let Op::Constant(Constant { value }) = &node.op else { return Vec::new() };
    let (dtype, shape) = (value.dtype(), value.shape());
    let made = |elements: Vec<f64>| Const::from_f64(dtype, shape, &elements);
    let filled = |number: f64| made(vec![number; value.elements()]);
    match value.splat() {
        Some(number) if !is_long(number) => Vec::new(),
        Some(_) => SHORT.iter().filter_map(|number| filled(*number)).collect(),
        None if dtype.class() != Class::Real && value.elements() <= WRITTEN => Vec::new(),
        None => {
            let named = node.names[0].as_deref().and_then(|name| seeded(name, &value.ty()));
            if named.as_ref() == Some(value) {
                return Vec::new();
            }
            // Variances stay positive.
            let positive = value.to_f64().is_some_and(|elements| elements.iter().all(|v| *v > 0.0));
            let named = named.filter(|_| !positive);
            let count = value.elements();
            let ascending = (count <= WRITTEN).then(|| made((1..=count).map(|n| n as f64).collect())).flatten();
            let rounded = (count <= WRITTEN)
                .then(|| made(value.to_f64().unwrap_or_default().iter().map(|v| (2.0 * v).round() / 2.0).collect()))
                .flatten();
            named.into_iter().chain(ascending).chain(SHORT[..2].iter().filter_map(|number| filled(*number))).chain(rounded).collect()
        }
    }
}
