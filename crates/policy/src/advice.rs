//! Weights as an [`Advisor`]: what the policy finds likely, for searches that go by prices.

use regraft_rules::Library;
use regraft_search::{Advice, Advisor, Engine, Moves};

use crate::embedding::Embedding;
use crate::policy::Policy;
use crate::teacher::known_of;
use crate::weights::Weights;

impl Advisor for Weights {
    fn advise<'a>(&'a self, engine: &Engine<'_>, library: &'a Library) -> Box<dyn Advice + 'a> {
        Box::new(Scored { policy: Policy::new(self, library), nodes: Embedding::new(self, engine) })
    }
}

/// The policy, and what it knows of the nodes of an engine's state.
struct Scored<'w> {
    policy: Policy<'w>,
    nodes: Embedding<'w>,
}

impl Advice for Scored<'_> {
    fn follow(&mut self, engine: &Engine<'_>) {
        self.nodes.follow(engine);
    }

    fn back(&mut self) {
        self.nodes.back();
    }

    fn scores(&mut self, engine: &Engine<'_>, moves: &Moves, deltas: &[i64], rose: bool) -> Vec<f32> {
        let known = known_of(engine, moves, rose, |place, _, _| deltas[place]);
        moves.iter().zip(known).map(|(step, known)| self.policy.score(engine, &self.nodes, step, known)).collect()
    }
}
