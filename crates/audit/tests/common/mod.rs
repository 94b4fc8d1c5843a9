//! Deliberately mutated graphs.

use std::collections::HashMap;

use regraft_ir::{Attr, Const, Graph, Op, OpKind, SplitMix64, Value, ValueId, eval};

/// Relative difference above which two sides differ.
const DIFFERENT: f64 = 1e-6;

/// Another list of integers, of the same length.
fn changed(values: &[i64], rng: &mut SplitMix64) -> Vec<i64> {
    let mut values = values.to_vec();
    let at = rng.below(values.len());
    if rng.below(2) == 0 && values.len() > 1 {
        let other = rng.below(values.len());
        values.swap(at, other);
    } else {
        values[at] += if rng.below(2) == 0 { 1 } else { -1 };
    }
    values
}

/// An operator of the same kind with one attribute changed, or of a related kind.
fn mutated(op: &Op, rng: &mut SplitMix64) -> Option<Op> {
    const RELATED: &[&[OpKind]] = &[
        &[OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Div, OpKind::Max, OpKind::Min],
        &[OpKind::Relu, OpKind::Abs, OpKind::Neg, OpKind::Sigmoid, OpKind::Tanh, OpKind::Exp],
        &[OpKind::ReduceSum, OpKind::ReduceMean, OpKind::ReduceMax, OpKind::ReduceSumSquare],
        &[OpKind::GlobalAveragePool, OpKind::GlobalMaxPool],
    ];
    let mut attrs: Vec<(String, Attr)> = op.attrs().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    if attrs.is_empty() || rng.below(3) == 0 {
        let family = RELATED.iter().find(|family| family.contains(&op.kind()))?;
        return family[rng.below(family.len())].with_attrs(&attrs).ok();
    }
    let at = rng.below(attrs.len());
    attrs[at].1 = match &attrs[at].1 {
        Attr::Int(v) => Attr::Int(v + if rng.below(2) == 0 { 1 } else { -1 }),
        Attr::Ints(v) if !v.is_empty() => Attr::Ints(changed(v, rng)),
        Attr::Float(v) => Attr::Float(regraft_ir::Float(v.0 * 1.5 + 0.25)),
        Attr::Bool(v) => Attr::Bool(!v),
        _ => return None,
    };
    op.kind().with_attrs(&attrs).ok()
}

/// The graph with one random change; `None` if the result is not well typed.
pub fn mutant(graph: &Graph, rng: &mut SplitMix64) -> Option<Graph> {
    let order: Vec<_> = graph.topological().into_iter().filter(|id| !matches!(graph.node(*id).op, Op::Input(_))).collect();
    let target = *order.get(rng.below(order.len()))?;
    let mut copy = Graph::new("mutant");
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { return None };
        map.insert(id.out(), copy.add_input(&input.name, input.ty.clone()));
    }
    for id in order {
        let node = graph.node(id);
        let mut operands: Vec<ValueId> = node.inputs.iter().map(|v| map.get(v).copied()).collect::<Option<_>>()?;
        let mut op = node.op.clone();
        if id == target {
            match &node.op {
                Op::Constant(constant) => {
                    let mut values = constant.value.to_f64()?;
                    let at = rng.below(values.len());
                    *values.get_mut(at)? += 1.0;
                    let value = Const::from_f64(constant.value.dtype(), constant.value.shape(), &values)?;
                    map.insert(id.out(), copy.add_const(value));
                    continue;
                }
                _ if operands.len() > 1 && rng.below(2) == 0 => {
                    let (a, b) = (rng.below(operands.len()), rng.below(operands.len()));
                    operands.swap(a, b);
                }
                _ if rng.below(4) == 0 && !operands.is_empty() => {
                    let all: Vec<ValueId> = map.values().copied().collect();
                    let at = rng.below(operands.len());
                    let mut others: Vec<ValueId> = all.into_iter().filter(|v| copy.ty(*v) == copy.ty(operands[at])).collect();
                    others.sort();
                    operands[at] = *others.get(rng.below(others.len()))?;
                }
                other => op = mutated(other, rng)?,
            }
        }
        if let Op::Constant(constant) = &op {
            map.insert(id.out(), copy.add_const(constant.value.clone()));
            continue;
        }
        let new = copy.add(op, &operands).ok()?;
        for port in 0..node.types.len().min(copy.node(new).types.len()) as u32 {
            map.insert(id.port(port), new.port(port));
        }
    }
    for output in graph.outputs() {
        let value = *map.get(&output.value)?;
        if copy.ty(value) != graph.ty(output.value) {
            return None;
        }
        copy.add_output(&output.name, value);
    }
    Some(copy)
}

/// Whether two graphs give clearly different numbers on these inputs.
pub fn differ(a: &Graph, b: &Graph, feeds: &HashMap<String, Const>) -> bool {
    let feeds: HashMap<String, Value<f64>> =
        feeds.iter().filter_map(|(name, constant)| Some((name.clone(), Value::from_const(constant)?))).collect();
    let run = |g: &Graph| eval::run::<f64>(g, &feeds, &mut eval::NoOpaque);
    let (Ok(a), Ok(b)) = (run(a), run(b)) else { return false };
    let finite = |value: &Value<f64>| !matches!(value, Value::Real(x) if !x.data.iter().all(|v| v.is_finite()));
    a.iter().zip(&b).any(|(x, y)| finite(x) && finite(y) && x.difference(y) > DIFFERENT)
}
