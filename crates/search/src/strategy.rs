//! What a search strategy is.

use std::sync::Arc;

use regraft_cost::Ns;

use crate::engine::{Engine, Matcher, Move};
use regraft_ir::Budget;

/// A sequence of moves from the start state, and where it leads.
#[derive(Clone, Debug)]
pub struct Script {
    /// Moves, in order.
    pub moves: Vec<Arc<Move>>,
    /// Cost of the state that they lead to.
    pub cost: Ns,
    /// Its key.
    pub key: u128,
}

impl Script {
    /// Takes cost and key from an engine in the state where the script starts: another engine may
    /// have started elsewhere.
    pub(crate) fn retrace(&mut self, engine: &mut Engine<'_>) {
        let start = engine.depth();
        self.moves.iter().for_each(|step| engine.apply(step));
        (self.cost, self.key) = (engine.cost(), engine.key());
        engine.rewind(start);
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cheapest states found, best first; never empty: the start state is always a candidate.
    pub scripts: Vec<Script>,
    /// States visited.
    pub visited: u64,
    /// False if the budget ended the search.
    pub complete: bool,
}

/// A way to search the states reachable by moves. Leaves the engine in its start state.
pub trait Strategy {
    /// Name on the command line and in reports.
    fn name(&self) -> &'static str;
    /// Whether a search that was not ended by its budget has found the cheapest state within its
    /// limits, whatever the rules.
    fn is_exhaustive(&self) -> bool {
        false
    }
    /// Searches from the engine's current state.
    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome;
}
