//! The reference executor: every operator's own definition, nothing fused, nothing reordered.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, HashSet};

use rustc_hash::FxHashMap;

use crate::constant::Const;
use crate::dim::Bindings;
use crate::dtype::{Class, DType};
use crate::error::EvalError;
use crate::graph::{Graph, NodeId, ValueId};
use crate::op::{EvalContext, Op, OpKind};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;
use crate::typed::typed;

/// Computes opaque operators for the reference executor, if possible.
pub trait OpaqueEval<S> {
    /// Results of the opaque node `id` for these operands.
    fn eval(&mut self, graph: &Graph, id: NodeId, inputs: &[Value<S>]) -> Result<Vec<Value<S>>, EvalError>;
}

/// Refuses every opaque operator.
pub struct NoOpaque;

impl<S> OpaqueEval<S> for NoOpaque {
    fn eval(&mut self, graph: &Graph, id: NodeId, _: &[Value<S>]) -> Result<Vec<Value<S>>, EvalError> {
        match &graph.node(id).op {
            Op::Opaque(op) => Err(EvalError::Opaque(op.op_type.to_string())),
            other => Err(EvalError::Opaque(other.kind().name().to_string())),
        }
    }
}

/// Values of the declared outputs for these inputs, in order.
///
/// Symbols are bound from the shapes of the given inputs; values are dropped after their last
/// reader, so peak memory is that of the widest cut.
pub fn run<S: Scalar>(
    graph: &Graph,
    feeds: &HashMap<String, Value<S>>,
    opaque: &mut dyn OpaqueEval<S>,
) -> Result<Vec<Value<S>>, EvalError> {
    let wanted: Vec<ValueId> = graph.outputs().iter().map(|o| o.value).collect();
    values(graph, feeds, &wanted, opaque)
}

/// Values of any results of the graph for these inputs, in the order requested.
pub fn values<S: Scalar>(
    graph: &Graph,
    feeds: &HashMap<String, Value<S>>,
    wanted: &[ValueId],
    opaque: &mut dyn OpaqueEval<S>,
) -> Result<Vec<Value<S>>, EvalError> {
    walk(graph, feeds, wanted, opaque, false)
}

/// Values of constant expressions as their types hold them; see [`typed`](crate::typed::typed).
pub fn constants<S: Scalar>(graph: &Graph, wanted: &[ValueId]) -> Result<Vec<Value<S>>, EvalError> {
    walk(graph, &HashMap::new(), wanted, &mut NoOpaque, true)
}

fn walk<S: Scalar>(
    graph: &Graph,
    feeds: &HashMap<String, Value<S>>,
    wanted: &[ValueId],
    opaque: &mut dyn OpaqueEval<S>,
    is_typed: bool,
) -> Result<Vec<Value<S>>, EvalError> {
    let bindings = bind(graph, feeds)?;
    let order = cone(graph, wanted);
    let mut readers: FxHashMap<NodeId, u32> = FxHashMap::default();
    let read = order.iter().flat_map(|id| &graph.node(*id).inputs).chain(wanted);
    read.for_each(|v| *readers.entry(v.node).or_default() += 1);
    let mut results: HashMap<NodeId, Vec<Value<S>>> = HashMap::new();
    for id in order {
        let node = graph.node(id);
        let computed = if let Op::Input(input) = &node.op {
            vec![feeds.get(input.name.as_ref()).cloned().ok_or_else(|| EvalError::MissingInput(input.name.to_string()))?]
        } else {
            let operands: Vec<Value<S>> = node.inputs.iter().map(|v| results[&v.node][v.port as usize].clone()).collect();
            if matches!(node.op, Op::Opaque(_)) {
                opaque.eval(graph, id, &operands)?
            } else {
                eval_node(graph, id, &operands, &bindings, is_typed)?
            }
        };
        for v in &node.inputs {
            if let Some(left) = readers.get_mut(&v.node) {
                *left -= 1;
                if *left == 0 {
                    results.remove(&v.node);
                }
            }
        }
        results.insert(id, computed);
    }
    wanted
        .iter()
        .map(|v| {
            results
                .get(&v.node)
                .and_then(|r| r.get(v.port as usize))
                .cloned()
                .ok_or_else(|| EvalError::value("a wanted value was not computed"))
        })
        .collect()
}

/// Operations of a graph at these sizes, and elements that its nodes read and write; `None` if a
/// size is unbound.
pub fn effort(graph: &Graph, bindings: &Bindings) -> Option<f64> {
    let mut sum = 0.0;
    for id in graph.ids() {
        let node = graph.node(id);
        let bound = |ty: Option<&TensorType>| ty?.bind(bindings);
        let inputs: Vec<Vec<usize>> = node.inputs.iter().map(|v| bound(graph.ty(*v))).collect::<Option<_>>()?;
        let outputs: Vec<Vec<usize>> = node.types.iter().map(|ty| bound(ty.as_ref())).collect::<Option<_>>()?;
        let elements = |shapes: &[Vec<usize>]| shapes.iter().map(|s| s.iter().map(|d| *d as f64).product::<f64>()).sum::<f64>();
        sum += node.op.work(&inputs, &outputs).flops + elements(&inputs) + elements(&outputs);
    }
    Some(sum)
}

