//! `FlowSplit`: a graph divided where the fewest rewrites are.

use regraft_cost::is_priced;
use regraft_ir::{Graph, NodeId};
use rustc_hash::FxHashMap;

use crate::engine::Move;
use crate::min_cut::vertex_cut;

/// Parts of a graph, separated by vertex cuts on which few matches lie (MetaFlow, SysML 2019,
/// section 5: flow-based recursive graph split).
pub(crate) struct FlowSplit {
    /// Number of parts.
    pub(crate) parts: usize,
    /// The part of each node, by id; `None` if it lies on a cut, or is not computed in a run.
    owner: Vec<Option<usize>>,
}

impl FlowSplit {
    /// Splits a graph until no part has more than `most` nodes, if that is possible. The capacity
    /// of a node is how many of these moves take it away.
    pub(crate) fn of<'m>(graph: &Graph, moves: impl Iterator<Item = &'m Move>, most: usize) -> FlowSplit {
        let order: Vec<NodeId> = graph.topological().into_iter().filter(|id| is_priced(graph, *id)).collect();
        let place: FxHashMap<NodeId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut neighbours = vec![Vec::new(); order.len()];
        for (at, id) in order.iter().enumerate() {
            for maker in graph.node(*id).inputs.iter().filter_map(|value| place.get(&value.node)) {
                if !neighbours[at].contains(maker) {
                    neighbours[at].push(*maker);
                    neighbours[*maker].push(at);
                }
            }
        }
        let mut matches = vec![0; order.len()];
        moves.flat_map(|step| &step.nodes).filter_map(|id| place.get(id)).for_each(|at| matches[*at] += 1);
        // One match weighs more than all nodes without any.
        let capacity = matches.into_iter().map(|count| (count * (order.len() as u64 + 1)).max(1)).collect();
        let mut splitting = Splitting { neighbours, capacity, most: most.max(1), owner: vec![None; order.len()], parts: 0 };
        splitting.split((0..order.len()).collect());
        let mut owner = vec![None; graph.capacity()];
        order.iter().zip(splitting.owner).for_each(|(id, part)| owner[id.0 as usize] = part);
        FlowSplit { parts: splitting.parts, owner }
    }

    /// The part of a node; `None` if it lies on a cut.
    pub(crate) fn owner(&self, id: NodeId) -> Option<usize> {
        self.owner.get(id.0 as usize).copied().flatten()
    }

    /// Gives nodes that were made since to a part, or to the cut between parts.
    pub(crate) fn assign(&mut self, made: std::ops::Range<usize>, part: Option<usize>) {
        self.owner.resize(made.end.max(self.owner.len()), None);
        self.owner[made].fill(part);
    }
}

struct Splitting {
    neighbours: Vec<Vec<usize>>,
    capacity: Vec<u64>,
    most: usize,
    owner: Vec<Option<usize>>,
    parts: usize,
}

impl Splitting {
    fn split(&mut self, vertices: Vec<usize>) {
        let mut open = vec![vertices];
        while let Some(vertices) = open.pop() {
            if vertices.is_empty() {
                continue;
            }
            match self.divided(&vertices) {
                Some((before, after)) if vertices.len() > self.most => open.extend([after, before]),
                _ => {
                    vertices.iter().for_each(|vertex| self.owner[*vertex] = Some(self.parts));
                    self.parts += 1;
                }
            }
        }
    }

    /// Two parts with no edge between them, without what was cut; `None` if every vertex is next to
    /// every other.
    fn divided(&self, vertices: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        let place: FxHashMap<usize, usize> = vertices.iter().enumerate().map(|(at, vertex)| (*vertex, at)).collect();
        let near = |vertex: &usize| self.neighbours[*vertex].iter().filter_map(|other| place.get(other).copied()).collect();
        let neighbours: Vec<Vec<usize>> = vertices.iter().map(near).collect();
        let named = |is: &dyn Fn(usize) -> bool| (0..vertices.len()).filter(|at| is(*at)).map(|at| vertices[at]).collect::<Vec<_>>();
        let component = component(&neighbours);
        if component.iter().any(|inside| !inside) {
            return Some((named(&|at| component[at]), named(&|at| !component[at])));
        }
        // Of equally small cuts, the one nearest to the middle.
        let count = vertices.len() as u64;
        let from_middle = |at: usize| (2 * at as u64).abs_diff(count);
        let capacity: Vec<u64> =
            vertices.iter().enumerate().map(|(at, vertex)| self.capacity[*vertex] * count * count + from_middle(at)).collect();
        // The first vertex and the last, as far from each other as can be; else two neighbours of
        // the first, which is next to all.
        let from_first = (1..vertices.len()).rev().map(|sink| (0, sink));
        let others = (1..vertices.len()).flat_map(|source| (source + 1..vertices.len()).rev().map(move |sink| (source, sink)));
        let found = from_first.chain(others).find_map(|(source, sink)| vertex_cut(&neighbours, &capacity, source, sink))?;
        Some((named(&|at| found.is_before[at]), named(&|at| !found.is_before[at] && !found.cut.contains(&at))))
    }
}

/// The largest connected component.
fn component(neighbours: &[Vec<usize>]) -> Vec<bool> {
    let mut seen = vec![false; neighbours.len()];
    let mut largest: Vec<usize> = Vec::new();
    for start in 0..neighbours.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let (mut found, mut at) = (vec![start], 0);
        while let Some(vertex) = found.get(at).copied() {
            at += 1;
            for other in &neighbours[vertex] {
                if !std::mem::replace(&mut seen[*other], true) {
                    found.push(*other);
                }
            }
        }
        if found.len() > largest.len() {
            largest = found;
        }
    }
    let mut inside = vec![false; neighbours.len()];
    largest.into_iter().for_each(|vertex| inside[vertex] = true);
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text::parse;

    #[test]
    fn parts_are_small_and_nothing_leads_from_one_to_another_but_through_a_cut() {
        let block = |at: usize| {
            let x = if at == 0 { "x".to_string() } else { format!("y{}", at - 1) };
            format!("a{at} = Neg({x}) b{at} = Abs(a{at}) c{at} = Tanh({x}) y{at} = Add(b{at}, c{at}) ")
        };
        let text = format!("graph (x: f32[4]) {{ {} output y19 }}", (0..20).map(block).collect::<String>());
        let graph = parse(&text).expect("a graph");
        let split = FlowSplit::of(&graph, std::iter::empty(), 10);
        let mut sizes = vec![0; split.parts];
        let mut cut = 0;
        for id in graph.ids().filter(|id| is_priced(&graph, *id)) {
            let Some(part) = split.owner(id) else {
                cut += 1;
                continue;
            };
            sizes[part] += 1;
            let near = graph.node(id).inputs.iter().filter_map(|value| split.owner(value.node));
            assert!(near.into_iter().all(|other| other == part), "{id:?}");
        }
        assert!(sizes.iter().all(|size| (1..=10).contains(size)), "{sizes:?}");
        assert!(split.parts > 7 && cut < 20, "{} parts, {cut} nodes on cuts", split.parts);
    }
}
