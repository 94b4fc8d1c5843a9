//! The match index: finds the moves of a state, from scratch or incrementally.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use regraft_ir::{Graph, NodeId, PatchValue};
use regraft_rules::{makes_cycle, twin};
use rustc_hash::{FxHashMap, FxHashSet};

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
    let dirty = engine.dirty();
    let (mut moves, outdated) = surviving(engine, matcher, &dirty, before);
    let anchors = around(engine.graph(), &dirty, matcher.radius(), outdated);
    let mut known: FxHashSet<u64> = moves.iter().map(|m| m.match_id()).collect();
    let mut found = matcher.at(engine.matched(), &anchors, Which::All, &mut known);
    let mut looked = anchors.len();
    if let Some(step) = engine.last_step().filter(|s| s.drops_paths) {
        // A merge that would have closed a cycle through the dropped path may be possible now,
        // however far below.
        let below = descendants(engine.graph(), step.applied.rewired.iter().map(|(reader, ..)| *reader));
        found.extend(matcher.at(engine.matched(), &below, Which::Merges, &mut known));
        looked += below.len();
    }
    engine.count_matching(looked as u64, found.len() as u64);
    moves.extend(found);
    moves
}

/// The previous moves that the latest move left intact, and the roots of those whose edit has
/// changed.
fn surviving(engine: &Engine<'_>, matcher: &Matcher<'_>, dirty: &[NodeId], before: &[Arc<Move>]) -> (Vec<Arc<Move>>, Vec<NodeId>) {
    let graph = engine.graph();
    // Only a move with several roots can close a cycle, and only through a path that a later move
    // added.
    let merged = engine.last_step().is_some_and(|s| s.adds_paths);
    let ranks = if merged { graph.ranks() } else { Vec::new() };
    let touched = |id: &NodeId| dirty.binary_search(id).is_ok();
    // Targets reuse existing nodes: one that came or went changes the edit even at matches that the
    // change does not touch.
    let outdated = |m: &Move| {
        m.patch.reads().any(|v| graph.get(v.node).is_none())
            || m.patch.create.iter().any(|new| {
                matches!(new.inputs.first(), Some(PatchValue::Old(v)) if touched(&v.node)) && twin(graph, &new.op, &new.inputs).is_some()
            })
    };
    let mut moves: Vec<Arc<Move>> = Vec::with_capacity(before.len());
    let mut again: Vec<NodeId> = Vec::new();
    for m in before {
        let operand_touched = || m.nodes.iter().any(|id| graph.node(*id).inputs.iter().any(|v| touched(&v.node)));
        if m.nodes.iter().any(touched) || (operand_touched() && matcher.library().rules()[m.rule].asks_for_readers()) {
            continue;
        }
        if outdated(m) {
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
fn around(graph: &Graph, dirty: &[NodeId], radius: usize, again: Vec<NodeId>) -> Vec<(NodeId, usize)> {
    let mut distance: FxHashMap<NodeId, usize> = dirty.iter().filter(|id| graph.get(**id).is_some()).map(|id| (*id, 0)).collect();
    let mut frontier: Vec<NodeId> = distance.keys().copied().collect();
    for far in 1..radius {
        let mut next = Vec::new();
        for id in frontier {
            for (user, _) in &graph.node(id).users {
                if let Entry::Vacant(entry) = distance.entry(*user) {
                    entry.insert(far);
                    next.push(*user);
                }
            }
        }
        frontier = next;
    }
    distance.extend(again.into_iter().map(|id| (id, 0)));
    let mut anchors: Vec<(NodeId, usize)> = distance.into_iter().collect();
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
