//! Blocks: small graphs cut out of large ones, to learn on.

use regraft_cost::is_priced;
use regraft_ir::{Graph, NodeId, Op, SplitMix64, ValueId, normal};
use rustc_hash::{FxHashMap, FxHashSet};

/// Fewest and most nodes of a block that are computed in a run.
const SIZES: (usize, usize) = (6, 36);

/// A block of a graph that nodes next to each other make up: its size and its place are drawn.
///
/// `None` if the graph has too few nodes, or the block would read a value of unknown type.
pub fn block(graph: &Graph, random: &mut SplitMix64) -> Option<Graph> {
    let order: Vec<NodeId> = graph.topological().into_iter().filter(|id| is_priced(graph, *id)).collect();
    let size = SIZES.0 + random.below(SIZES.1 - SIZES.0 + 1);
    let size = size.min(order.len());
    if size < SIZES.0 {
        return None;
    }
    let start = random.below(order.len() - size + 1);
    cut(graph, &order[start..start + size])
}

/// The graph of some nodes: what they read from others are inputs, what others read of them are
/// outputs; what depends on constants alone comes along. `None` if a type is not known.
pub fn cut(graph: &Graph, nodes: &[NodeId]) -> Option<Graph> {
    let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
    let mut cutting = Cutting { graph, inside, block: Graph::new("block"), places: FxHashMap::default() };
    for id in nodes {
        cutting.copy(*id)?;
    }
    for id in nodes {
        for port in 0..graph.node(*id).types.len() as u32 {
            let value = id.port(port);
            let is_read = graph.users(value).any(|(user, _)| !cutting.inside.contains(&user)) || graph.is_output(value);
            if is_read {
                let output = cutting.places[&value];
                cutting.block.add_output(&format!("y{}_{port}", id.0), output);
            }
        }
    }
    let mut block = cutting.block;
    normal::dce(&mut block);
    normal::cse(&mut block);
    Some(block)
}

struct Cutting<'g> {
    graph: &'g Graph,
    inside: FxHashSet<NodeId>,
    block: Graph,
    places: FxHashMap<ValueId, ValueId>,
}

impl Cutting<'_> {
    fn copy(&mut self, id: NodeId) -> Option<()> {
        let node = self.graph.node(id);
        let inputs = node.inputs.iter().map(|value| self.value(*value)).collect::<Option<Vec<_>>>()?;
        let copy = match &node.op {
            Op::Constant(constant) => self.block.add_const(constant.value.clone()).node,
            op => self.block.add_typed(op.clone(), &inputs, node.types.to_vec()),
        };
        for port in 0..node.types.len() as u32 {
            self.places.insert(id.port(port), copy.port(port));
        }
        Some(())
    }

    fn value(&mut self, value: ValueId) -> Option<ValueId> {
        if let Some(place) = self.places.get(&value) {
            return Some(*place);
        }
        let node = self.graph.node(value.node);
        if node.constant && !matches!(node.op, Op::Input(_)) {
            self.copy(value.node)?;
            return self.places.get(&value).copied();
        }
        let ty = self.graph.ty(value)?.clone();
        let name = format!("x{}_{}", value.node.0, value.port);
        let input = if node.constant { self.block.add_parameter(&name, ty) } else { self.block.add_input(&name, ty) };
        self.places.insert(value, input);
        Some(input)
    }
}
