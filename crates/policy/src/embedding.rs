//! What the network knows of each node, kept up to date while an engine goes from state to state.

use std::cell::OnceCell;

use regraft_ir::{Graph, NodeId};
use regraft_search::Engine;
use rustc_hash::FxHashSet;

use crate::features;
use crate::linear::{add_product, add_scaled, normalize, relu};
use crate::weights::{Among, HIDDEN, Part, ROUNDS, Side, WIDTH, Weights};

/// One row for a node.
pub(crate) type Row = [f32; WIDTH];
/// What a node adds to the first layer of a move's score, by its place among the nodes of the move.
type Shares = [[f32; HIDDEN]; Among::ALL.len()];

/// The rows of all nodes of a state, after each round.
///
/// A node learns from its operands and its readers, once a round; what depends on constants alone
/// has nothing to learn. After a move, only what is near it changes: [`Embedding::follow`] computes
/// that anew, and [`Embedding::back`] puts it back.
#[derive(Clone, Debug)]
pub struct Embedding<'w> {
    weights: &'w Weights,
    /// Rows by node, of the features and after each round.
    layers: [Vec<Row>; ROUNDS + 1],
    /// What nodes add to the scores of moves, once that was asked.
    shares: Vec<OnceCell<Box<Shares>>>,
    /// Rows that moves replaced, with the layer.
    log: Vec<(usize, NodeId, Row)>,
    /// Where the rows of each move begin in it.
    marks: Vec<usize>,
    /// Nodes whose last rows the latest move changed, while nothing was undone since.
    changed: FxHashSet<NodeId>,
}

impl<'w> Embedding<'w> {
    /// Of the engine's current state.
    pub fn new(weights: &'w Weights, engine: &Engine<'_>) -> Embedding<'w> {
        let graph = engine.graph();
        let mut layers: [Vec<Row>; ROUNDS + 1] = std::array::from_fn(|_| vec![[0.0; WIDTH]; graph.capacity()]);
        for id in graph.ids() {
            layers[0][at(id)] = features_of(weights, engine, id);
        }
        let shares = vec![OnceCell::new(); graph.capacity()];
        let mut embedding = Embedding { weights, layers, shares, log: Vec::new(), marks: Vec::new(), changed: FxHashSet::default() };
        for layer in 1..=ROUNDS {
            for id in graph.ids() {
                embedding.layers[layer][at(id)] = embedding.round(graph, layer, id);
            }
        }
        embedding
    }

    /// The rows of a node after the last round.
    pub fn row(&self, id: NodeId) -> &[f32; WIDTH] {
        &self.layers[ROUNDS][at(id)]
    }

    /// What a node adds to the first layer of the score of a move that it is at this place of.
    pub(crate) fn share(&self, id: NodeId, place: Among) -> &[f32; HIDDEN] {
        let shares = self.shares[at(id)].get_or_init(|| {
            Box::new(Among::ALL.map(|place| {
                let mut share = [0.0; HIDDEN];
                add_product(&mut share, self.row(id), self.weights.part(Part::MoveNodes(place)));
                share
            }))
        });
        &shares[place as usize]
    }

    /// After the engine applied a move.
    pub fn follow(&mut self, engine: &Engine<'_>) {
        let graph = engine.graph();
        self.begin(graph);
        let mut moved: Vec<NodeId> = engine.dirty().into_iter().filter(|id| graph.get(*id).is_some()).collect();
        let mut told: Vec<NodeId> = engine.disturbed().filter(|id| graph.get(*id).is_some()).chain(moved.iter().copied()).collect();
        told.sort_unstable();
        told.dedup();
        let mut changed = Vec::new();
        for id in told {
            let row = features_of(self.weights, engine, id);
            self.put(0, id, row, &mut changed);
        }
        for layer in 1..=ROUNDS {
            moved.extend(&changed);
            moved.sort_unstable();
            moved.dedup();
            changed.clear();
            for id in ball(graph, &moved) {
                let row = self.round(graph, layer, id);
                self.put(layer, id, row, &mut changed);
            }
        }
        self.changed = changed.into_iter().collect();
    }

    /// What the latest move changed, to be done again by [`Embedding::redo`].
    pub fn latest(&self) -> Changes {
        let mark = self.marks.last().copied().unwrap_or(self.log.len());
        Changes(self.log[mark..].iter().map(|(layer, id, _)| (*layer, *id, self.layers[*layer][at(*id)])).collect())
    }

    /// The same as [`Embedding::follow`], after a move that was followed before in this very state,
    /// and has changed this.
    pub fn redo(&mut self, engine: &Engine<'_>, changes: &Changes) {
        self.begin(engine.graph());
        for (layer, id, row) in &changes.0 {
            let before = self.set(*layer, *id, *row);
            self.log.push((*layer, *id, before));
        }
        self.changed = changes.0.iter().filter(|(layer, ..)| *layer == ROUNDS).map(|(_, id, _)| *id).collect();
    }

    /// Whether the latest move, which was not undone since, changed what is known of a node.
    pub fn is_changed(&self, id: NodeId) -> bool {
        self.changed.contains(&id)
    }

    /// After the engine undid its latest move.
    pub fn back(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        self.changed.clear();
        for (layer, id, row) in self.log.split_off(mark).into_iter().rev() {
            self.set(layer, id, row);
        }
    }

    /// Marks where a move begins, and makes room for all nodes.
    fn begin(&mut self, graph: &Graph) {
        self.marks.push(self.log.len());
        let capacity = graph.capacity().max(self.shares.len());
        self.layers.iter_mut().for_each(|layer| layer.resize(capacity, [0.0; WIDTH]));
        self.shares.resize(capacity, OnceCell::new());
    }

    fn put(&mut self, layer: usize, id: NodeId, row: Row, changed: &mut Vec<NodeId>) {
        if self.layers[layer][at(id)] != row {
            let before = self.set(layer, id, row);
            self.log.push((layer, id, before));
            changed.push(id);
        }
    }

    /// Replaces a row, which is returned.
    fn set(&mut self, layer: usize, id: NodeId, row: Row) -> Row {
        if layer == ROUNDS {
            self.shares[at(id)].take();
        }
        std::mem::replace(&mut self.layers[layer][at(id)], row)
    }

    /// The row of a node after a round, from those before it.
    fn round(&self, graph: &Graph, layer: usize, id: NodeId) -> Row {
        let node = graph.node(id);
        let before = &self.layers[layer - 1];
        let own = before[at(id)];
        if node.constant {
            return own;
        }
        let part = |side: Side| self.weights.part(Part::Round(layer - 1, side));
        let mut sum: Row = [0.0; WIDTH];
        sum.copy_from_slice(self.weights.part(Part::RoundBias(layer - 1)));
        add_product(&mut sum, &own, part(Side::Itself));
        if let Some(first) = node.inputs.first() {
            add_product(&mut sum, &before[at(first.node)], part(Side::First));
        }
        let others = node.inputs.iter().skip(1).map(|value| value.node);
        add_mean(&mut sum, others, before, part(Side::Others));
        // Readers come in any order: sums of them must not depend on it.
        let mut readers: Vec<NodeId> = node.users.iter().map(|(user, _)| *user).collect();
        readers.sort_unstable();
        add_mean(&mut sum, readers.into_iter(), before, part(Side::Readers));
        relu(&mut sum);
        sum.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
        normalize(&mut sum);
        sum
    }

    /// The mean of the rows of what is computed in a run.
    pub fn mean(&self, graph: &Graph) -> [f32; WIDTH] {
        let mut mean = [0.0; WIDTH];
        let nodes: Vec<NodeId> = graph.ids().filter(|id| !graph.node(*id).constant).collect();
        for id in &nodes {
            add_scaled(&mut mean, 1.0 / nodes.len() as f32, self.row(*id));
        }
        mean
    }
}

