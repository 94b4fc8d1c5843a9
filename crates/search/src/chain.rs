//! `Chain`: a merge, and of what it made with more and more of its kind.

use std::sync::Arc;

use regraft_cost::Ns;

use crate::engine::{Engine, Matcher, Move, Moves, next_moves};

/// Most links of a chain.
const LINKS: usize = 64;
/// Along the way, a chain may cost so many times as much as the state it begins at: of many nodes
/// merged one by one, the first few merged may cost several times as much as they did.
const SLACK: f64 = 1.5;

/// A sequence of moves of one rule, each of which what the one before made takes part in, and
/// between them those that save at once.
///
/// A rule that merges two nodes can merge the result with a third, and so on: the products of an
/// unrolled recurrent network that share their weights become one. A product of two rows may cost
/// more than two of one row, and one of many rows still much less than all of them; no short
/// look-ahead gets that far.
pub(crate) struct Chain {
    /// The moves.
    pub(crate) moves: Vec<Arc<Move>>,
    /// What the state costs that they lead to.
    pub(crate) cost: Ns,
    /// States that were looked at.
    pub(crate) visited: u64,
}

impl Chain {
    /// Follows the rule of `first`, which is one of `moves`, by what costs least next, up to
    /// [`LINKS`] times, as long as the cost is within [`SLACK`]; ends with the cheapest state on the
    /// way. Restores the engine.
    pub(crate) fn from(
        first: &Arc<Move>,
        moves: &Moves,
        admits: impl Fn(&Move) -> bool,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
    ) -> Chain {
        let (start, limit) = (engine.depth(), (engine.cost() as f64 * SLACK) as Ns);
        let mut walk = Walk { moves: moves.clone(), path: Vec::new(), offered: Vec::new(), admits, visited: 0 };
        let mut best = (Ns::MAX, 0);
        let mut link = Some(first.clone());
        for _ in 0..LINKS {
            let Some(step) = link else { break };
            // Of what was possible before, only further links matter.
            walk.offered.retain(|step| step.rule == first.rule);
            walk.take(step, engine, matcher);
            walk.tidy(first.rule, engine, matcher);
            if engine.cost() < best.0 {
                best = (engine.cost(), walk.path.len());
            }
            if engine.cost() > limit {
                break;
            }
            link = walk.cheapest(|rule| rule == first.rule, engine).map(|(_, step)| step);
        }
        engine.rewind(start);
        walk.path.truncate(best.1);
        Chain { moves: walk.path, cost: best.0, visited: walk.visited }
    }
}

struct Walk<A> {
    /// Those of the state.
    moves: Moves,
    path: Vec<Arc<Move>>,
    /// Moves of the state that the latest link and what followed made possible, and those of the
    /// chain's rule that links before did.
    offered: Vec<Arc<Move>>,
    admits: A,
    visited: u64,
}

impl<A: Fn(&Move) -> bool> Walk<A> {
    fn take(&mut self, step: Arc<Move>, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) {
        engine.apply(&step);
        self.visited += 1;
        self.path.push(step);
        self.moves = next_moves(engine, matcher, &self.moves);
        let Walk { moves, offered, admits, .. } = self;
        offered.retain(|step| moves.contains(step));
        offered.extend(moves.enabled().filter(|step| admits(step)).cloned());
    }

    /// Of the moves offered of these rules, the one that leads to the cheapest state, and what that
    /// costs.
    fn cheapest(&mut self, of: impl Fn(usize) -> bool, engine: &mut Engine<'_>) -> Option<(Ns, Arc<Move>)> {
        let mut visited = 0;
        let costs = self.offered.iter().filter(|step| of(step.rule)).map(|step| {
            engine.apply(step);
            let cost = engine.cost();
            engine.undo();
            visited += 1;
            (cost, step)
        });
        let best = costs.min_by_key(|(cost, _)| *cost).map(|(cost, step)| (cost, step.clone()));
        self.visited += visited;
        best
    }

    /// Takes what the latest link made possible and saves, except by its rule.
    fn tidy(&mut self, rule: usize, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) {
        while self.path.len() < 8 * LINKS {
            let best = self.cheapest(|other| other != rule, engine);
            let Some((_, step)) = best.filter(|(cost, _)| *cost < engine.cost()) else { break };
            self.take(step, engine, matcher);
        }
    }
}
