//! Sizes that graphs compute from shapes, read from shapes that have them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use regraft_ir::ops::Input;
use regraft_ir::ops::reshape::Reshape;
use regraft_ir::ops::shape::Shape;
use regraft_ir::{DType, Dim, Graph, NodeId, Op, TensorType, ValueId};

/// Longest vector of sizes that is looked into.
const LONGEST: usize = 16;

/// Both graphs with every size that they compute from shapes read from the shape of a further
/// input, and without the inputs that nothing reads then: where a model's height is halved three
/// times, a rewrite deep inside it speaks of the result alone. What holds for all further inputs
/// holds for these sizes. `None` if nothing is computed from shapes.
pub(crate) fn carried(graphs: [&Graph; 2]) -> Option<[Graph; 2]> {
    let parts = graphs.map(Part::of);
    if parts.iter().all(|part| part.computed.is_empty()) {
        return None;
    }
    let inputs = parts.iter().flat_map(|part| part.reached.iter().filter_map(|id| input(part.graph, *id))).collect();
    let further = parts.iter().flat_map(|part| part.computed.values().cloned()).collect();
    let [before, after] = &parts;
    Some([before.rebuilt(&inputs, &further)?, after.rebuilt(&inputs, &further)?])
}

/// What a graph needs for its outputs.
struct Part<'a> {
    graph: &'a Graph,
    /// The nodes, without those that computed sizes alone need.
    reached: BTreeSet<NodeId>,
    /// Nodes whose value is computed from shapes, and the sizes that it consists of.
    computed: BTreeMap<NodeId, Vec<Dim>>,
}

impl Part<'_> {
    fn of(graph: &Graph) -> Part<'_> {
        let mut known = HashMap::new();
        for id in graph.topological() {
            if let Some(sizes) = sizes(graph, id, &known) {
                known.insert(id, sizes);
            }
        }
        let is_computed = |sizes: &Vec<Dim>| sizes.iter().all(|size| size.at_least(1)) && sizes.iter().any(|size| size.known().is_none());
        let mut part = Part { graph, reached: BTreeSet::new(), computed: BTreeMap::new() };
        let mut open: Vec<NodeId> = graph.outputs().iter().map(|output| output.value.node).collect();
        while let Some(id) = open.pop() {
            match known.get(&id).filter(|sizes| is_computed(sizes)) {
                Some(sizes) => drop(part.computed.insert(id, sizes.clone())),
                None if part.reached.insert(id) => open.extend(graph.node(id).inputs.iter().map(|value| value.node)),
                None => {}
            }
        }
        part
    }

    /// The graph with these inputs, as far as it has them, and further ones of these shapes.
    fn rebuilt(&self, inputs: &BTreeSet<&str>, further: &BTreeSet<Vec<Dim>>) -> Option<Graph> {
        let graph = self.graph;
        let mut result = Graph::new(graph.name.clone());
        let mut values: HashMap<ValueId, ValueId> = HashMap::new();
        for id in graph.inputs() {
            if let Op::Input(Input { name, ty }) = &graph.node(*id).op
                && inputs.contains(name.as_ref())
            {
                let add = if graph.node(*id).constant { Graph::add_parameter } else { Graph::add_input };
                values.insert(id.out(), add(&mut result, name, ty.clone()));
            }
        }
        let mut shapes = HashMap::new();
        for (at, sizes) in further.iter().enumerate() {
            let carrier = result.add_input(&format!("sizes {at}"), TensorType::new(DType::F32, sizes.iter().cloned()));
            shapes.insert(sizes, result.add(Op::Shape(Shape { start: 0, end: sizes.len() as i64 }), &[carrier]).ok()?.out());
        }
        for id in graph.topological() {
            let node = graph.node(id);
            let added = match (self.computed.get(&id), &node.op) {
                (Some(sizes), _) => {
                    let vector = *shapes.get(sizes)?;
                    let is_scalar = node.types[0].as_ref()?.rank() == 0;
                    if is_scalar { result.add(Op::Reshape(Reshape { shape: Vec::new() }), &[vector]).ok()? } else { vector.node }
                }
                (None, Op::Input(_)) => continue,
                (None, _) if !self.reached.contains(&id) => continue,
                (None, Op::Constant(constant)) => result.add_const(constant.value.clone()).node,
                (None, op) => {
                    let operands: Vec<ValueId> = node.inputs.iter().map(|value| values.get(value).copied()).collect::<Option<_>>()?;
                    result.add_typed(op.clone(), &operands, node.types.to_vec())
                }
            };
            values.extend((0..node.types.len() as u32).map(|port| (id.port(port), added.port(port))));
        }
        for output in graph.outputs() {
            result.add_output(&output.name, *values.get(&output.value)?);
        }
        Some(result)
    }
}

