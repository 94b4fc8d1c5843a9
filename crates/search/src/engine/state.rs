//! `Engine`: a graph under rewriting; its key and cost are updated by deltas.

use std::hash::{Hash, Hasher};

use regraft_cost::{CostModel, Ns};
use regraft_ir::{Graph, NodeId};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::counters::Counters;
use super::facts::{Fact, Facts};
use super::hash::core;
use super::matcher::Offer;
use super::rewrite::Move;
use super::step::{Step, repriced, rewired};

/// A graph under rewriting.
pub struct Engine<'a> {
    graph: Graph,
    facts: Facts<'a>,
    key: u128,
    outputs_share: u128,
    /// What the overhead of a run and the nodes cost, each by itself.
    sum: Ns,
    /// What the graph costs: another cost than that if there are layouts to choose from.
    cost: Ns,
    steps: Vec<Step>,
    /// Previous facts of the nodes that steps changed, in the order of the steps.
    log: Vec<(NodeId, Fact)>,
    counters: Counters,
}

impl<'a> Engine<'a> {
    /// Starts from a graph in normal form.
    pub fn new(mut graph: Graph, model: &'a dyn CostModel) -> Engine<'a> {
        graph.renew_levels();
        let mut facts = Facts::new(model);
        facts.fit(&graph);
        let (mut key, mut sum) = (0u128, model.overhead());
        for id in graph.topological() {
            let node = graph.node(id);
            facts.admit(&graph, id, core(&node.op, node.inputs.iter().map(|v| graph.ty(*v))));
            key = key.wrapping_add(facts[id].share);
            sum = sum.saturating_add(facts.reprice(&graph, id));
        }
        let outputs_share = facts.share_of_outputs(&graph);
        let cost = facts.total(&graph, key.wrapping_add(outputs_share)).unwrap_or(sum);
        Engine { graph, facts, key, outputs_share, sum, cost, steps: Vec::new(), log: Vec::new(), counters: Counters::default() }
    }

    /// The current graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The prices.
    pub fn prices(&self) -> &'a dyn CostModel {
        self.facts.prices()
    }

    /// Its cost under the model.
    pub fn cost(&self) -> Ns {
        self.cost
    }

    /// What one node of it costs where it is.
    pub fn price(&self, id: NodeId) -> Ns {
        self.facts[id].price
    }

    /// The commutative 128-bit key of the current state: the same for every order of independent
    /// moves, and restored by inverse moves.
    pub fn key(&self) -> u128 {
        self.key.wrapping_add(self.outputs_share)
    }

    /// Number of moves applied and not undone.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Work done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Gives the graph back.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// Counts anchors examined, and what was found there.
    pub(super) fn count_matching(&mut self, anchors: usize, offer: &Offer) {
        self.counters.anchors += anchors as u64;
        self.counters.learned += offer.learned;
        self.counters.matches += offer.moves.len() as u64;
    }

    /// What moves are found in.
    pub(super) fn matched(&self) -> (&Graph, &Facts<'a>) {
        (&self.graph, &self.facts)
    }

    /// The latest move.
    pub(super) fn last_step(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// Applies a move found in this very state.
    pub fn apply(&mut self, step: &Move) {
        let (key, sum, cost, outputs_share, facts) = (self.key, self.sum, self.cost, self.outputs_share, self.log.len());
        let (patch, place) = step.edit();
        let applied = self.graph.apply_at(patch, |id| place[id.0 as usize]);
        self.facts.fit(&self.graph);
        self.facts.stray(&applied.rewired);
        for (id, _) in &applied.removed {
            let gone = std::mem::take(&mut self.facts[*id]);
            self.key = self.key.wrapping_sub(gone.share);
            self.sum -= gone.price;
            self.log.push((*id, gone));
        }
        let repriced = repriced(&self.graph, &self.facts, &applied, step.reads());
        self.log.extend(repriced.iter().map(|id| (*id, self.facts[*id])));
        for (created, core) in applied.created.iter().zip(step.cores()) {
            self.facts.admit(&self.graph, *created, *core);
            self.key = self.key.wrapping_add(self.facts[*created].share);
        }
        for id in rewired(&self.graph, &applied) {
            self.key = self.key.wrapping_add(self.facts.rewire(&self.graph, id));
        }
        for id in repriced.iter().chain(&applied.created) {
            let before = self.facts[*id].price;
            self.sum = self.sum - before + self.facts.reprice(&self.graph, *id);
        }
        if !applied.outputs.is_empty() {
            self.outputs_share = self.facts.share_of_outputs(&self.graph);
        }
        self.cost = self.facts.total(&self.graph, self.key()).unwrap_or(self.sum);
        self.counters.applied += 1;
        let (adds_paths, drops_paths) = (step.adds_paths(), step.drops_paths());
        self.steps.push(Step { applied, adds_paths, drops_paths, facts, key, sum, cost, outputs_share });
    }

    /// Undoes the latest move; false at the start state.
    pub fn undo(&mut self) -> bool {
        let Some(step) = self.steps.pop() else { return false };
        for (id, old) in self.log.drain(step.facts..) {
            self.facts[id] = old;
        }
        self.facts.return_strays(&step.applied.rewired);
        self.graph.undo(step.applied);
        self.facts.fit(&self.graph);
        (self.key, self.sum, self.cost, self.outputs_share) = (step.key, step.sum, step.cost, step.outputs_share);
        self.counters.undone += 1;
        true
    }

    /// Undoes moves until this many are left.
    pub fn rewind(&mut self, depth: usize) {
        while self.depth() > depth && self.undo() {}
    }

    /// Nodes that the latest move made.
    pub fn created(&self) -> &[NodeId] {
        self.last_step().map_or(&[], |step| &step.applied.created)
    }

    /// The cores of nodes that the latest move made, or that read something else since.
    pub(super) fn came(&self) -> SmallVec<[u64; 16]> {
        let Some(Step { applied, .. }) = self.last_step() else { return SmallVec::new() };
        rewired(&self.graph, applied).iter().chain(&applied.created).map(|id| self.facts[*id].core).collect()
    }

    /// Nodes that the latest move took away.
    pub fn removed(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.last_step().into_iter().flat_map(|step| step.applied.removed.iter().map(|(id, _)| *id))
    }

    /// Nodes that the latest move took away, and those whose prices are asked for in other
    /// surroundings since.
    pub fn disturbed(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (from, removed) = self.last_step().map_or((self.log.len(), 0), |step| (step.facts, step.applied.removed.len()));
        let changed =
            move |(at, (id, before)): (usize, &(NodeId, Fact))| (at < removed || self.facts[*id].context != before.context).then_some(*id);
        self.log[from..].iter().enumerate().filter_map(changed)
    }

    /// The kind of a move: equal for moves of one rule at matches with the same operators, operand
    /// types and near surroundings.
    pub fn kind_of(&self, step: &Move) -> u64 {
        let mut hasher = FxHasher::default();
        step.rule.hash(&mut hasher);
        step.cores().hash(&mut hasher);
        for id in &step.nodes {
            self.facts.surroundings(&self.graph, *id, &mut hasher);
        }
        hasher.finish()
    }

    /// Nodes that the latest move created, rewired, or whose readers it changed.
    pub fn dirty(&self) -> SmallVec<[NodeId; 24]> {
        self.last_step().map_or_else(SmallVec::new, |step| step.dirty(&self.graph))
    }
}
