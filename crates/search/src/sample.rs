//! Sampling (OCGGS, PVLDB 13(11) 2020, Algorithm 3): a beam, half of it for steps that raise the
//! cost and promise to be paid back.

use std::rc::Rc;

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::FxHashSet;

use crate::best::Best;
use crate::engine::{Engine, Matcher, Move, Moves, next_moves};
use crate::lineage::State;
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// A beam search. Nothing in it is random: "sampling" means that of the states of a level, the best
/// are kept.
///
/// As in the paper, but for two points: states seen before are dropped, so that sequences of any
/// length end; and the potential is the cost that a follow-up leads to, as the paper defines it,
/// where its code takes the change.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States of a level that are explored (Q).
    pub beam: usize,
    /// Steps in a row that may raise the cost (eta).
    pub raising: usize,
}

impl Default for Sample {
    /// The paper's parameters.
    fn default() -> Sample {
        Sample { steps: None, beam: 20, raising: 1 }
    }
}

/// A state of the beam.
struct Sampled {
    state: Rc<State>,
    /// How many of the last moves that lead to it raised the cost.
    raised: usize,
}

impl Strategy for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let root = State::root(engine);
        let best = Best::from(Script { moves: Vec::new(), cost: root.cost, key: root.key });
        let seen = FxHashSet::from_iter([root.key]);
        let mut search = Sampling { sample: self, engine, matcher, budget, best, seen, visited: 1, complete: true };
        let mut level = vec![Sampled { state: root, raised: 0 }];
        while !level.is_empty() && search.complete {
            level = search.next_level(&level);
        }
        Outcome { scripts: search.best.into_scripts(), visited: search.visited, complete: search.complete }
    }
}

struct Sampling<'s, 'e, 'm> {
    sample: &'s Sample,
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    budget: &'s mut dyn Budget,
    best: Best,
    seen: FxHashSet<u128>,
    visited: u64,
    complete: bool,
}

impl Sampling<'_, '_, '_> {
    /// The states to explore after those of `level`.
    fn next_level(&mut self, level: &[Sampled]) -> Vec<Sampled> {
        let half = (self.sample.beam / 2).max(1);
        let mut falling = Vec::new();
        let mut rising = Vec::new();
        for parent in level {
            for child in self.children(parent, false) {
                if self.may_go_on(&child) { rising.push(child) } else { falling.push(child) }
            }
        }
        let mut paid_back = Vec::new();
        while !rising.is_empty() && self.complete {
            let mut ranked: Vec<(Ns, Sampled)> = rising.into_iter().map(|child| (self.potential(&child), child)).collect();
            ranked.sort_by_key(|(potential, _)| *potential);
            rising = Vec::new();
            for (_, parent) in ranked.into_iter().take(half) {
                for child in self.children(&parent, true) {
                    if self.may_go_on(&child) {
                        rising.push(child);
                    } else if child.raised == 0 {
                        paid_back.push(child);
                    }
                }
            }
        }
        let cheapest = |mut states: Vec<Sampled>| {
            states.sort_by_key(|child| child.state.cost);
            states.truncate(half);
            states
        };
        cheapest(falling).into_iter().chain(cheapest(paid_back)).collect()
    }

    /// Whether the last step raised the cost, and others may do so, too.
    fn may_go_on(&self, child: &Sampled) -> bool {
        (1..=self.sample.raising).contains(&child.raised)
    }

    /// The states one move further that are new; with `dependent`, only by moves that take away
    /// what the latest one made.
    fn children(&mut self, parent: &Sampled, dependent: bool) -> Vec<Sampled> {
        let mut children = Vec::new();
        if self.sample.steps.is_some_and(|most| parent.state.steps >= most) {
            return children;
        }
        let root = self.engine.depth();
        parent.state.enter(self.engine);
        let created = self.engine.created().to_vec();
        for step in parent.state.moves(self.engine, self.matcher) {
            if self.budget.exhausted() {
                self.complete = false;
                break;
            }
            if dependent && !depends(step, &created) {
                continue;
            }
            self.engine.apply(step);
            self.visited += 1;
            if self.seen.insert(self.engine.key()) {
                let state = parent.state.child(step, self.engine);
                let raised = if state.cost > parent.state.cost { parent.raised + 1 } else { 0 };
                self.best.offer(state.cost, state.key, || state.path());
                children.push(Sampled { state, raised });
            }
            self.engine.undo();
        }
        self.engine.rewind(root);
        children
    }

    /// The least cost that moves lead to each of which takes away what the one before made, all but
    /// the last of which raise the cost; the highest number if there are none, or no budget is
    /// left.
    fn potential(&mut self, child: &Sampled) -> Ns {
        self.complete &= !self.budget.exhausted();
        if !self.complete {
            return Ns::MAX;
        }
        let root = self.engine.depth();
        child.state.enter(self.engine);
        let moves = child.state.moves(self.engine, self.matcher);
        let least = self.paid_back(moves, child.raised);
        self.engine.rewind(root);
        least
    }

    fn paid_back(&mut self, moves: &Moves, raised: usize) -> Ns {
        let (before, created) = (self.engine.cost(), self.engine.created().to_vec());
        let mut least = Ns::MAX;
        for step in moves.iter().filter(|step| depends(step, &created)) {
            self.engine.apply(step);
            self.visited += 1;
            let cost = self.engine.cost();
            if cost < before {
                least = least.min(cost);
            } else if cost > before && raised < self.sample.raising {
                let next = next_moves(self.engine, self.matcher, moves);
                least = least.min(self.paid_back(&next, raised + 1));
            }
            self.engine.undo();
        }
        least
    }
}

/// Whether a move takes away one of these nodes.
fn depends(step: &Move, created: &[NodeId]) -> bool {
    step.nodes.iter().any(|id| created.contains(id))
}
