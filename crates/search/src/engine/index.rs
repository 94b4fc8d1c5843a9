//! The match index: finds the moves of a state, from scratch or incrementally.

use std::sync::Arc;

use regraft_ir::{Ancestors, Graph, NewNode, NodeId, NodeSet, PatchValue};
use regraft_rules::twin;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::matcher::Matcher;
use super::moves::Moves;
use super::near::Near;
use super::rewrite::Move;
use super::state::Engine;

/// All moves of the current state, found from scratch.
pub fn all_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> Moves {
    let anchors: Vec<NodeId> = engine.graph().ids().collect();
    let offer = matcher.at(engine.matched(), &anchors, &mut FxHashSet::default(), &mut Ancestors::of(engine.graph()));
    engine.count_matching(anchors.len(), &offer);
    Moves::of(offer)
}

/// The moves of the current state, from those of the state before the latest move.
///
/// Moves that the latest move touched are dropped, and rules are matched again only where something
/// was asked about what it changed.
pub fn next_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, before: &Moves) -> Moves {
    let graph = engine.graph();
    let mut ancestors = Ancestors::of(graph);
    let dirty = engine.dirty();
    let change =
        Change { engine, near: Near::of(dirty.iter().copied()), dirty: NodeSet::of(graph, dirty.iter().copied()), came: engine.came() };
    let Surviving { mut moves, mut blocked, again } = change.surviving(before, &mut ancestors);
    // A match lies downstream of a change that makes it; and where the answers are the same, so are
    // the matches.
    let touched = before.asked().touched(&change.near, &change.dirty);
    let mut anchors = around(graph, &dirty, matcher);
    anchors.retain(|id| before.asked().is_open(*id) || touched.binary_search(id).is_ok());
    anchors.extend(again);
    anchors.sort_unstable();
    anchors.dedup();
    moves.asked_mut().outdate(touched.into_iter().filter(|id| anchors.binary_search(id).is_err()));
    // What is found at an anchor covers it: other moves cannot be found again.
    let looked_at = NodeSet::of(graph, anchors.iter().copied());
    let near = Near::of(anchors.iter().copied());
    let met = moves.near(&near).filter(|m| m.nodes.iter().any(|id| looked_at.contains(*id)));
    let mut known: FxHashSet<u64> = met.map(|m| m.match_id()).collect();
    blocked.retain(|m| !m.roots().iter().any(|id| looked_at.contains(*id)));
    let mut offer = matcher.at(engine.matched(), &anchors, &mut known, &mut ancestors);
    if engine.last_step().is_some_and(|step| step.drops_paths) {
        // A match that would have closed a cycle through the dropped path may be possible now,
        // however far below.
        let graph = engine.graph();
        for step in std::mem::take(&mut blocked) {
            let is_known = || moves.iter().chain(&offer.moves).any(|one| one.match_id() == step.match_id());
            let is_possible = !step.closes_cycle(graph, &mut ancestors) && !is_known();
            if is_possible { &mut offer.moves } else { &mut blocked }.push(step);
        }
    }
    engine.count_matching(anchors.len(), &offer);
    moves.with(offer, blocked)
}

/// What the latest move changed.
struct Change<'c, 'e> {
    engine: &'c Engine<'e>,
    dirty: NodeSet,
    near: Near,
    /// The cores of nodes that it made, or that read something else now.
    came: SmallVec<[u64; 16]>,
}

/// What the latest move left of the moves before it.
struct Surviving {
    moves: Moves,
    /// Matches that would close a cycle.
    blocked: Vec<Arc<Move>>,
    /// The roots of those whose edit has changed.
    again: Vec<NodeId>,
}

impl Change<'_, '_> {
    fn surviving(&self, before: &Moves, ancestors: &mut Ancestors<'_>) -> Surviving {
        // Only a move with several roots can close a cycle, and only through a path that a later
        // move added.
        let added = (before.merges() && self.engine.last_step().is_some_and(|step| step.adds_paths)).then(|| self.added_paths());
        let (mut again, mut blocked) = (Vec::new(), Vec::new());
        let mut keeps = |step: &Arc<Move>| match self.fate(step) {
            Fate::Gone => false,
            Fate::Changed => {
                again.extend(step.roots());
                false
            }
            Fate::Intact => {
                let closes = step.is_merge()
                    && added.as_ref().is_some_and(|(above, below)| {
                        step.roots().iter().any(|id| above.contains(*id)) && step.reads().any(|id| below.contains(id))
                    })
                    && step.closes_cycle(self.engine.graph(), ancestors);
                if closes {
                    blocked.push(step.clone());
                }
                !closes
            }
        };
        let moves = before.surviving(&self.near, added.is_some(), &mut keeps);
        let waiting: Vec<Arc<Move>> = before.blocked().iter().filter(|step| keeps(step)).cloned().collect();
        blocked.extend(waiting);
        Surviving { moves, blocked, again }
    }

