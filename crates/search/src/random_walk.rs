//! Applies moves at random, at any cost: to test rules, not to make models faster.

use std::sync::Arc;

use regraft_ir::SplitMix64;
use rustc_hash::FxHashSet;

use crate::engine::{Engine, Matcher, Move, all_moves, next_moves};
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// Takes up to `steps` random moves. A rule is drawn first, then one of its matches, so that rules
/// with many matches do not crowd out the others.
#[derive(Clone, Copy, Debug)]
pub struct RandomWalk {
    /// Maximum number of moves.
    pub steps: usize,
    /// Seed of the choices.
    pub seed: u64,
}

impl Strategy for RandomWalk {
    fn name(&self) -> &'static str {
        "random-walk"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let mut random = SplitMix64(self.seed);
        let mut moves = all_moves(engine, matcher);
        let mut seen = FxHashSet::from_iter([engine.key()]);
        let mut taken = Vec::new();
        let mut complete = true;
        while taken.len() < self.steps {
            if budget.exhausted() {
                complete = false;
                break;
            }
            let mut rules: Vec<usize> = moves.iter().map(|m| m.rule).collect();
            rules.sort_unstable();
            rules.dedup();
            if rules.is_empty() {
                break;
            }
            let rule = rules[random.below(rules.len())];
            let places: Vec<&Arc<Move>> = moves.iter().filter(|step| step.rule == rule).collect();
            let step = places[random.below(places.len())].clone();
            engine.apply(&step);
            if !seen.insert(engine.key()) {
                // Back at an earlier state: try another move.
                engine.undo();
                moves.retain(|other| !Arc::ptr_eq(other, &step));
                continue;
            }
            moves = next_moves(engine, matcher, &moves);
            taken.push(step);
        }
        let visited = seen.len() as u64;
        let script = Script { cost: engine.cost(), key: engine.key(), moves: taken };
        for _ in &script.moves {
            engine.undo();
        }
        Outcome { scripts: vec![script], visited, complete }
    }
}