/// The constant that a constant cone computes, evaluated in double precision and rounded at casts
/// and at the end.
///
/// # Errors
///
/// Constants that runtimes may compute differently; see [`typed`](crate::typed::typed).
pub fn constant_value(graph: &Graph, value: ValueId) -> Result<Const, EvalError> {
    if let Some(c) = graph.constant(value) {
        return Ok(c.clone());
    }
    let dtype = graph.ty(value).map_or(DType::F32, |t| t.dtype);
    let results = if dtype == DType::F32 && only_moves(graph, value) {
        values::<f32>(graph, &HashMap::new(), &[value], &mut NoOpaque)?.first().map(|v| v.to_const(dtype))
    } else {
        constants::<f64>(graph, &[value])?.first().map(|v| v.to_const(dtype))
    };
    results.flatten().ok_or_else(|| EvalError::value("a constant of an exotic type"))
}

/// The constant behind a value, if it is one, or if it is computed only from integers and booleans,
/// with at most `largest` elements at each step: then no step rounds.
pub fn exact_constant(graph: &Graph, value: ValueId, largest: usize) -> Option<Const> {
    if let Some(constant) = graph.constant(value) {
        return Some(constant.clone());
    }
    if !graph.is_constant(value) {
        return None;
    }
    let (mut stack, mut seen) = (vec![value], HashSet::from([value]));
    while let Some(value) = stack.pop() {
        let ty = graph.ty(value)?;
        let few = ty.elements().known().is_some_and(|n| n <= largest as i64);
        if !few || !matches!(ty.dtype.class(), Class::Int | Class::Bool) {
            return None;
        }
        stack.extend(graph.node(value.node).inputs.iter().filter(|v| seen.insert(**v)));
    }
    constant_value(graph, value).ok()
}

/// Whether a constant cone only moves single-precision elements and computes none, so that single
/// precision holds them all.
fn only_moves(graph: &Graph, value: ValueId) -> bool {
    cone(graph, &[value]).into_iter().all(|id| moves(graph, id, DType::F32))
}

/// Whether a node is a constant of this type, or only moves elements.
pub(crate) fn moves(graph: &Graph, id: NodeId, dtype: DType) -> bool {
    let node = graph.node(id);
    match node.op.kind() {
        OpKind::Constant => node.types.iter().flatten().all(|t| t.dtype == dtype),
        kind => kind.moves_elements(),
    }
}

fn eval_node<S: Scalar>(
    graph: &Graph,
    id: NodeId,
    operands: &[Value<S>],
    bindings: &Bindings,
    is_typed: bool,
) -> Result<Vec<Value<S>>, EvalError> {
    let node = graph.node(id);
    let input_types: Option<Vec<TensorType>> = node.inputs.iter().map(|v| graph.ty(*v).cloned()).collect();
    let output_types: Option<Vec<TensorType>> = node.types.iter().cloned().collect();
    match (input_types, output_types) {
        (Some(input_types), Some(output_types)) => {
            let context = EvalContext { bindings, input_types: &input_types, output_types: &output_types };
            let results = node.op.eval(operands, &context)?;
            if !is_typed || node.op.kind() == OpKind::Constant {
                return Ok(results);
            }
            let untold = || EvalError::value(format!("a constant of which `{}` may make another one elsewhere", node.op.kind().name()));
            typed(node.op.kind(), operands, &context, results).ok_or_else(untold)
        }
        _ => Err(EvalError::value(format!("`{}` has operands or results of unknown type", node.op.kind().name()))),
    }
}

/// Binds the symbols of declared input shapes to the given sizes.
fn bind<S: Scalar>(graph: &Graph, feeds: &HashMap<String, Value<S>>) -> Result<Bindings, EvalError> {
    let mut bindings = Bindings::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let Some(value) = feeds.get(input.name.as_ref()) else { continue };
        if value.shape().len() != input.ty.rank() {
            return Err(EvalError::value(format!("input `{}` has rank {}, but {} is declared", input.name, value.shape().len(), input.ty)));
        }
        for (d, size) in input.ty.shape.iter().zip(value.shape()) {
            if let Some((symbol, number)) = d.solve_number(*size as i64) {
                bindings.insert(symbol.to_string(), number);
            } else if d.linear().is_some() || d.known().is_some_and(|k| k != *size as i64) {
                return Err(EvalError::value(format!(
                    "input `{}` has shape {:?}, but {} is declared",
                    input.name,
                    value.shape(),
                    input.ty
                )));
            }
        }
    }
    Ok(bindings)
}

/// All nodes that values are computed from, in topological order, in time that does not depend on
/// the rest of the graph.
fn cone(graph: &Graph, wanted: &[ValueId]) -> Vec<NodeId> {
    // Operands not computed yet, by node.
    let mut waiting: FxHashMap<NodeId, u32> = FxHashMap::default();
    let mut stack: Vec<NodeId> = wanted.iter().map(|v| v.node).collect();
    while let Some(id) = stack.pop() {
        if let Entry::Vacant(entry) = waiting.entry(id) {
            let inputs = &graph.node(id).inputs;
            entry.insert(inputs.len() as u32);
            stack.extend(inputs.iter().map(|v| v.node));
        }
    }
    let mut ready: BinaryHeap<Reverse<NodeId>> = waiting.iter().filter(|(_, left)| **left == 0).map(|(id, _)| Reverse(*id)).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for (user, _) in &graph.node(id).users {
            let Some(left) = waiting.get_mut(user) else { continue };
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(*user));
            }
        }
    }
    order
}
