//! `Explored`: the states that a guided search has visited, how the engine gets from one to
//! another, and what their moves promise.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_search::{Engine, Matcher, Move, Moves, Outcome, Script, all_moves, next_moves};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::embedding::{Changes, Embedding};
use crate::features::Known;
use crate::guide::Guide;
use crate::policy::Policy;
use crate::teacher::known_of;

/// A state that was visited.
pub(crate) struct State {
    /// The way by which it was first reached: moves found in it hold after this way, and no other.
    pub(crate) parent: Option<(u32, Arc<Move>)>,
    pub(crate) cost: Ns,
    pub(crate) key: u128,
    pub(crate) depth: usize,
    /// What the latest move changed of what is known of nodes, once that was asked.
    changes: Option<Changes>,
    /// Its moves, once it is expanded.
    moves: Option<Moves>,
    /// Their scores, once they were asked.
    scores: Option<FxHashMap<usize, f32>>,
}

impl State {
    /// A move, by its place.
    pub(crate) fn step(&self, place: usize) -> Option<Arc<Move>> {
        self.moves.as_ref().and_then(|moves| moves.iter().nth(place).cloned())
    }
}

/// The states that were visited; the first is where the search began.
pub(crate) struct Explored<'s, 'w, 'e, 'm> {
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    policy: Option<Policy<'s>>,
    nodes: Option<Embedding<'w>>,
    start: usize,
    pub(crate) states: Vec<State>,
    /// The states on the way to the engine's, its own last.
    path: Vec<u32>,
    /// How many of them what is known of nodes has followed.
    followed: usize,
    /// What moves add to the cost, by their kinds.
    deltas: FxHashMap<u64, i64>,
}

