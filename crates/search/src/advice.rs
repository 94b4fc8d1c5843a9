//! `Advice`: what says which of several moves to try first, where prices leave it open.

use std::fmt;

use regraft_rules::Library;

use crate::engine::{Engine, Moves};

/// Gives advice to searches.
pub trait Advisor: fmt::Debug {
    /// To a search that begins at the engine's current state.
    fn advise<'a>(&'a self, engine: &Engine<'_>, library: &'a Library) -> Box<dyn Advice + 'a>;
}

/// Knows the state that an engine is in, as long as it is told of each move that is taken and
/// undone.
pub trait Advice {
    /// The engine applied a move.
    fn follow(&mut self, engine: &Engine<'_>);

    /// The engine undid its latest move.
    fn back(&mut self);

    /// How promising each move of the engine's state is: in a state, probabilities are in
    /// proportion to the exponentials. `deltas` is what each adds to the cost, and `rose` is
    /// whether the latest move raised it.
    fn scores(&mut self, engine: &Engine<'_>, moves: &Moves, deltas: &[i64], rose: bool) -> Vec<f32>;
}
