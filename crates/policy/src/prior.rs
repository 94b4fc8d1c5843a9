//! `Prior`: best-first search in which a learned policy says what to try next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::Budget;
use regraft_search::{Engine, Matcher, Move, Moves, Outcome, Script, Strategy, all_moves, next_moves};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::embedding::{Changes, Embedding};
use crate::features::Known;
use crate::policy::Policy;
use crate::teacher::known_of;
use crate::weights::Weights;

/// What says which move to take next.
#[derive(Clone, Copy, Debug)]
pub enum Guide<'w> {
    /// A trained policy.
    Policy(&'w Weights),
    /// What a move adds to the cost, and nothing else.
    Delta,
}

/// Takes the most likely way first (levin tree search: Orseau et al., NeurIPS 2018), where likelihood
/// counts from the cheapest state so far: whenever a cheaper state is found, the search goes on from
/// there, and what was left is kept.
///
/// Every other move is the one that leads to the cheapest state by what is known, whatever the policy
/// says: so that it takes at most twice the steps that are needed without one.
///
/// With [`Guide::Delta`], the state that is cheapest is expanded first, as in TASO: what a policy is
/// compared with.
#[derive(Clone, Copy, Debug)]
pub struct Prior<'w> {
    /// What guides it.
    pub guide: Guide<'w>,
    /// States expanded at most.
    pub expansions: usize,
    /// Moves of a state that may be tried.
    pub width: usize,
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States that cost this many times the cheapest one are left.
    pub rise: f64,
    /// Scripts that are returned.
    pub keep: usize,
}

impl<'w> Prior<'w> {
    /// With this guide.
    pub fn new(guide: Guide<'w>) -> Prior<'w> {
        Prior { guide, expansions: 2000, width: 48, steps: None, rise: 1.6, keep: 4 }
    }

    /// Searches, and tells the cost of the cheapest state after each expansion.
    pub fn observed(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(usize, Ns),
    ) -> Outcome {
        let start = engine.depth();
        let policy = match self.guide {
            Guide::Policy(weights) => Some(Policy::new(weights, matcher.library())),
            Guide::Delta => None,
        };
        let nodes = policy.as_ref().map(|policy| Embedding::new(policy.weights, engine));
        let root = State {
            parent: None,
            cost: engine.cost(),
            key: engine.key(),
            depth: 0,
            penalty: 0.0,
            changes: Changes::default(),
            unlikely: Vec::new(),
            moves: None,
        };
        let seen = FxHashSet::from_iter([root.key]);
        let mut search = Searching {
            prior: self,
            engine,
            matcher,
            policy,
            nodes,
            start,
            states: vec![root],
            path: vec![0],
            queue: BinaryHeap::new(),
            cheap: BinaryHeap::new(),
            seen,
            deltas: FxHashMap::default(),
            cheapest: 0,
        };
        let complete = search.run(budget, observe);
        search.outcome(complete)
    }
}

impl Strategy for Prior<'_> {
    fn name(&self) -> &'static str {
        match self.guide {
            Guide::Policy(_) => "prior",
            Guide::Delta => "delta",
        }
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.observed(engine, matcher, budget, &mut |_, _| {})
    }
}

/// Every so manieth move is chosen by price.
const PRICED: usize = 2;

/// A state that was visited.
struct State {
    parent: Option<(u32, Arc<Move>)>,
    cost: Ns,
    key: u128,
    depth: usize,
    /// How unlikely the way here is, from the state on it that was the cheapest then: a logarithm.
    penalty: f64,
    /// What the latest move changed of what is known of nodes.
    changes: Changes,
    /// How unlikely each of its moves is, once it is expanded.
    unlikely: Vec<f64>,
    /// Its moves with their scores, once it is expanded.
    moves: Option<(Moves, FxHashMap<usize, f32>)>,
}

/// A move to take from a state, the most promising first. Numbers are ordered as their bits are: none of
/// them is negative.
type Offer = (Reverse<u64>, Reverse<u64>, u32, usize);

struct Searching<'s, 'w, 'e, 'm> {
    prior: &'s Prior<'w>,
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    policy: Option<Policy<'w>>,
    nodes: Option<Embedding<'w>>,
    start: usize,
    states: Vec<State>,
    /// The states on the way to the engine's, its own last.
    path: Vec<u32>,
    /// By the policy.
    queue: BinaryHeap<Offer>,
    /// By price.
    cheap: BinaryHeap<Offer>,
    seen: FxHashSet<u128>,
    /// What moves add to the cost, by their kinds.
    deltas: FxHashMap<u64, i64>,
    cheapest: u32,
}

impl Searching<'_, '_, '_, '_> {
    /// Whether nothing was left when it ended.
    fn run(&mut self, budget: &mut dyn Budget, observe: &mut dyn FnMut(usize, Ns)) -> bool {
        let mut expanded = 0;
        let mut made = 0;
        self.expand(0, &mut made);
        observe(1, self.states[0].cost);
        while let Some((.., from, place)) = self.next(expanded) {
            if budget.exhausted() || expanded >= self.prior.expansions {
                return false;
            }
            let state = &self.states[from as usize];
            let penalty = state.penalty + state.unlikely.get(place).copied().unwrap_or_default();
            let Some(step) = state.moves.as_ref().and_then(|(moves, _)| moves.iter().nth(place).cloned()) else { continue };
            self.enter(from);
            self.engine.apply(&step);
            let (key, cost) = (self.engine.key(), self.engine.cost());
            let limit = self.states[self.cheapest as usize].cost as f64 * self.prior.rise;
            if cost as f64 > limit || !self.seen.insert(key) {
                self.engine.undo();
                continue;
            }
            let changes = self.nodes.as_mut().map(|nodes| {
                nodes.follow(self.engine);
                nodes.latest()
            });
            let changes = changes.unwrap_or_default();
            let at = self.states.len() as u32;
            let depth = self.states[from as usize].depth + 1;
            let penalty = if cost < self.states[self.cheapest as usize].cost { 0.0 } else { penalty };
            self.states.push(State { parent: Some((from, step)), cost, key, depth, penalty, changes, unlikely: Vec::new(), moves: None });
            self.path.push(at);
            if cost < self.states[self.cheapest as usize].cost {
                self.cheapest = at;
            }
            expanded += 1;
            if self.prior.steps.is_none_or(|most| depth < most) {
                self.expand(at, &mut made);
            }
            observe(expanded + 1, self.states[self.cheapest as usize].cost);
        }
        true
    }

