//! `Policy`: scores for the moves of a state, and its value.

use regraft_ir::NodeId;
use regraft_rules::Library;
use regraft_search::{Engine, Move};

use crate::descriptor::descriptor;
use crate::embedding::Embedding;
use crate::features::{self, Known};
use crate::linear::{add_product, add_scaled, relu};
use crate::weights::{Among, HIDDEN, Part, WIDTH, Weights};

/// A network with its weights, for the rules of a library.
#[derive(Clone, Debug)]
pub struct Policy<'w> {
    /// Its weights.
    pub weights: &'w Weights,
    /// What each rule adds to the first layer, by its index.
    rules: Vec<[f32; HIDDEN]>,
}

impl<'w> Policy<'w> {
    /// For these rules, seen before or not.
    pub fn new(weights: &'w Weights, library: &Library) -> Policy<'w> {
        let rules = library.rules().iter().map(|rule| {
            let mut sum = [0.0; HIDDEN];
            sum.copy_from_slice(weights.part(Part::MoveBias));
            add_product(&mut sum, &descriptor(rule), weights.part(Part::Rule));
            sum
        });
        Policy { weights, rules: rules.collect() }
    }

    /// How promising a move is: larger for better ones; of all moves of a state, the probabilities are in
    /// proportion to the exponentials. It does not depend on the other moves, nor on their order.
    pub fn score(&self, engine: &Engine<'_>, nodes: &Embedding<'_>, step: &Move, known: Known) -> f32 {
        let weights = self.weights;
        let mut hidden = self.rules[step.rule];
        add_product(&mut hidden, &features::step(engine, step, known), weights.part(Part::MoveNumbers));
        let first = step.nodes.iter().take(1).copied();
        let reads: Vec<NodeId> = step.reads().collect();
        add_product(&mut hidden, &mean(nodes, first), weights.part(Part::MoveNodes(Among::First)));
        add_product(&mut hidden, &mean(nodes, step.nodes.iter().copied()), weights.part(Part::MoveNodes(Among::All)));
        add_product(&mut hidden, &mean(nodes, reads.into_iter()), weights.part(Part::MoveNodes(Among::Read)));
        relu(&mut hidden);
        let mut second = [0.0; HIDDEN];
        second.copy_from_slice(weights.part(Part::MoveHiddenBias));
        add_product(&mut second, &hidden, weights.part(Part::MoveHidden));
        relu(&mut second);
        dot(&second, weights.part(Part::Score))
    }

    /// What the logarithm of the cost may still fall by from here.
    pub fn value(&self, engine: &Engine<'_>, nodes: &Embedding<'_>, moves: &[Known]) -> f32 {
        let weights = self.weights;
        let mut hidden = [0.0; HIDDEN];
        hidden.copy_from_slice(weights.part(Part::StateBias));
        add_product(&mut hidden, &nodes.mean(engine.graph()), weights.part(Part::StateNodes));
        add_product(&mut hidden, &features::state(engine, moves), weights.part(Part::StateNumbers));
        relu(&mut hidden);
        dot(&hidden, weights.part(Part::Value)) + weights.part(Part::ValueBias)[0]
    }
}

fn mean(rows: &Embedding<'_>, nodes: impl ExactSizeIterator<Item = NodeId>) -> [f32; WIDTH] {
    let count = nodes.len().max(1);
    let mut mean = [0.0; WIDTH];
    nodes.for_each(|id| add_scaled(&mut mean, 1.0 / count as f32, rows.row(id)));
    mean
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
