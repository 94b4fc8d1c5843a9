//! Depth-first traversal of states: what the exhaustive searches share.

use std::sync::Arc;

use regraft_rules::Library;

use crate::best::Best;
use crate::engine::{Engine, Matcher, Move, Moves, all_moves, next_moves};
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// A search that visits states depth first, and leaves out only what it knows to be reached
/// otherwise.
pub trait Exhaustive {
    /// See [`Strategy::name`].
    const NAME: &'static str;
    /// Whether what is left out is reached otherwise whatever the rules, and not only by monotone
    /// ones.
    const SOUND: bool;

    /// Longest sequence of moves.
    fn steps(&self) -> usize;

    /// Explores the start state, with these moves.
    fn explore(&self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves);

    /// Searches, and shows every state that it visits.
    fn visiting<'e>(
        &self,
        engine: &mut Engine<'e>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        visit: &mut dyn FnMut(&Engine<'e>),
    ) -> Outcome {
        let moves = all_moves(engine, matcher);
        let mut traversal = Traversal::new(engine, matcher, self.steps(), budget, visit);
        self.explore(&mut traversal, &moves);
        traversal.outcome()
    }
}

impl<S: Exhaustive> Strategy for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn is_exhaustive(&self) -> bool {
        S::SOUND
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.visiting(engine, matcher, budget, &mut |_| {})
    }
}

/// A depth-first traversal of the states reachable by at most `steps` moves.
pub struct Traversal<'t, 'e, 'm> {
    pub(crate) engine: &'t mut Engine<'e>,
    matcher: &'t mut Matcher<'m>,
    budget: &'t mut dyn Budget,
    visit: &'t mut dyn FnMut(&Engine<'e>),
    path: Vec<Arc<Move>>,
    best: Best,
    steps: usize,
    visited: u64,
    complete: bool,
}

impl<'t, 'e, 'm> Traversal<'t, 'e, 'm> {
    /// At the engine's current state, which is visited.
    fn new(
        engine: &'t mut Engine<'e>,
        matcher: &'t mut Matcher<'m>,
        steps: usize,
        budget: &'t mut dyn Budget,
        visit: &'t mut dyn FnMut(&Engine<'e>),
    ) -> Traversal<'t, 'e, 'm> {
        let best = Best::from(Script::here(engine));
        visit(engine);
        Traversal { engine, matcher, budget, visit, path: Vec::new(), best, steps, visited: 1, complete: true }
    }

    /// The rules.
    pub(crate) fn library(&self) -> &'m Library {
        self.matcher.library()
    }

    /// How many more moves may follow.
    pub(crate) fn left(&self) -> usize {
        self.steps - self.path.len()
    }

    /// Visits the state after a move; false, and nothing happens, once the budget is used up.
    pub(crate) fn enter(&mut self, step: &Arc<Move>) -> bool {
        self.enter_if(step, |_| true) == Some(true)
    }

    /// Visits the state after a move if it is admitted there, which is what is returned; `None`,
    /// and nothing happens, once the budget is used up.
    pub(crate) fn enter_if(&mut self, step: &Arc<Move>, admits: impl FnOnce(&Engine<'e>) -> bool) -> Option<bool> {
        self.complete &= !self.budget.exhausted();
        if !self.complete {
            return None;
        }
        self.engine.apply(step);
        if !admits(self.engine) {
            self.engine.undo();
            return Some(false);
        }
        self.path.push(step.clone());
        self.visited += 1;
        (self.visit)(self.engine);
        let (cost, key) = (self.engine.cost(), self.engine.key());
        self.best.offer(cost, key, || self.path.clone());
        Some(true)
    }

    /// Returns to a state that was visited.
    pub(crate) fn enter_again(&mut self, step: &Arc<Move>) {
        self.engine.apply(step);
        self.path.push(step.clone());
    }

    /// The key of the state that one more move leads to.
    pub(crate) fn key_after(&mut self, step: &Move) -> u128 {
        self.engine.apply(step);
        let key = self.engine.key();
        self.engine.undo();
        key
    }

    /// The moves of the state just entered, from those before it.
    pub(crate) fn next_moves(&mut self, before: &Moves) -> Moves {
        next_moves(self.engine, self.matcher, before)
    }

    /// Returns to the state before the latest move.
    pub(crate) fn leave(&mut self) {
        self.path.pop();
        self.engine.undo();
    }

    /// What was found.
    fn outcome(self) -> Outcome {
        Outcome { scripts: self.best.into_scripts(), visited: self.visited, complete: self.complete }
    }
}
