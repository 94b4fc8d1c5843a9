//! `Recorded`: a sequence of moves that is found again where nodes have other ids, or in a place that
//! is alike.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::FxHashMap;

use crate::engine::{Engine, Matcher, Move, all_moves, next_moves};

/// A move, and the nodes that it made.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    step: Arc<Move>,
    created: Vec<NodeId>,
}

impl Recorded {
    /// The engine's latest move.
    pub(crate) fn latest(engine: &Engine<'_>, step: &Arc<Move>) -> Recorded {
        Recorded { step: step.clone(), created: engine.created().to_vec() }
    }
}

/// Moves of the engine's current state that are kept up to date while moves are applied.
pub(crate) struct Current {
    moves: Vec<Arc<Move>>,
}

impl Current {
    /// Those of the engine's current state.
    pub(crate) fn of(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> Current {
        Current { moves: all_moves(engine, matcher) }
    }

    /// The moves.
    pub(crate) fn moves(&self) -> &[Arc<Move>] {
        &self.moves
    }

    /// Applies a sequence where `names` says which node stands for which, if each of its moves is
    /// found and the whole saves exactly `saved`; otherwise nothing happens. Returns the moves.
    pub(crate) fn transfer(
        &mut self,
        (engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>),
        recorded: &[Recorded],
        mut names: FxHashMap<NodeId, NodeId>,
        saved: Ns,
    ) -> Option<Vec<Arc<Move>>> {
        let (start, before, cost) = (engine.depth(), self.moves.clone(), engine.cost());
        let mut taken = Vec::with_capacity(recorded.len());
        for Recorded { step, created } in recorded {
            let nodes: Vec<NodeId> = step.nodes.iter().map(|id| names.get(id).copied().unwrap_or(*id)).collect();
            // Several readings of a match may give several results: they make as many nodes.
            let same = |m: &&Arc<Move>| m.rule == step.rule && m.nodes[..] == nodes[..] && m.patch.create.len() == step.patch.create.len();
            let Some(found) = self.moves.iter().find(same).cloned() else { break };
            engine.apply(&found);
            self.moves = next_moves(engine, matcher, &self.moves);
            names.extend(created.iter().copied().zip(engine.created().iter().copied()));
            taken.push(found);
        }
        if taken.len() == recorded.len() && cost.checked_sub(engine.cost()) == Some(saved) {
            return Some(taken);
        }
        while engine.depth() > start {
            engine.undo();
        }
        self.moves = before;
        None
    }
}
