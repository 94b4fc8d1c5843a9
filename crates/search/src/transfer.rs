//! `Recorded`: a sequence of moves that is found again where nodes have other ids, or in a place
//! that is alike.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::{NodeId, PatchValue};
use rustc_hash::FxHashMap;

use crate::engine::{Engine, Matcher, Move, Moves, all_moves, next_moves};

/// Which node stands for which.
pub(crate) type Names = FxHashMap<NodeId, NodeId>;

/// A move, and the nodes that it made.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) step: Arc<Move>,
    pub(crate) created: Vec<NodeId>,
}

impl Recorded {
    /// The engine's latest move.
    pub(crate) fn latest(engine: &Engine<'_>, step: &Arc<Move>) -> Recorded {
        Recorded { step: step.clone(), created: engine.created().to_vec() }
    }

    /// A sequence from the engine's current state.
    pub(crate) fn all(engine: &mut Engine<'_>, moves: &[Arc<Move>]) -> Vec<Recorded> {
        let start = engine.depth();
        let record = |step: &Arc<Move>| {
            engine.apply(step);
            Recorded::latest(engine, step)
        };
        let recorded = moves.iter().map(record).collect();
        engine.rewind(start);
        recorded
    }
}

/// Moves of the engine's current state that are kept up to date while moves are applied.
#[derive(Clone)]
pub(crate) struct Current {
    moves: Moves,
}

impl Current {
    /// Those of the engine's current state.
    pub(crate) fn of(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> Current {
        Current { moves: all_moves(engine, matcher) }
    }

    /// The moves.
    pub(crate) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Applies a move where `names` says which node stands for which, and adds those that it makes;
    /// if it is not found, nothing happens.
    pub(crate) fn follow(
        &mut self,
        (engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>),
        Recorded { step, created }: &Recorded,
        names: &mut Names,
    ) -> Option<Arc<Move>> {
        let here = |id: NodeId| names.get(&id).copied().unwrap_or(id);
        let found = self.moves.iter().find(|m| corresponds(step, m, &here)).cloned()?;
        engine.apply(&found);
        self.moves = next_moves(engine, matcher, &self.moves);
        names.extend(created.iter().copied().zip(engine.created().iter().copied()));
        Some(found)
    }

    /// Applies a sequence where `names` says which node stands for which, if each of its moves is
    /// found and the whole saves exactly `saved`; otherwise nothing happens. Returns the moves.
    pub(crate) fn transfer(
        &mut self,
        (engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>),
        recorded: &[Recorded],
        mut names: Names,
        saved: Ns,
    ) -> Option<Vec<Arc<Move>>> {
        let (start, before, cost) = (engine.depth(), self.moves.clone(), engine.cost());
        let mut taken = Vec::with_capacity(recorded.len());
        for one in recorded {
            let Some(found) = self.follow((engine, matcher), one, &mut names) else { break };
            taken.push(found);
        }
        if taken.len() == recorded.len() && cost.checked_sub(engine.cost()) == Some(saved) {
            return Some(taken);
        }
        engine.rewind(start);
        self.moves = before;
        None
    }
}

/// Has what a move replaced stand for what it put in its place.
pub(crate) fn pass_over(one: &Recorded, names: &mut Names) {
    for (old, new) in &one.step.patch().replace {
        if let PatchValue::New { index, .. } = new
            && let Some(created) = one.created.get(*index as usize)
        {
            let here = names.get(&old.node).copied().unwrap_or(old.node);
            names.insert(*created, here);
        }
    }
}

/// Whether a move does what another does where `here` says which node stands for which.
fn corresponds(there: &Move, step: &Move, here: &impl Fn(NodeId) -> NodeId) -> bool {
    let same = |a: &PatchValue, b: &PatchValue| match (a, b) {
        (PatchValue::Old(a), PatchValue::Old(b)) => (here(a.node), a.port) == (b.node, b.port),
        (a, b) => a == b,
    };
    let (a, b) = (there.patch(), step.patch());
    there.rule == step.rule
        && there.nodes.iter().map(|id| here(*id)).eq(step.nodes.iter().copied())
        && a.create.len() == b.create.len()
        && a.replace.len() == b.replace.len()
        && a.create
            .iter()
            .zip(&b.create)
            .all(|(a, b)| a.inputs.len() == b.inputs.len() && a.inputs.iter().zip(&b.inputs).all(|(a, b)| same(a, b)))
        && a.replace.iter().zip(&b.replace).all(|(a, b)| same(&PatchValue::Old(a.0), &PatchValue::Old(b.0)) && same(&a.1, &b.1))
}
