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
            walk.take(step, engine, matcher);
            walk.tidy(first.rule, engine, matcher);
            if engine.cost() < best.0 {
                best = (engine.cost(), walk.path.len());
            }
            if engine.cost() > limit {
                break;
            }
            let links: Vec<Arc<Move>> = walk.offered.iter().filter(|step| step.rule == first.rule).cloned().collect();
            link = walk.cheapest(&links, engine).map(|(_, step)| step);
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
    /// Moves of the state that those of the path made possible.
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

    /// The move that leads to the cheapest state, and what that costs.
    fn cheapest(&mut self, of: &[Arc<Move>], engine: &mut Engine<'_>) -> Option<(Ns, Arc<Move>)> {
        let costs = of.iter().map(|step| {
            engine.apply(step);
            let cost = engine.cost();
            engine.undo();
            (cost, step)
        });
        self.visited += of.len() as u64;
        costs.min_by_key(|(cost, _)| *cost).map(|(cost, step)| (cost, step.clone()))
    }

    /// Takes what the latest move made possible and saves, except by this rule.
    fn tidy(&mut self, rule: usize, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) {
        let mut near: Vec<Arc<Move>> = self.moves.enabled().cloned().collect();
        while self.path.len() < 8 * LINKS {
            near.retain(|step| step.rule != rule && (self.admits)(step));
            let Some((cost, step)) = self.cheapest(&near, engine) else { break };
            if cost >= engine.cost() {
                break;
            }
            self.take(step, engine, matcher);
            near.retain(|step| self.moves.contains(step));
            near.extend(self.moves.enabled().cloned());
        }
    }
}
