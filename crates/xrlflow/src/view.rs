//! `View`: the rows of each node of a graph, from which those of its neighbours follow.

use regraft_ir::{Bindings, Graph, NodeId};
use regraft_search::Engine;
use rustc_hash::FxHashMap;

use crate::encoded::{EDGE, Sizes, shape, type_of};
use crate::rows::{First, Pool, ROUNDS, Rows, senders};

/// A node's rows: before the first round, and after each.
type OfNode = [u32; ROUNDS + 1];

/// The rows of each node of a graph.
#[derive(Debug)]
pub struct View<'b> {
    /// By the number of the node.
    nodes: Vec<Option<OfNode>>,
    bindings: Option<&'b Bindings>,
    sizes: Sizes,
}

impl<'b> View<'b> {
    /// Of a graph at these values of symbols.
    pub fn of(graph: &Graph, bindings: Option<&'b Bindings>, sizes: Sizes, rows: &mut Rows) -> View<'b> {
        let mut view = View { nodes: vec![None; graph.capacity()], bindings, sizes };
        for id in graph.ids() {
            let mut own = [0; ROUNDS + 1];
            own[0] = rows.first(view.first(graph, id));
            view.nodes[id.0 as usize] = Some(own);
        }
        for round in 0..ROUNDS {
            for id in graph.ids() {
                let row = rows.next(round, senders(graph, id, |id| view.row(id, round)));
                if let Some(own) = &mut view.nodes[id.0 as usize] {
                    own[round + 1] = row;
                }
            }
        }
        view
    }

    fn first(&self, graph: &Graph, id: NodeId) -> First {
        let node = graph.node(id);
        // Sums in double precision are the same in any order, once they are rounded.
        let (mut out, mut into) = ([0.0f64; EDGE], [0.0f64; EDGE]);
        let add = |sum: &mut [f64; EDGE], numbers: [f32; EDGE]| sum.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += f64::from(n));
        for value in &node.inputs {
            add(&mut into, shape(graph, *value, self.bindings, self.sizes));
        }
        for (reader, place) in &node.users {
            add(&mut out, shape(graph, graph.node(*reader).inputs[*place as usize], self.bindings, self.sizes));
        }
        let bits = |sum: [f64; EDGE]| sum.map(|sum| (sum as f32).to_bits());
        First { kind: type_of(node.op.kind()), out: bits(out), into: bits(into) }
    }

    fn row(&self, id: NodeId, round: usize) -> u32 {
        self.nodes.get(id.0 as usize).copied().flatten().map_or(u32::MAX, |own| own[round])
    }

    /// The graph as rows of the last round.
    pub fn pool(&self) -> Pool {
        let last = self.nodes.iter().flatten().map(|own| (own[ROUNDS], 1));
        pooled(last.collect())
    }

    /// What the graph became by the engine's latest move, as rows of the last round: only what is
    /// near the move is looked at. The view stays that of the graph before.
    pub fn after(&self, engine: &Engine<'_>, rows: &mut Rows) -> Pool {
        let graph = engine.graph();
        let dirty: Vec<NodeId> = engine.dirty().into_iter().filter(|id| graph.get(*id).is_some()).collect();
        let mut changed: FxHashMap<NodeId, OfNode> = FxHashMap::default();
        let created = |id: &NodeId| engine.created().contains(id);
        let before = |id: NodeId| self.nodes.get(id.0 as usize).copied().flatten();
        let mut latest = Vec::new();
        for id in &dirty {
            let row = rows.first(self.first(graph, *id));
            let own = before(*id).filter(|_| !created(id)).unwrap_or([u32::MAX; ROUNDS + 1]);
            if own[0] != row {
                latest.push(*id);
            }
            changed.insert(*id, OfNode::from(std::array::from_fn(|round| if round == 0 { row } else { own[round] })));
        }
        for round in 0..ROUNDS {
            let readers = latest.iter().flat_map(|id| graph.node(*id).users.iter().map(|(reader, _)| *reader));
            let mut asked: Vec<NodeId> = latest.iter().copied().chain(readers).chain(dirty.iter().copied()).collect();
            asked.sort_unstable();
            asked.dedup();
            latest.clear();
            for id in asked {
                let row_of = |id: NodeId| changed.get(&id).map_or_else(|| self.row(id, round), |own| own[round]);
                let row = rows.next(round, senders(graph, id, row_of));
                let known = changed.get(&id).copied().or_else(|| before(id));
                let mut own = known.unwrap_or([u32::MAX; ROUNDS + 1]);
                if own[round + 1] != row {
                    own[round + 1] = row;
                    latest.push(id);
                    changed.insert(id, own);
                }
            }
        }
        let gone = engine.removed().chain(changed.keys().copied().filter(|id| !created(id)));
        let mut list: Vec<(u32, i32)> = gone.filter_map(before).map(|own| (own[ROUNDS], -1)).collect();
        list.extend(changed.values().map(|own| (own[ROUNDS], 1)));
        list.extend(self.nodes.iter().flatten().map(|own| (own[ROUNDS], 1)));
        pooled(list)
    }
}

/// Rows and how many nodes each is, sorted, each once.
fn pooled(mut list: Vec<(u32, i32)>) -> Pool {
    list.sort_unstable();
    let mut pool: Vec<(u32, i32)> = Vec::new();
    for (row, count) in list {
        match pool.last_mut().filter(|(last, _)| *last == row) {
            Some((_, sum)) => *sum += count,
            None => pool.push((row, count)),
        }
    }
    pool.retain(|(_, count)| *count != 0);
    pool.into()
}
