//! `Beam`: a beam with look-ahead, in which the price of a move is asked once.

use std::sync::Arc;

use regraft_cost::Ns;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::engine::Move;
use crate::greedy::{PIECE, follow_ups};
use crate::region_search::{RegionSearch, address};

/// Levels without a cheaper state, after which the beam ends.
const PATIENCE: usize = 6;
/// Follow-ups tried after each step of a sequence that must pay as a whole.
const WIDTH: usize = 64;
/// Along the way, a sequence may raise the cost by at most this fraction of what the first state
/// costs.
const SLACK: f64 = 0.3;
/// Places at which sequences are tried that begin with moves of one kind: around them, things may
/// be different.
const PLACES: usize = 3;
/// Length of sequences that are tried before longer ones.
const SHORT: usize = 2;

/// Half of each level are the cheapest states that a move leads to, half the cheapest that a short
/// sequence leads to that raises the cost before it pays (as in Algorithm 3 of OCGGS, PVLDB 13(11)
/// 2020, whose sequences are of two).
///
/// A move that stays possible changes the cost by as much as before, and one of the same kind at
/// another place does so as well: only moves that are taken, or of a new kind, are applied. In the
/// same way, sequences are tried at a few places for each kind of move that they begin with.
pub(crate) struct Beam<'b, 's, 'e, 'm> {
    search: &'b mut RegionSearch<'s, 'e, 'm>,
    /// For each kind of move that raises the cost: what a sequence that begins with it saves.
    potential: FxHashMap<u64, Potential>,
    /// Addresses of moves that reach beyond the border.
    refused: FxHashSet<usize>,
    /// States already in a level.
    seen: FxHashSet<u32>,
    /// Longest sequence that raises the cost before it pays.
    ahead: usize,
    /// States that longer ones than [`SHORT`] may still visit.
    deep: u64,
    /// Moves looked at so far.
    looked_at: usize,
}

/// What is known of sequences that begin with moves of a kind.
#[derive(Default)]
struct Potential {
    /// Where they were tried: addresses of the moves.
    places: SmallVec<[usize; 4]>,
    /// What the best of them saves; nothing, if none ends with a step that does.
    saved: Option<i64>,
}

/// A state and a move that may be worth taking there, and the cost that is expected then; between
/// them, how unlikely the move is, which decides where costs do not.
type Candidate = (Ns, u32, u32, Arc<Move>);

impl<'b, 's, 'e, 'm> Beam<'b, 's, 'e, 'm> {
    /// From the first state of a search.
    pub(crate) fn new(search: &'b mut RegionSearch<'s, 'e, 'm>) -> Beam<'b, 's, 'e, 'm> {
        let deep = search.effort.deep;
        let (potential, refused, seen) = (FxHashMap::default(), FxHashSet::default(), FxHashSet::from_iter([0]));
        Beam { search, potential, refused, seen, ahead: SHORT, deep, looked_at: 0 }
    }

    /// Levels until none of the latest has a cheaper state. `None` where the search is over.
    pub(crate) fn run(&mut self) -> Option<()> {
        let mut level = vec![0];
        let mut best = 0;
        let mut idle = 0;
        while !level.is_empty() {
            let next = self.next_level(&level)?;
            // Moves are found from those of the state before, which are needed no longer then.
            next.iter().for_each(|at| self.search.find_moves(*at));
            level.iter().for_each(|at| self.search.forget_moves(*at));
            level = next;
            let cheapest = level.iter().copied().min_by_key(|at| self.search.cost(*at));
            match cheapest.filter(|at| self.search.cost(*at) < self.search.cost(best)) {
                Some(cheapest) => (best, idle) = (cheapest, 0),
                None => idle += 1,
            }
            if level.is_empty() || idle == PATIENCE {
                if self.looked_at > self.search.effort.candidates || self.ahead >= self.search.effort.ahead || self.deep == 0 {
                    break;
                }
                level.iter().for_each(|at| self.search.forget_moves(*at));
                // Longer sequences, from the best state.
                self.ahead += 1;
                self.potential.clear();
                (level, idle) = (vec![best], 0);
                self.search.find_moves(best);
            }
        }
        Some(())
    }