fn input(graph: &Graph, id: NodeId) -> Option<&str> {
    if let Op::Input(input) = &graph.node(id).op { Some(&input.name) } else { None }
}

/// The elements of a scalar or a vector of integers, as far as they are sizes.
fn sizes(graph: &Graph, id: NodeId, known: &HashMap<NodeId, Vec<Dim>>) -> Option<Vec<Dim>> {
    let node = graph.node(id);
    let [Some(ty)] = node.types.as_slice() else { return None };
    let length = ty.elements().known().filter(|length| *length <= LONGEST as i64)?;
    if ty.dtype != DType::I64 || ty.rank() > 1 {
        return None;
    }
    let operand = |at: usize| node.inputs.get(at).and_then(|value| known.get(&value.node));
    let each = |f: &dyn Fn(&Dim, &Dim) -> Option<Dim>| {
        let (a, b) = (operand(0)?, operand(1)?);
        let pick = |of: &[Dim], at: usize| of.get(if of.len() == 1 { 0 } else { at }).cloned();
        (0..length as usize).map(|at| f(&pick(a, at)?, &pick(b, at)?)).collect::<Option<Vec<Dim>>>()
    };
    match &node.op {
        Op::Constant(constant) => Some(constant.value.to_i64()?.into_iter().map(Dim::from).collect()),
        Op::Shape(Shape { start, end }) => graph.ty(node.inputs[0])?.shape.get(*start as usize..*end as usize).map(<[Dim]>::to_vec),
        Op::Add(_) => each(&|a, b| Some(a.clone() + b.clone())),
        Op::Sub(_) => each(&|a, b| Some(a.clone() - b.clone())),
        Op::Mul(_) => each(&|a, b| Some(a.clone() * b.clone())),
        // Integer division rounds towards zero.
        Op::Div(_) => each(&|a, b| (a.at_least(0) && b.at_least(1)).then(|| a.floor_div(b))),
        Op::Concat(_) => Some((0..node.inputs.len()).map(|at| operand(at).cloned()).collect::<Option<Vec<_>>>()?.concat()),
        Op::Gather(_) => {
            let from = operand(0)?;
            let at = |index: &Dim| usize::try_from(index.known()?).ok();
            operand(1)?.iter().map(|index| from.get(at(index)?).cloned()).collect()
        }
        Op::Reshape(_) | Op::Squeeze(_) | Op::Unsqueeze(_) | Op::Identity(_) => operand(0).cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text;

    fn read(graph: &str) -> Option<String> {
        let graph = text::parse(graph).unwrap_or_else(|e| panic!("{e}\n{graph}"));
        carried([&graph, &graph]).map(|[graph, _]| text::print(&graph))
    }

    /// What counts the rows of `x`, of which there are half as many as the image has, and `more`.
    fn counted(more: &str, length: &str) -> String {
        format!(
            "graph (image: f32[3,H], x: f32[floor(H + 1, 2)]) {{\n  const zero: i64[] = [0]\n  const one: i64[] = [1]\n  const two: i64[1] = [2]\n  \
             const more: i64[1] = [{more}]\n  shape = Shape(image, start=1, end=2)\n  sum = Add(shape, more)\n  half = Div(sum, two)\n  \
             limit = Reshape(half, shape=[])\n  rows = Range(zero, limit, one, shape=[{length}])\n  output rows\n  output x\n}}\n"
        )
    }

    #[test]
    fn sizes_are_read_where_they_are() {
        let read = read(&counted("1", "floor(H + 1, 2)")).expect("a size is computed");
        assert!(!read.contains("image") && !read.contains("Div"), "{read}");
        assert!(read.contains("f32[floor(H + 1, 2)]"), "{read}");
    }

    #[test]
    fn numbers_that_may_be_no_sizes_are_computed() {
        let read = read(&counted("-1", "floor(H - 1, 2)"));
        assert!(read.as_ref().is_none_or(|read| read.contains("Div")), "{read:?}");
    }
}
