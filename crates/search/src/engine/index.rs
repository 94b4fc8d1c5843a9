//! The match index: finds the moves of a state, from scratch or incrementally.

use std::sync::Arc;

use regraft_ir::{Graph, NodeId, PatchValue};
use regraft_rules::{makes_cycle, twin};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

use super::matcher::{Matcher, Which};
use super::rewrite::Move;
use super::state::Engine;

/// All moves of the current state, found from scratch.
pub fn all_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> Vec<Arc<Move>> {
    let anchors: Vec<(NodeId, usize)> = engine.graph().ids().map(|id| (id, 0)).collect();
    let mut seen = FxHashSet::default();
    let moves = matcher.at(engine.matched(), &anchors, Which::All, &mut seen);
    engine.count_matching(anchors.len() as u64, moves.len() as u64);
    moves
}

/// The moves of the current state, from those of the state before the latest move.
///
/// Moves that the latest move touched are dropped, and rules are matched again only around the
/// change.
pub fn next_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, before: &[Arc<Move>]) -> Vec<Arc<Move>> {
    let graph = engine.graph();
    let dirty = engine.dirty();
    let (mut moves, outdated) = surviving(engine, &NodeSet::of(graph, dirty.iter().copied()), before);
    let anchors = around(graph, &dirty, matcher, outdated);
    // What is found at an anchor covers it: other moves cannot be found again.
    let looked_at = NodeSet::of(graph, anchors.iter().map(|(id, _)| *id));
    let met = moves.iter().filter(|m| m.nodes.iter().any(|id| looked_at.contains(*id)));
    let mut known: FxHashSet<u64> = met.map(|m| m.match_id()).collect();
    let mut found = matcher.at(engine.matched(), &anchors, Which::All, &mut known);
    let mut looked = anchors.len();
    if let Some(step) = engine.last_step().filter(|s| s.drops_paths) {
        // A merge that would have closed a cycle through the dropped path may be possible now,
        // however far below.
        let below = descendants(engine.graph(), step.applied.rewired.iter().map(|(reader, ..)| *reader));
        known.extend(moves.iter().map(|m| m.match_id()));
        found.extend(matcher.at(engine.matched(), &below, Which::Merges, &mut known));
        looked += below.len();
    }
    engine.count_matching(looked as u64, found.len() as u64);
    moves.extend(found);
    moves
}

/// A set of nodes.
struct NodeSet(SmallVec<[u64; 16]>);

impl NodeSet {
    fn of(graph: &Graph, ids: impl Iterator<Item = NodeId>) -> NodeSet {
        let mut words = smallvec![0u64; graph.capacity() / 64 + 1];
        for id in ids {
            // A node that was there before the latest move may lie beyond.
            let word = id.0 as usize / 64;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (id.0 % 64);
        }
        NodeSet(words)
    }

    fn contains(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }
}

/// The previous moves that the latest move left intact, and the roots of those whose edit has
/// changed.
fn surviving(engine: &Engine<'_>, dirty: &NodeSet, before: &[Arc<Move>]) -> (Vec<Arc<Move>>, Vec<NodeId>) {
    let graph = engine.graph();
    // Only a move with several roots can close a cycle, and only through a path that a later move
    // added.
    let merged = engine.last_step().is_some_and(|s| s.adds_paths);
    let ranks = if merged { graph.ranks() } else { Vec::new() };
    // Targets reuse existing nodes: one that came or went changes the edit even at matches that the
    // change does not touch.
    let outdated = |m: &Move| {
        m.reads().iter().any(|id| graph.get(*id).is_none())
            || m.patch.create.iter().any(|new| {
                matches!(new.inputs.first(), Some(PatchValue::Old(v)) if dirty.contains(v.node))
                    && twin(graph, &new.op, &new.inputs).is_some()
            })
    };
    let mut moves: Vec<Arc<Move>> = Vec::with_capacity(before.len() + 16);
    let mut again: Vec<NodeId> = Vec::new();
    for m in before {
        let operand_touched = || m.nodes.iter().any(|id| graph.node(*id).inputs.iter().any(|v| dirty.contains(v.node)));
        if m.nodes.iter().any(|id| dirty.contains(*id)) || (m.asks_for_readers() && operand_touched()) {
            continue;
        }
        // A node that stands for one of the target may compute something else now.
        let is_changed = m.reused().iter().any(|id| dirty.contains(*id));
        if is_changed || m.reads().iter().any(|id| dirty.contains(*id)) && outdated(m) {
            again.extend(m.patch.replace.iter().map(|(old, _)| old.node));
        } else if !(merged && m.patch.replace.len() > 1 && makes_cycle(graph, &m.patch, Some(&ranks))) {
            moves.push(m.clone());
        }
    }
    (moves, again)
}

/// Anchors of the matches that a change may have touched, each with its distance from the change,
/// and those in `again` at distance 0.
///
/// A match is anchored at its root; a change further upstream than the pattern is deep does not
/// touch it.
fn around(graph: &Graph, dirty: &[NodeId], matcher: &Matcher<'_>, again: Vec<NodeId>) -> Vec<(NodeId, usize)> {
    let mut distance = vec![usize::MAX; graph.capacity()];
    let mut reached: Vec<NodeId> = Vec::with_capacity(64);
    let mut reach = |id: NodeId, far: usize, reached: &mut Vec<NodeId>| {
        let is_new = distance[id.0 as usize] == usize::MAX;
        if is_new {
            reached.push(id);
        }
        distance[id.0 as usize] = distance[id.0 as usize].min(far);
    };
    dirty.iter().filter(|id| graph.get(**id).is_some()).for_each(|id| reach(*id, 0, &mut reached));
    let mut frontier = 0..reached.len();
    for far in 1..matcher.radius() {
        for at in frontier.clone() {
            let id = reached[at];
            for (user, _) in &graph.node(id).users {
                reach(*user, far, &mut reached);
            }
        }
        frontier = frontier.end..reached.len();
    }
    again.into_iter().for_each(|id| reach(id, 0, &mut reached));
    let mut anchors: Vec<(NodeId, usize)> = reached.into_iter().map(|id| (id, distance[id.0 as usize])).collect();
    anchors.retain(|(id, far)| matcher.depth(graph.node(*id).op.kind()) > *far);
    anchors.sort_unstable();
    anchors
}

/// These nodes and all that depend on them, as anchors.
fn descendants(graph: &Graph, from: impl Iterator<Item = NodeId>) -> Vec<(NodeId, usize)> {
    let mut stack: Vec<NodeId> = from.filter(|id| graph.get(*id).is_some()).collect();
    let mut reached = FxHashSet::default();
    while let Some(id) = stack.pop() {
        if reached.insert(id) {
            stack.extend(graph.node(id).users.iter().map(|(user, _)| *user));
        }
    }
    let mut anchors: Vec<(NodeId, usize)> = reached.into_iter().map(|id| (id, 0)).collect();
    anchors.sort_unstable();
    anchors
}
