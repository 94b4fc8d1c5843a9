//! `Regions`: a graph cut into parts where few values cross, so that each can be searched alone.

use regraft_cost::is_priced;
use regraft_ir::{Graph, NodeId, Op, OpKind, TensorType};
use rustc_hash::FxHashMap;

/// Fewest and most nodes of a region.
const SIZES: (usize, usize) = (8, 48);

/// Parts of a graph: every node that is computed in a run belongs to one.
pub(crate) struct Regions {
    /// The nodes of each part, operands first.
    pub(crate) parts: Vec<Vec<NodeId>>,
    /// The part of each node of the graph that was cut, by id.
    owner: Vec<Option<usize>>,
}

/// What a region looks like from inside and from its border, up to what weights hold.
pub(crate) type Looks = Vec<NodeLooks>;

/// A node, what it reads, and what outside reads it.
#[derive(PartialEq)]
pub(crate) struct NodeLooks {
    op: Op,
    operands: Vec<(Option<TensorType>, Source)>,
    readers: Vec<(OpKind, u32)>,
    feeds_output: bool,
}

/// Where an operand comes from.
#[derive(PartialEq)]
enum Source {
    /// A node of the region, by its place, and which of its results.
    Inside(usize, u32),
    /// A constant, by its place among all values from outside.
    Constant(usize),
    /// A node of another region, or an input of the graph, by its place among them, and what it is.
    Outside(usize, OpKind),
}

impl Regions {
    /// Cuts a graph where the fewest values cross; `shift` moves the cuts by about half a region.
    pub(crate) fn of(graph: &Graph, shift: bool) -> Regions {
        let order: Vec<NodeId> = graph.topological().into_iter().filter(|id| is_priced(graph, *id)).collect();
        let crossing = crossing(graph, &order);
        let (mut parts, mut start) = (Vec::new(), 0);
        let (mut fewest, mut most) = if shift { (SIZES.0 / 2, SIZES.1 / 2) } else { SIZES };
        while start < order.len() {
            let end = if order.len() - start <= most {
                order.len()
            } else {
                // Of equally narrow places the last one.
                (start + fewest..=start + most).min_by_key(|at| (crossing[*at], std::cmp::Reverse(*at))).unwrap_or(order.len())
            };
            parts.push(order[start..end].to_vec());
            start = end;
            (fewest, most) = SIZES;
        }
        let mut owner = vec![None; graph.capacity()];
        for (at, part) in parts.iter().enumerate() {
            part.iter().for_each(|id| owner[id.0 as usize] = Some(at));
        }
        Regions { parts, owner }
    }

    /// All of a graph, as one part.
    pub(crate) fn whole(graph: &Graph) -> Regions {
        let nodes = graph.topological().into_iter().filter(|id| is_priced(graph, *id)).collect();
        Regions { parts: vec![nodes], owner: Vec::new() }
    }

    /// Whether a node is of this part, or was made since the graph was cut.
    pub(crate) fn owns(&self, part: usize, id: NodeId) -> bool {
        self.owner(id).is_none_or(|owner| owner == part)
    }

    /// The part that a node belongs to, if it did when the graph was cut.
    pub(crate) fn owner(&self, id: NodeId) -> Option<usize> {
        self.owner.get(id.0 as usize).copied().flatten()
    }

    /// The nodes of a part and those that they read: of two parts that look alike, the ones at the
    /// same places stand for each other.
    pub(crate) fn frame(&self, graph: &Graph, part: usize) -> Vec<NodeId> {
        let with_operands = |id: &NodeId| std::iter::once(*id).chain(graph.node(*id).inputs.iter().map(|value| value.node));
        self.parts[part].iter().flat_map(with_operands).collect()
    }

    /// What a part looks like.
    pub(crate) fn looks(&self, graph: &Graph, part: usize) -> Looks {
        let places: FxHashMap<NodeId, usize> = self.parts[part].iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut outside = FxHashMap::default();
        let mut looks = Looks::new();
        for id in &self.parts[part] {
            let node = graph.node(*id);
            let operands = node.inputs.iter().map(|value| {
                let source = match places.get(&value.node) {
                    Some(at) => Source::Inside(*at, value.port),
                    None => {
                        let count = outside.len();
                        let at = *outside.entry(*value).or_insert(count);
                        let maker = graph.node(value.node);
                        if maker.constant { Source::Constant(at) } else { Source::Outside(at, maker.op.kind()) }
                    }
                };
                (graph.ty(*value).cloned(), source)
            });
            let operands = operands.collect();
            let far = node.users.iter().filter(|(user, _)| !places.contains_key(user));
            let mut readers: Vec<(OpKind, u32)> = far.map(|(user, slot)| (graph.node(*user).op.kind(), *slot)).collect();
            readers.sort_unstable();
            looks.push(NodeLooks { op: node.op.clone(), operands, readers, feeds_output: graph.feeds_output(*id) });
        }
        looks
    }
}

/// How many computed values cross each place in the order: are made before it and read after it.
fn crossing(graph: &Graph, order: &[NodeId]) -> Vec<usize> {
    let place: FxHashMap<NodeId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut ends = vec![0; order.len() + 1];
    let (mut crossing, mut live) = (vec![0; order.len() + 1], 0);
    for (at, id) in order.iter().enumerate() {
        crossing[at] = live;
        live -= ends[at];
        let last = graph.node(*id).users.iter().filter_map(|(user, _)| place.get(user)).max();
        if let Some(last) = last {
            live += 1;
            ends[*last] += 1;
        }
    }
    crossing
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text::parse;

    #[test]
    fn a_network_is_cut_between_its_blocks() {
        let block = |at: usize| {
            let x = if at == 0 { "x".to_string() } else { format!("y{}", at - 1) };
            let chain = (0..8).map(|i| {
                let from = if i == 0 { x.clone() } else { format!("a{at}_{}", i - 1) };
                format!("a{at}_{i} = Neg({from}) ")
            });
            format!("{} y{at} = Add({x}, a{at}_7) ", chain.collect::<String>())
        };
        let text = format!("graph (x: f32[4]) {{ {} output y9 }}", (0..10).map(block).collect::<String>());
        let graph = parse(&text).expect("a graph");
        let regions = Regions::of(&graph, false);
        assert_eq!(regions.parts.iter().map(Vec::len).sum::<usize>(), 90);
        // Cuts are at sums; all regions of the same size look alike but the first, which reads the
        // input.
        assert!(regions.parts.iter().all(|part| graph.node(part[part.len() - 1]).op.kind() == OpKind::Add));
        let looks: Vec<Looks> = (0..regions.parts.len()).map(|part| regions.looks(&graph, part)).collect();
        assert!(
            looks.len() > 1
                && (0..looks.len())
                    .all(|at| regions.owns(at, regions.parts[at][0]) && !regions.owns(at, regions.parts[(at + 1) % looks.len()][0]))
        );
        assert_ne!(Regions::of(&graph, true).parts[0].len(), regions.parts[0].len());
    }
}
