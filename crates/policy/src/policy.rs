//! `Policy`: scores for the moves of a state, and its value.

use std::cell::OnceCell;

use regraft_ir::NodeId;
use regraft_rules::Library;
use regraft_search::{Engine, Move};

use crate::descriptor::descriptor;
use crate::embedding::Embedding;
use crate::features::{self, Known};
use crate::linear::{add_product, add_scaled, relu};
use crate::weights::{Among, HIDDEN, Part, Weights};

/// A network with its weights, for the rules of a library.
#[derive(Clone, Debug)]
pub struct Policy<'w> {
    /// Its weights.
    pub weights: &'w Weights,
    library: &'w Library,
    /// What each rule adds to the first layer, by its index, once that was asked.
    rules: Vec<OnceCell<[f32; HIDDEN]>>,
}

impl<'w> Policy<'w> {
    /// For these rules, seen before or not.
    pub fn new(weights: &'w Weights, library: &'w Library) -> Policy<'w> {
        Policy { weights, library, rules: vec![OnceCell::new(); library.rules().len()] }
    }

    /// What a rule adds to the first layer.
    fn rule(&self, rule: usize) -> [f32; HIDDEN] {
        *self.rules[rule].get_or_init(|| {
            let mut sum = [0.0; HIDDEN];
            sum.copy_from_slice(self.weights.part(Part::MoveBias));
            add_product(&mut sum, &descriptor(&self.library.rules()[rule]), self.weights.part(Part::Rule));
            sum
        })
    }

    /// How promising a move is: larger for better ones; of all moves of a state, the probabilities
    /// are in proportion to the exponentials. It does not depend on the other moves, nor on their
    /// order.
    pub fn score(&self, engine: &Engine<'_>, nodes: &Embedding<'_>, step: &Move, known: Known) -> f32 {
        let weights = self.weights;
        let mut hidden = self.rule(step.rule);
        add_product(&mut hidden, &features::step(engine, step, known), weights.part(Part::MoveNumbers));
        let reads: Vec<NodeId> = step.reads().collect();
        let among = [(Among::First, &step.nodes[..step.nodes.len().min(1)]), (Among::All, &step.nodes[..]), (Among::Read, &reads)];
        for (place, ids) in among {
            ids.iter().for_each(|id| add_scaled(&mut hidden, 1.0 / ids.len() as f32, nodes.share(*id, place)));
        }
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

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