    /// Whether a move is what it was.
    fn fate(&self, step: &Move) -> Fate {
        let graph = self.engine.graph();
        let is_dirty = |id: NodeId| self.dirty.contains(id);
        let operand_touched = || step.nodes.iter().any(|id| graph.node(*id).inputs.iter().any(|v| is_dirty(v.node)));
        if step.nodes.iter().any(|id| is_dirty(*id)) || (step.asks_for_readers() && operand_touched()) {
            return Fate::Gone;
        }
        // Targets reuse existing nodes: one that came or went changes the edit even at matches that
        // the change does not touch.
        let is_outdated = || {
            let (edit, here) = step.edit();
            let is_new_twin = |(core, new): (&u64, &NewNode)| {
                let operand = |value: &PatchValue| match value {
                    PatchValue::Old(old) => PatchValue::Old(here[old.node.0 as usize].port(old.port)),
                    new => *new,
                };
                self.came.contains(core)
                    && twin(graph, &new.op, &new.inputs.iter().map(operand).collect::<SmallVec<[PatchValue; 4]>>()).is_some()
            };
            step.reads().any(|id| graph.get(id).is_none()) || step.cores().iter().zip(&edit.create).any(is_new_twin)
        };
        // A node that stands for one of the target may compute something else now.
        if step.reused().any(is_dirty) || step.reads().any(is_dirty) && is_outdated() { Fate::Changed } else { Fate::Intact }
    }

    /// The nodes above and below the paths that the latest move added, those on them included.
    fn added_paths(&self) -> (NodeSet, NodeSet) {
        let graph = self.engine.graph();
        let readers = self.engine.last_step().into_iter().flat_map(|step| step.applied.rewired.iter().map(|(reader, ..)| *reader));
        let on: Vec<NodeId> = self.engine.created().iter().copied().chain(readers).filter(|id| graph.get(*id).is_some()).collect();
        let above = reached(graph, &on, |id, next| next.extend(graph.node(id).inputs.iter().map(|value| value.node)));
        let below = reached(graph, &on, |id, next| next.extend(graph.node(id).users.iter().map(|(user, _)| *user)));
        (above, below)
    }
}

/// What becomes of a move when another one is applied.
enum Fate {
    /// It is as it was.
    Intact,
    /// Its source may be another.
    Gone,
    /// Its source is as it was; its edit may be another.
    Changed,
}

/// Everything that `next` leads to from these nodes, themselves included.
fn reached(graph: &Graph, from: &[NodeId], next: impl Fn(NodeId, &mut Vec<NodeId>)) -> NodeSet {
    let mut stack: Vec<NodeId> = from.to_vec();
    let mut reached = NodeSet::of(graph, std::iter::empty());
    while let Some(id) = stack.pop() {
        if reached.insert(id) {
            next(id, &mut stack);
        }
    }
    reached
}

/// The anchors of the matches that a change may have made: at or downstream of it, no further than
/// the patterns rooted there are deep.
fn around(graph: &Graph, dirty: &[NodeId], matcher: &Matcher<'_>) -> Vec<NodeId> {
    let mut seen = NodeSet::of(graph, std::iter::empty());
    let mut reached: Vec<NodeId> = dirty.iter().copied().filter(|id| graph.get(*id).is_some() && seen.insert(*id)).collect();
    let (mut anchors, mut frontier) = (Vec::with_capacity(64), 0..reached.len());
    for far in 0..matcher.radius() {
        anchors.extend(reached[frontier.clone()].iter().filter(|id| matcher.depth(graph.node(**id).op.kind()) > far));
        for at in frontier.clone() {
            let id = reached[at];
            reached.extend(graph.node(id).users.iter().map(|(user, _)| *user).filter(|user| seen.insert(*user)));
        }
        frontier = frontier.end..reached.len();
    }
    anchors
}