/// Rows that a move changed, with the layer and the node.
#[derive(Clone, Debug, Default)]
pub struct Changes(Vec<(usize, NodeId, Row)>);

fn at(id: NodeId) -> usize {
    id.0 as usize
}

fn features_of(weights: &Weights, engine: &Engine<'_>, id: NodeId) -> Row {
    let kind = features::kind(engine.graph().node(id).op.kind());
    let mut row: Row = [0.0; WIDTH];
    row.copy_from_slice(weights.part(Part::NodeBias));
    add_scaled(&mut row, 1.0, &weights.part(Part::Kind)[kind * WIDTH..][..WIDTH]);
    add_product(&mut row, &features::node(engine, id), weights.part(Part::Node));
    normalize(&mut row);
    row
}

fn add_mean(sum: &mut Row, nodes: impl ExactSizeIterator<Item = NodeId>, rows: &[Row], matrix: &[f32]) {
    let count = nodes.len();
    let mut mean: Row = [0.0; WIDTH];
    nodes.for_each(|id| add_scaled(&mut mean, 1.0 / count as f32, &rows[at(id)]));
    add_product(sum, &mean, matrix);
}

/// Nodes and their neighbours, but for those that depend on constants alone.
fn ball(graph: &Graph, nodes: &[NodeId]) -> Vec<NodeId> {
    let mut ball: FxHashSet<NodeId> = nodes.iter().copied().collect();
    for id in nodes {
        let node = graph.node(*id);
        let near = node.inputs.iter().map(|value| value.node).chain(node.users.iter().map(|(user, _)| *user));
        ball.extend(near.filter(|id| !graph.node(*id).constant));
    }
    let mut ball: Vec<NodeId> = ball.into_iter().collect();
    ball.sort_unstable();
    ball
}