    fn next_level(&mut self, level: &[u32]) -> Option<Vec<u32>> {
        let half = (self.search.effort.beam / 2).max(1);
        self.looked_at += level.iter().map(|at| self.search.count_moves(*at)).sum::<usize>();
        if self.looked_at > self.search.effort.candidates {
            return Some(Vec::new());
        }
        let (mut falling, mut promising): (Vec<Candidate>, Vec<Candidate>) = Default::default();
        let mut paid = Vec::new();
        for at in level.iter().copied().filter(|at| !self.search.is_last(*at)).collect::<Vec<_>>() {
            let cost = self.search.cost(at);
            let steps = self.search.all_moves(at);
            let unlikely = self.search.unlikely(at, &steps)?;
            for (step, unlikely) in steps.into_iter().zip(unlikely) {
                if self.refused.contains(&address(&step)) {
                    continue;
                }
                let (kind, delta) = self.search.delta(at, &step)?;
                if delta <= 0 {
                    falling.push((cost.saturating_add_signed(delta), unlikely, at, step));
                    continue;
                }
                match self.potential(kind, &step) {
                    Some(None) => {}
                    Some(Some(saved)) => promising.push((cost.saturating_add_signed(-saved), unlikely, at, step)),
                    None if step.makes() >= PIECE || self.search.is_in_piece(at, &step) => {}
                    None => self.look_ahead(at, &step, kind, &mut paid)?,
                }
            }
        }
        let mut next = self.cheapest(falling, half)?;
        promising.sort_by_key(|(cost, unlikely, at, _)| (*cost, *unlikely, *at));
        promising.truncate(half);
        // To go from one state to another takes time.
        promising.sort_by_key(|(cost, unlikely, at, _)| (*at, *cost, *unlikely));
        for (.., at, step) in promising {
            let (kind, _) = self.search.delta(at, &step)?;
            self.look_ahead(at, &step, kind, &mut paid)?;
        }
        paid.sort_by_key(|at| self.search.cost(*at));
        next.extend(paid.into_iter().filter(|at| self.seen.insert(*at)).take(half));
        next.sort_unstable_by_key(|at| (self.search.parent(*at), *at));
        Some(next)
    }

    /// The cheapest states that candidates lead to, of those that are new.
    fn cheapest(&mut self, mut candidates: Vec<Candidate>, most: usize) -> Option<Vec<u32>> {
        candidates.sort_by_key(|(cost, unlikely, at, _)| (*cost, *unlikely, *at));
        let mut found = Vec::with_capacity(2 * most);
        for some in candidates.chunks_mut(2 * most) {
            some.sort_by_key(|(cost, unlikely, at, _)| (*at, *cost, *unlikely));
            for (.., at, step) in some {
                let Some(child) = self.visit(*at, step)? else { continue };
                if !self.seen.contains(&child) && !found.contains(&child) {
                    found.push(child);
                }
            }
            if found.len() >= most {
                break;
            }
        }
        found.sort_by_key(|at| (self.search.cost(*at), *at));
        found.truncate(most);
        self.seen.extend(&found);
        Some(found)
    }

    /// The state that a move leads to, unless it reaches beyond the border.
    fn visit(&mut self, at: u32, step: &Arc<Move>) -> Option<Option<u32>> {
        let child = self.search.visit(at, step)?;
        if child.is_none() && self.search.is_known(step) {
            self.refused.insert(address(step));
        }
        Some(child)
    }

    /// What a sequence saves that begins with a move of this kind, if it was tried at enough
    /// places.
    fn potential(&self, kind: u64, step: &Arc<Move>) -> Option<Option<i64>> {
        if let Some(known) = self.potential.get(&kind) {
            return (known.places.len() >= PLACES || known.places.contains(&address(step))).then_some(known.saved);
        }
        self.search.lore.sequences.get(&kind).filter(|(tried, _)| *tried >= self.ahead).map(|(_, saved)| *saved)
    }

    /// Takes a move that raises the cost and follows it by others, adds the states that cost less
    /// than before, and notes how much less.
    fn look_ahead(&mut self, at: u32, step: &Arc<Move>, kind: u64, paid: &mut Vec<u32>) -> Option<()> {
        let limit = self.search.cost(at);
        let Some(child) = self.visit(at, step)? else { return Some(()) };
        let before = paid.len();
        let most = limit.saturating_add((self.search.total() as f64 * SLACK) as Ns);
        self.follow(child, (self.search.cost(child), most), self.ahead - 1, paid)?;
        let least = paid[before..].iter().map(|at| self.search.cost(*at)).min();
        // Where few steps are left, fewer sequences end.
        if least.is_some() || self.search.may_follow(at, self.ahead) {
            let saved = least.map(|cost| limit as i64 - cost as i64);
            let known = self.potential.entry(kind).or_default();
            known.saved = known.saved.max(saved);
            known.places.push(address(step));
            if self.search.is_whole() {
                self.search.lore.sequences.insert(kind, (self.ahead, known.saved));
            }
        }
        Some(())
    }

    fn follow(&mut self, at: u32, (limit, most): (Ns, Ns), left: usize, paid: &mut Vec<u32>) -> Option<()> {
        if left == 0 || self.search.cost(at) > most || self.search.is_last(at) {
            return Some(());
        }
        if self.ahead > SHORT && self.deep == 0 {
            return Some(());
        }
        self.search.find_moves(at);
        let next = self.search.with_moves(at, |engine, moves| follow_ups(engine, moves, left > 1).take(WIDTH).cloned().collect::<Vec<_>>());
        let mut higher = Vec::new();
        for step in next {
            let Some(child) = self.visit(at, &step)? else { continue };
            if self.ahead > SHORT {
                self.deep = self.deep.saturating_sub(1);
            }
            if self.search.cost(child) < limit { paid.push(child) } else { higher.push(child) }
        }
        for child in higher {
            self.follow(child, (limit, most), left - 1, paid)?;
        }
        self.search.forget_moves(at);
        Some(())
    }
}