    /// The next move to take, from either queue in turn.
    fn next(&mut self, turn: usize) -> Option<Offer> {
        let [first, second] = if turn % PRICED == 1 { [&mut self.cheap, &mut self.queue] } else { [&mut self.queue, &mut self.cheap] };
        first.pop().or_else(|| second.pop())
    }

    /// Takes the engine, and what follows it, to a state.
    fn enter(&mut self, to: u32) {
        let mut way = Vec::new();
        let mut at = to;
        while self.path.get(self.states[at as usize].depth) != Some(&at) {
            way.push(at);
            let Some((parent, _)) = &self.states[at as usize].parent else { break };
            at = *parent;
        }
        while self.path.last() != Some(&at) && self.path.len() > 1 {
            self.path.pop();
            self.engine.undo();
            if let Some(nodes) = &mut self.nodes {
                nodes.back();
            }
        }
        for at in way.into_iter().rev() {
            let state = &self.states[at as usize];
            let Some((_, step)) = &state.parent else { continue };
            self.engine.apply(step);
            if let Some(nodes) = &mut self.nodes {
                nodes.redo(self.engine, &state.changes);
            }
            self.path.push(at);
        }
    }

    /// Finds the moves of the engine's state, and offers them.
    fn expand(&mut self, at: u32, made: &mut u64) {
        let before = self.states[at as usize].parent.as_ref().map(|(parent, _)| *parent);
        let known = before.and_then(|parent| self.states[parent as usize].moves.as_ref());
        let moves = match known {
            Some((moves, _)) => next_moves(self.engine, self.matcher, moves),
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
        let all = known_of(self.engine, &moves, rose, |_, _, kind| self.deltas[&kind]);
        let each: Vec<(Arc<Move>, Known)> = moves.iter().cloned().zip(all).collect();
        let scores = self.scores(before, &each);
        let most = scores.iter().fold(f32::NEG_INFINITY, |most, score| most.max(*score));
        let sum: f64 = scores.iter().map(|score| f64::from(score - most).exp()).sum();
        let unlikely: Vec<f64> = scores.iter().map(|score| sum.ln() - f64::from(score - most)).collect();
        let penalty = self.states[at as usize].penalty;
        let mut likely: Vec<(f64, usize)> = unlikely.iter().map(|one| penalty + one).zip(0..).collect();
        likely.sort_by(|a, b| a.0.total_cmp(&b.0));
        likely.truncate(self.prior.width);
        self.states[at as usize].unlikely = unlikely;
        let cheap = each.iter().map(|(_, known)| cost.saturating_add_signed(known.delta) as f64).zip(0..);
        for (penalty, place) in cheap {
            *made += 1;
            self.cheap.push((Reverse(penalty.to_bits()), Reverse(*made), at, place));
        }
        for (penalty, place) in likely {
            *made += 1;
            self.queue.push((Reverse(penalty.to_bits()), Reverse(*made), at, place));
        }
        let scores = each.iter().zip(scores).map(|((step, _), score)| (address(step), score)).collect();
        self.states[at as usize].moves = Some((moves, scores));
    }

    /// The scores of moves; those that the latest move did not touch have those of the state before.
    fn scores(&self, before: Option<u32>, each: &[(Arc<Move>, Known)]) -> Vec<f32> {
        let (Some(policy), Some(nodes)) = (&self.policy, &self.nodes) else { return Vec::new() };
        let known = before.and_then(|parent| self.states[parent as usize].moves.as_ref());
        let were_new: FxHashSet<usize> = known.iter().flat_map(|(moves, _)| moves.enabled()).map(address).collect();
        let score = |(step, all): &(Arc<Move>, Known)| {
            let touched = all.is_new || step.nodes.iter().copied().chain(step.reads()).any(|id| nodes.is_changed(id));
            let kept = known.filter(|_| !touched && !were_new.contains(&address(step))).and_then(|(_, scores)| scores.get(&address(step)));
            kept.copied().unwrap_or_else(|| policy.score(self.engine, nodes, step, *all))
        };
        each.iter().map(score).collect()
    }

    fn outcome(self, complete: bool) -> Outcome {
        self.engine.rewind(self.start);
        let mut order: Vec<u32> = (0..self.states.len() as u32).collect();
        order.sort_by_key(|at| (self.states[*at as usize].cost, *at));
        order.truncate(self.prior.keep.max(1));
        let script = |at: u32| {
            let mut moves = Vec::new();
            let mut state = &self.states[at as usize];
            let (cost, key) = (state.cost, state.key);
            while let Some((parent, step)) = &state.parent {
                moves.push(step.clone());
                state = &self.states[*parent as usize];
            }
            moves.reverse();
            Script { moves, cost, key }
        };
        let scripts = order.into_iter().map(script).collect();
        Outcome { scripts, visited: self.states.len() as u64, complete }
    }
}

fn address(step: &Arc<Move>) -> usize {
    Arc::as_ptr(step) as usize
}
