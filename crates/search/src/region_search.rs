//! `RegionSearch`: the states that moves inside of one region lead to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::{Budget, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::advice::{Advice, Advisor};
use crate::beam::Beam;
use crate::engine::{Engine, Matcher, Move, Moves, next_moves};
use crate::greedy::PIECE;
use crate::regions::Regions;
use crate::transfer::Recorded;

/// What is known of moves by their kinds, wherever they are: at similar places it is the same.
#[derive(Default)]
pub(crate) struct Lore {
    /// What they change the cost by.
    pub(crate) deltas: FxHashMap<u64, i64>,
    /// For those that raise the cost: the longest sequences tried that begin with them, and what
    /// these save. Nothing lay beyond a border when they were tried.
    pub(crate) sequences: FxHashMap<u64, (usize, Option<i64>)>,
}

/// How far a region is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Longest sequence; any, if `None`.
    pub(crate) steps: Option<usize>,
    /// States visited at most.
    pub(crate) states: u64,
    /// States of a level of the beam, half of them for sequences that raise the cost before they
    /// pay.
    pub(crate) beam: usize,
    /// Longest such sequence.
    pub(crate) ahead: usize,
    /// States visited by the longer ones of these.
    pub(crate) deep: u64,
    /// Moves that the beam looks at.
    pub(crate) candidates: usize,
    /// States expanded, cheapest first, after the beam.
    pub(crate) expansions: usize,
}

/// What can be saved in a region by so many moves: the most for each number, the last one for more.
#[derive(Clone)]
pub(crate) struct Curve {
    /// What is saved, and how; savings grow.
    pub(crate) by_steps: Vec<(Ns, Vec<Recorded>)>,
    /// Whether every state was visited that moves inside of the region lead to.
    pub(crate) exhausted: bool,
    /// Whether a move crosses the border, or changes what is beyond it costs.
    pub(crate) crossed: bool,
}

/// A state, as a step from the one before.
struct State {
    from: u32,
    step: Option<Arc<Move>>,
    steps: u32,
    cost: Ns,
    /// The ids of the nodes that the step made.
    made: Range<u32>,
    /// The state whose step made the piece that this one's is inside of, or makes.
    piece: Option<u32>,
    /// Those inside of the region, once they were asked for.
    moves: Option<Moves>,
}

/// The search of one region.
pub(crate) struct RegionSearch<'s, 'e, 'm> {
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    budget: &'s mut dyn Budget,
    regions: &'s Regions,
    part: usize,
    pub(crate) effort: Effort,
    pub(crate) lore: &'s mut Lore,
    advice: Option<Box<dyn Advice + 's>>,
    start: usize,
    states: Vec<State>,
    /// The latest state with each key.
    known: FxHashMap<u128, u32>,
    /// The states from the start to the engine's.
    path: Vec<u32>,
    /// For each number of steps, the cheapest state that at most so many lead to.
    cheapest: Vec<u32>,
    /// What is known of moves, by their addresses; they are kept, so that no other gets the same.
    of_moves: FxHashMap<usize, (Arc<Move>, u64, i64)>,
    visited: u64,
    cut_short: bool,
    crossed: bool,
}

