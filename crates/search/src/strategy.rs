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
    /// No moves: the engine's current state.
    pub fn here(engine: &Engine<'_>) -> Script {
        Script { moves: Vec::new(), cost: engine.cost(), key: engine.key() }
    }

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

impl Outcome {
    /// Of a search that has visited this state alone.
    pub fn of(script: Script) -> Outcome {
        Outcome { scripts: vec![script], visited: 1, complete: true }
    }

    /// Adds what another search found, from the same state.
    pub fn add(&mut self, other: Outcome) {
        self.visited += other.visited;
        self.complete &= other.complete;
        for script in other.scripts {
            if self.scripts.iter().all(|known| known.key != script.key) {
                self.scripts.push(script);
            }
        }
        // Of equally cheap ones, the first that was found stays first.
        self.scripts.sort_by_key(|script| script.cost);
    }
}

/// A part of the graph that a search started from, and how far it was searched by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Nodes that are computed in a run.
    pub nodes: usize,
    /// What they cost together.
    pub cost: Ns,
    /// What rewrites inside of it save, as far as is known.
    pub saved: Ns,
    /// States visited; those of the first one, if it looks like another.
    pub states: u64,
    /// The first region that looks like it, by number, where that is another.
    pub alike: Option<usize>,
    /// Whether nothing saves more: all states were visited that rewrites lead to, and none of these
    /// crosses the border.
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
    /// Searches, and tells about every region of the start state, if it is searched by regions.
    fn search_regions(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> (Outcome, Vec<Region>) {
        (self.search(engine, matcher, budget), Vec::new())
    }
    /// Searches from the engine's current state.
    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome;
    /// The same, where others have searched from there: what they found need not be found again,
    /// and may be built upon.
    fn search_after(&self, _known: &Outcome, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.search(engine, matcher, budget)
    }
}