impl<'s, 'w: 's, 'e, 'm> Explored<'s, 'w, 'e, 'm> {
    /// The engine's current state alone.
    pub(crate) fn new(guide: Guide<'w>, engine: &'s mut Engine<'e>, matcher: &'s mut Matcher<'m>) -> Explored<'s, 'w, 'e, 'm> {
        let start = engine.depth();
        let (policy, nodes) = match guide {
            Guide::Policy(weights) => (Some(Policy::new(weights, matcher.library())), Some(Embedding::new(weights, engine))),
            Guide::Delta => (None, None),
        };
        let root = State { parent: None, cost: engine.cost(), key: engine.key(), depth: 0, changes: None, moves: None, scores: None };
        let (states, path) = (vec![root], vec![0]);
        Explored { engine, matcher, policy, nodes, start, states, path, followed: 1, deltas: FxHashMap::default() }
    }

    /// Takes a move from a state: the key and the cost of where it leads. Then either
    /// [`Explored::keep`] or [`Explored::leave`] follows.
    pub(crate) fn take(&mut self, from: u32, step: &Move) -> (u128, Ns) {
        self.enter(from, false);
        self.engine.apply(step);
        (self.engine.key(), self.engine.cost())
    }

    /// Takes the latest move back.
    pub(crate) fn leave(&mut self) {
        self.engine.undo();
    }

    /// Enters what the latest move led to among the states.
    pub(crate) fn keep(&mut self, from: u32, step: Arc<Move>) -> u32 {
        let at = self.states.len() as u32;
        let (key, cost, depth) = (self.engine.key(), self.engine.cost(), self.states[from as usize].depth + 1);
        self.states.push(State { parent: Some((from, step)), cost, key, depth, changes: None, moves: None, scores: None });
        self.path.push(at);
        at
    }

    /// Takes the engine to a state, and what follows it, if that is asked.
    fn enter(&mut self, to: u32, follows: bool) {
        let mut way = Vec::new();
        let mut at = to;
        while self.path.get(self.states[at as usize].depth) != Some(&at) {
            way.push(at);
            let Some((parent, _)) = &self.states[at as usize].parent else { break };
            at = *parent;
        }
        while self.path.last() != Some(&at) && self.path.len() > 1 {
            self.leave_last();
        }
        // What it did not follow from is applied once more.
        while follows && self.followed < self.path.len() {
            way.extend(self.leave_last());
        }
        for at in way.into_iter().rev() {
            let state = &mut self.states[at as usize];
            let Some((_, step)) = &state.parent else { continue };
            self.engine.apply(step);
            self.path.push(at);
            let Some(nodes) = self.nodes.as_mut().filter(|_| follows) else { continue };
            match &state.changes {
                Some(changes) => nodes.redo(self.engine, changes),
                None => {
                    nodes.follow(self.engine);
                    state.changes = Some(nodes.latest());
                }
            }
            self.followed += 1;
        }
    }

    /// Takes the engine back by one state, which is returned.
    fn leave_last(&mut self) -> Option<u32> {
        if self.followed == self.path.len() {
            self.followed -= 1;
            if let Some(nodes) = &mut self.nodes {
                nodes.back();
            }
        }
        self.engine.undo();
        self.path.pop()
    }

    /// Finds the moves of the engine's state, and what is known of them.
    pub(crate) fn expand(&mut self, at: u32) -> Vec<Known> {
        let before = self.states[at as usize].parent.as_ref().map(|(parent, _)| *parent);
        let known = before.and_then(|parent| self.states[parent as usize].moves.as_ref());
        let moves = match known {
            Some(moves) => next_moves(self.engine, self.matcher, moves),
            None => all_moves(self.engine, self.matcher),
        };
        let cost = self.states[at as usize].cost;
        let rose = before.is_some_and(|parent| cost > self.states[parent as usize].cost);
        // What a move of a kind adds is asked once.
        for step in &moves {
            let kind = self.engine.kind_of(step);
            if !self.deltas.contains_key(&kind) {
                self.engine.apply(step);
                let delta = self.engine.cost() as i64 - cost as i64;
                self.engine.undo();
                self.deltas.insert(kind, delta);
            }
        }
        let known = known_of(self.engine, &moves, rose, |_, _, kind| self.deltas[&kind]);
        self.states[at as usize].moves = Some(moves);
        known
    }

    /// The policy's scores of a state's moves, of which this is known; none without a policy.
    pub(crate) fn scores(&mut self, at: u32, known: &[Known]) -> Vec<f32> {
        if self.policy.is_none() {
            return Vec::new();
        }
        self.enter(at, true);
        let before = self.states[at as usize].parent.as_ref().map(|(parent, _)| *parent);
        let Some(moves) = &self.states[at as usize].moves else { return Vec::new() };
        let scores = self.scored(before, moves, known);
        let by_address = moves.iter().zip(&scores).map(|(step, score)| (address(step), *score)).collect();
        self.states[at as usize].scores = Some(by_address);
        scores
    }

    /// What the logarithm of the cost of the engine's state may still fall by, as the policy has
    /// it.
    pub(crate) fn value(&self, known: &[Known]) -> Option<f32> {
        Some(self.policy.as_ref()?.value(self.engine, self.nodes.as_ref()?, known))
    }

    /// The scores of moves; those that the latest move did not touch have those of the state
    /// before.
    fn scored(&self, before: Option<u32>, moves: &Moves, known: &[Known]) -> Vec<f32> {
        let (Some(policy), Some(nodes)) = (&self.policy, &self.nodes) else { return Vec::new() };
        let earlier = before.and_then(|parent| {
            let parent = &self.states[parent as usize];
            parent.moves.as_ref().zip(parent.scores.as_ref())
        });
        let were_new: FxHashSet<usize> = earlier.iter().flat_map(|(moves, _)| moves.enabled()).map(address).collect();
        let score = |(step, all): (&Arc<Move>, &Known)| {
            let touched = all.is_new || step.nodes.iter().copied().chain(step.reads()).any(|id| nodes.is_changed(id));
            let is_kept = !touched && !were_new.contains(&address(step));
            let kept = earlier.filter(|_| is_kept).and_then(|(_, scores)| scores.get(&address(step)));
            kept.copied().unwrap_or_else(|| policy.score(self.engine, nodes, step, *all))
        };
        moves.iter().zip(known).map(score).collect()
    }

    /// The moves on the way to a state.
    pub(crate) fn way(&self, at: u32) -> Vec<Arc<Move>> {
        let mut moves = Vec::new();
        let mut state = &self.states[at as usize];
        while let Some((parent, step)) = &state.parent {
            moves.push(step.clone());
            state = &self.states[*parent as usize];
        }
        moves.reverse();
        moves
    }

    /// The cheapest states, so many at most; the engine is where it began.
    pub(crate) fn outcome(self, keep: usize, complete: bool) -> Outcome {
        self.engine.rewind(self.start);
        let mut order: Vec<u32> = (0..self.states.len() as u32).collect();
        order.sort_by_key(|at| (self.states[*at as usize].cost, *at));
        order.truncate(keep.max(1));
        let script = |at: u32| Script { moves: self.way(at), cost: self.states[at as usize].cost, key: self.states[at as usize].key };
        let scripts = order.into_iter().map(script).collect();
        Outcome { scripts, visited: self.states.len() as u64, complete }
    }
}

fn address(step: &Arc<Move>) -> usize {
    Arc::as_ptr(step) as usize
}
