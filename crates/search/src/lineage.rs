//! `State`: a state as the path to it, shared with its ancestors.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use regraft_cost::Ns;

use crate::engine::{Engine, Matcher, Move, Moves, all_moves, next_moves};

/// A state as the path to it.
pub(crate) struct State {
    parent: Option<Rc<State>>,
    step: Option<Arc<Move>>,
    /// Moves of this state, found when it is expanded; most states never are.
    moves: OnceCell<Moves>,
    /// Number of moves that lead here.
    pub(crate) steps: usize,
    /// What it costs.
    pub(crate) cost: Ns,
    /// Its key.
    pub(crate) key: u128,
}

impl State {
    /// The engine's current state, where a search starts.
    pub(crate) fn root(engine: &Engine<'_>) -> Rc<State> {
        Rc::new(State { parent: None, step: None, moves: OnceCell::new(), steps: 0, cost: engine.cost(), key: engine.key() })
    }

    /// The engine's current state, which a move from `self` has led to.
    pub(crate) fn child(self: &Rc<State>, step: &Arc<Move>, engine: &Engine<'_>) -> Rc<State> {
        let (parent, step) = (Some(self.clone()), Some(step.clone()));
        Rc::new(State { parent, step, moves: OnceCell::new(), steps: self.steps + 1, cost: engine.cost(), key: engine.key() })
    }

    /// The moves that lead here.
    pub(crate) fn path(&self) -> Vec<Arc<Move>> {
        let mut path: Vec<Arc<Move>> = self.step.iter().cloned().collect();
        let mut at = self.parent.clone();
        while let Some(state) = at {
            path.extend(state.step.iter().cloned());
            at = state.parent.clone();
        }
        path.reverse();
        path
    }

    /// Takes the engine from the root to this state.
    pub(crate) fn enter(&self, engine: &mut Engine<'_>) {
        self.path().iter().for_each(|step| engine.apply(step));
    }

    /// Its moves; the engine is in it.
    pub(crate) fn moves(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> &Moves {
        self.moves.get_or_init(|| match self.parent.as_ref().and_then(|parent| parent.moves.get()) {
            Some(before) => next_moves(engine, matcher, before),
            None => all_moves(engine, matcher),
        })
    }
}