impl<'s, 'e, 'm> RegionSearch<'s, 'e, 'm> {
    /// From the engine's current state, whose moves are given.
    pub(crate) fn new(
        (engine, matcher, budget): (&'s mut Engine<'e>, &'s mut Matcher<'m>, &'s mut dyn Budget),
        (regions, part): (&'s Regions, usize),
        moves: &Moves,
        (effort, lore, advisor): (Effort, &'s mut Lore, Option<&'s dyn Advisor>),
    ) -> RegionSearch<'s, 'e, 'm> {
        let (start, cost, key) = (engine.depth(), engine.cost(), engine.key());
        let advice = advisor.map(|advisor| advisor.advise(engine, matcher.library()));
        let mut search = RegionSearch {
            engine,
            matcher,
            budget,
            regions,
            part,
            effort,
            lore,
            advice,
            start,
            states: Vec::new(),
            known: FxHashMap::from_iter([(key, 0)]),
            path: vec![0],
            cheapest: vec![0],
            of_moves: FxHashMap::default(),
            visited: 0,
            cut_short: false,
            crossed: false,
        };
        let moves = search.inside(moves.clone());
        search.states.push(State { from: 0, step: None, steps: 0, cost, made: 0..0, piece: None, moves: Some(moves) });
        search
    }

    /// Searches; and how many states it visited. Leaves the engine where it was.
    pub(crate) fn run(mut self) -> (Curve, u64) {
        Beam::new(&mut self).run();
        self.best_first();
        let before = self.states[0].cost;
        let mut found = std::mem::take(&mut self.cheapest);
        if self.effort.steps.is_none() {
            // Nobody asks what fewer save.
            found.drain(1..found.len().max(2) - 1);
        }
        let by_steps = found.iter().map(|at| (before - self.states[*at as usize].cost, self.recorded(*at))).collect();
        self.engine.rewind(self.start);
        (Curve { by_steps, exhausted: !self.cut_short, crossed: self.crossed }, self.visited)
    }

    /// The cheapest state first, until there are no more.
    fn best_first(&mut self) -> Option<()> {
        self.cut_short = false;
        let mut queue = BinaryHeap::new();
        let mut waiting: Vec<(u32, Arc<Move>)> = Vec::new();
        let mut seen = FxHashSet::default();
        let mut expansions = 0;
        let best = self.cheapest[self.cheapest.len() - 1];
        let mut open = if best == 0 { vec![0] } else { vec![best, 0] };
        loop {
            for at in std::mem::take(&mut open) {
                if !seen.insert(at) || self.is_last(at) {
                    continue;
                }
                expansions += 1;
                if expansions > self.effort.expansions {
                    self.cut_short = true;
                    return None;
                }
                self.find_moves(at);
                for step in self.all_moves(at) {
                    let (_, delta) = self.delta(at, &step)?;
                    queue.push((Reverse(self.cost(at).saturating_add_signed(delta)), Reverse(waiting.len())));
                    waiting.push((at, step));
                }
            }
            let Some((_, Reverse(next))) = queue.pop() else { return Some(()) };
            let (at, step) = waiting[next].clone();
            open.extend(self.visit(at, &step)?);
        }
    }

    /// The kind of a move, and what it changes the cost by; `None` where the search is over.
    pub(crate) fn delta(&mut self, at: u32, step: &Arc<Move>) -> Option<(u64, i64)> {
        if let Some((_, kind, delta)) = self.of_moves.get(&address(step)) {
            return Some((*kind, *delta));
        }
        self.enter(at);
        let kind = self.engine.kind_of(step);
        let delta = match self.lore.deltas.get(&kind) {
            Some(delta) => *delta,
            None => self.price(step, kind)?,
        };
        self.of_moves.insert(address(step), (step.clone(), kind, delta));
        Some((kind, delta))
    }

    /// How unlikely each of a state's moves is, as advised: what the logarithm of its probability
    /// lacks to 0, in thousandths. All are alike without advice; `None` where the search is over.
    pub(crate) fn unlikely(&mut self, at: u32, steps: &[Arc<Move>]) -> Option<Vec<u32>> {
        if self.advice.is_none() {
            return Some(vec![0; steps.len()]);
        }
        let deltas = steps.iter().map(|step| Some(self.delta(at, step)?.1)).collect::<Option<Vec<i64>>>()?;
        self.enter(at);
        let State { from, cost, moves, .. } = &self.states[at as usize];
        let rose = *cost > self.states[*from as usize].cost;
        let (Some(advice), Some(moves)) = (&mut self.advice, moves) else { return Some(vec![0; steps.len()]) };
        let scores = advice.scores(self.engine, moves, &deltas, rose);
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = scores.iter().map(|score| (score - highest).exp()).sum();
        Some(scores.iter().map(|score| (1000.0 * (sum.ln() + highest - score)) as u32).collect())
    }

    /// Whether a move was asked about.
    pub(crate) fn is_known(&self, step: &Arc<Move>) -> bool {
        self.of_moves.contains_key(&address(step))
    }

    /// Whether nothing lies beyond a border.
    pub(crate) fn is_whole(&self) -> bool {
        self.regions.parts.len() == 1
    }

    /// What a state costs.
    pub(crate) fn cost(&self, at: u32) -> Ns {
        self.states[at as usize].cost
    }

    /// What the first state costs.
    pub(crate) fn total(&self) -> Ns {
        self.cost(0)
    }

    /// Whether so many moves may follow.
    pub(crate) fn may_follow(&self, at: u32, moves: usize) -> bool {
        self.effort.steps.is_none_or(|most| self.states[at as usize].steps as usize + moves <= most)
    }

    /// Whether no move may follow.
    pub(crate) fn is_last(&self, at: u32) -> bool {
        !self.may_follow(at, 1)
    }

    /// The moves of a state, which were found.
    pub(crate) fn all_moves(&self, at: u32) -> Vec<Arc<Move>> {
        self.states[at as usize].moves.iter().flatten().cloned().collect()
    }

    /// Asks about a state's moves, which were found; the engine is there.
    pub(crate) fn with_moves<T: Default>(&mut self, at: u32, ask: impl Fn(&Engine<'_>, &Moves) -> T) -> T {
        self.enter(at);
        self.states[at as usize].moves.as_ref().map_or_else(T::default, |moves| ask(self.engine, moves))
    }

    /// How many moves a state has.
    pub(crate) fn count_moves(&self, at: u32) -> usize {
        self.states[at as usize].moves.as_ref().map_or(0, Moves::len)
    }

    /// The state before.
    pub(crate) fn parent(&self, at: u32) -> u32 {
        self.states[at as usize].from
    }

    /// Drops the moves of a state.
    pub(crate) fn forget_moves(&mut self, at: u32) {
        if at != 0 {
            self.states[at as usize].moves = None;
        }
    }

    /// What a move of the engine's state changes the cost by; `None` where the search is over.
    fn price(&mut self, step: &Move, kind: u64) -> Option<i64> {
        if self.is_over() {
            return None;
        }
        let before = self.engine.cost();
        self.engine.apply(step);
        self.visited += 1;
        let delta = self.engine.cost().wrapping_sub(before) as i64;
        self.engine.undo();
        self.lore.deltas.insert(kind, delta);
        Some(delta)
    }

    fn is_over(&mut self) -> bool {
        let over = self.visited >= self.effort.states || self.budget.exhausted();
        self.cut_short |= over;
        over
    }

    /// The state that a move leads to, unless it disturbs what is beyond the border; `None` where
    /// the search is over.
    pub(crate) fn visit(&mut self, at: u32, step: &Arc<Move>) -> Option<Option<u32>> {
        if self.is_over() {
            return None;
        }
        self.enter(at);
        self.engine.apply(step);
        self.visited += 1;
        let (regions, part) = (self.regions, self.part);
        if self.engine.disturbed().any(|id| !regions.owns(part, id)) {
            // What lies across the border is for a pass whose cuts are elsewhere.
            self.crossed = true;
            self.engine.undo();
            return Some(None);
        }
        let (cost, key, steps) = (self.engine.cost(), self.engine.key(), self.states[at as usize].steps + 1);
        let first = self.engine.created().first().map_or(0, |id| id.0);
        let made = first..first + self.engine.created().len() as u32;
        self.engine.undo();
        // With a limit, a shorter way leads to more.
        let is_limited = self.effort.steps.is_some();
        let known = self.known.get(&key).copied().filter(|known| !is_limited || self.states[*known as usize].steps <= steps);
        Some(Some(known.unwrap_or_else(|| {
            let new = self.states.len() as u32;
            let piece = self.piece(at, step).or_else(|| (made.len() >= PIECE).then_some(new));
            self.states.push(State { from: at, step: Some(step.clone()), steps, cost, made, piece, moves: None });
            self.known.insert(key, new);
            self.offer(new);
            new
        })))
    }

    /// Whether a move of a state is inside of what one move made of many nodes.
    pub(crate) fn is_in_piece(&self, at: u32, step: &Move) -> bool {
        self.piece(at, step).is_some()
    }

    /// The state whose step made the piece that a move is inside of, if it is.
    fn piece(&self, at: u32, step: &Move) -> Option<u32> {
        let mut pieces = step.nodes.iter().map(|id| {
            let mut at = at;
            while at != 0 {
                let state = &self.states[at as usize];
                if state.made.contains(&id.0) {
                    return state.piece;
                }
                at = state.from;
            }
            None
        });
        let first = pieces.next()??;
        pieces.all(|piece| piece == Some(first)).then_some(first)
    }

    /// Finds the moves of a state, and takes the engine there.
    pub(crate) fn find_moves(&mut self, at: u32) {
        self.enter(at);
        if self.states[at as usize].moves.is_some() {
            return;
        }
        let from = self.states[at as usize].from;
        if self.states[from as usize].moves.is_none() {
            self.find_moves(from);
            self.enter(at);
        }
        let Some(before) = &self.states[from as usize].moves else { return };
        let moves = next_moves(self.engine, self.matcher, before);
        self.states[at as usize].moves = Some(self.inside(moves));
    }

    /// Those of some moves that are inside of the region.
    fn inside(&mut self, mut moves: Moves) -> Moves {
        let (graph, regions, part) = (self.engine.graph(), self.regions, self.part);
        let mut crossed = false;
        moves.retain(|step| {
            let is_constant = |id: &NodeId| graph.get(*id).is_some_and(|node| node.constant);
            let mut nodes = step.nodes.iter().filter(|id| !is_constant(id));
            let is_inside = nodes.clone().all(|id| regions.owns(part, *id));
            crossed |= !is_inside && nodes.any(|id| regions.owns(part, *id));
            is_inside
        });
        self.crossed |= crossed;
        moves
    }

    /// Takes the engine to a state.
    fn enter(&mut self, at: u32) {
        if self.path.last() == Some(&at) {
            return;
        }
        let (mut target, mut state) = (vec![at], at);
        while state != 0 {
            state = self.states[state as usize].from;
            target.push(state);
        }
        target.reverse();
        let common = self.path.iter().zip(&target).take_while(|(a, b)| a == b).count();
        self.engine.rewind(self.start + common - 1);
        if let Some(advice) = &mut self.advice {
            (common..self.path.len()).for_each(|_| advice.back());
        }
        for state in &target[common..] {
            if let Some(step) = &self.states[*state as usize].step {
                self.engine.apply(step);
                if let Some(advice) = &mut self.advice {
                    advice.follow(self.engine);
                }
            }
        }
        self.path = target;
    }

    /// Keeps, for each number of steps, the cheapest state that at most so many lead to.
    fn offer(&mut self, new: u32) {
        let State { steps, cost, .. } = self.states[new as usize];
        let last = self.cheapest[self.cheapest.len() - 1];
        if self.cheapest.len() <= steps as usize {
            if cost >= self.states[last as usize].cost {
                return;
            }
            self.cheapest.resize(steps as usize + 1, last);
        }
        for known in &mut self.cheapest[steps as usize..] {
            if cost < self.states[*known as usize].cost {
                *known = new;
            }
        }
    }

    /// The moves from the start to a state.
    fn recorded(&mut self, at: u32) -> Vec<Recorded> {
        self.enter(at);
        let moves: Vec<Arc<Move>> = self.path.iter().filter_map(|at| self.states[*at as usize].step.clone()).collect();
        self.enter(0);
        Recorded::all(self.engine, &moves)
    }
}

/// Where a move is.
pub(crate) fn address(step: &Arc<Move>) -> usize {
    Arc::as_ptr(step) as usize
}
