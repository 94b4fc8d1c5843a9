//! `Moves`: the moves of a state, shared with the states around it.

use std::sync::Arc;

use super::inquiries::Inquiries;
use super::matcher::Offer;
use super::near::Near;
use super::rewrite::Move;

/// Most moves of a chunk.
const CHUNK: usize = 32;
/// Neighbouring chunks with no more moves than this are joined.
const SMALL: usize = 16;

/// The moves of a state, in order.
///
/// Moves come in chunks. A chunk that a step does not touch is shared by the states before and
/// after it, so the moves of a state cost as much as what is new about them.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    chunks: Vec<Arc<Chunk>>,
    len: usize,
    /// How many, from the end, are new.
    new: usize,
    /// Matches that would close a cycle. A later step may take the path away that they would close.
    blocked: Vec<Arc<Move>>,
    /// What was asked to find them.
    asked: Inquiries,
}

#[derive(Debug)]
struct Chunk {
    moves: Vec<Arc<Move>>,
    /// Nodes that the moves depend on, and perhaps more.
    near: Near,
    /// Whether one of them has several roots.
    merges: bool,
}

impl Moves {
    /// What is offered at all nodes of a state.
    pub(super) fn of(offer: Offer) -> Moves {
        let mut all = Moves { blocked: offer.blocked, ..Moves::default() };
        all.add(offer.moves);
        all.asked.replace(offer.asked);
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Move>> + Clone {
        self.chunks.iter().flat_map(|chunk| &chunk.moves)
    }

    /// Those that were found around the latest move, or that it has made possible. All others are
    /// the very ones of the state before.
    pub fn enabled(&self) -> impl Iterator<Item = &Arc<Move>> {
        self.iter().rev().take(self.new).collect::<Vec<_>>().into_iter().rev()
    }

    /// Those of the state before that are still possible.
    pub fn known(&self) -> impl Iterator<Item = &Arc<Move>> {
        self.iter().take(self.len - self.new)
    }

    /// Whether this very move is among them.
    pub fn contains(&self, step: &Arc<Move>) -> bool {
        let near = step.near();
        self.chunks.iter().any(|chunk| chunk.near.meets(near) && chunk.moves.iter().any(|one| Arc::ptr_eq(one, step)))
    }

    /// Leaves out all moves but these.
    pub fn retain(&mut self, mut keep: impl FnMut(&Arc<Move>) -> bool) {
        let new_from = self.len - self.new;
        let (mut at, mut new) = (0, 0);
        let (blocked, asked) = (std::mem::take(&mut self.blocked), std::mem::take(&mut self.asked));
        let mut kept = Moves { blocked, asked, ..Moves::default() };
        for chunk in &self.chunks {
            kept.take_over(chunk, |step| {
                let keeps = keep(step);
                new += usize::from(keeps && at >= new_from);
                at += 1;
                keeps
            });
        }
        *self = Moves { new, ..kept };
    }

    /// Matches that would close a cycle.
    pub(super) fn blocked(&self) -> &[Arc<Move>] {
        &self.blocked
    }

    /// What was asked to find them.
    pub(super) fn asked(&self) -> &Inquiries {
        &self.asked
    }

    /// The same, to be corrected.
    pub(super) fn asked_mut(&mut self) -> &mut Inquiries {
        &mut self.asked
    }

    /// Those that depend on one of these nodes, and perhaps others.
    pub(super) fn near<'m>(&'m self, near: &'m Near) -> impl Iterator<Item = &'m Arc<Move>> {
        self.chunks.iter().filter(|chunk| chunk.near.meets(near)).flat_map(|chunk| &chunk.moves)
    }

    /// Whether one of them has several roots.
    pub(super) fn merges(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.merges)
    }

    /// Those that `keeps` keeps; it is not asked about those that depend on none of the nodes in
    /// `near`, unless they have several roots and `merges` is set.
    pub(super) fn surviving(&self, near: &Near, merges: bool, mut keeps: impl FnMut(&Arc<Move>) -> bool) -> Moves {
        let mut kept = Moves { chunks: Vec::with_capacity(self.chunks.len() + 1), asked: self.asked.clone(), ..Moves::default() };
        for chunk in &self.chunks {
            if chunk.near.meets(near) || merges && chunk.merges {
                kept.take_over(chunk, &mut keeps);
            } else {
                kept.push(chunk.clone());
            }
        }
        kept
    }

    /// Adds what is offered at some nodes.
    pub(super) fn with(mut self, offer: Offer, blocked: Vec<Arc<Move>>) -> Moves {
        self.new = offer.moves.len();
        self.add(offer.moves);
        self.blocked = blocked;
        self.blocked.extend(offer.blocked);
        self.asked.replace(offer.asked);
        self
    }

    fn add(&mut self, moves: Vec<Arc<Move>>) {
        let mut moves = moves.into_iter().peekable();
        while moves.peek().is_some() {
            self.push(Arc::new(Chunk::of(moves.by_ref().take(CHUNK).collect())));
        }
    }

    /// Adds what is left of a chunk.
    fn take_over(&mut self, chunk: &Arc<Chunk>, mut keeps: impl FnMut(&Arc<Move>) -> bool) {
        let Some(first) = chunk.moves.iter().position(|step| !keeps(step)) else { return self.push(chunk.clone()) };
        let rest = chunk.moves[first + 1..].iter().filter(|step| keeps(step));
        let left: Vec<Arc<Move>> = chunk.moves[..first].iter().chain(rest.collect::<Vec<_>>()).cloned().collect();
        if !left.is_empty() {
            self.push(Arc::new(Chunk::of(left)));
        }
    }

    fn push(&mut self, chunk: Arc<Chunk>) {
        self.len += chunk.moves.len();
        if let Some(last) = self.chunks.last_mut()
            && last.moves.len() + chunk.moves.len() <= SMALL
        {
            let moves = last.moves.iter().chain(&chunk.moves).cloned().collect();
            *last = Arc::new(Chunk { moves, near: last.near.and(&chunk.near), merges: last.merges || chunk.merges });
        } else {
            self.chunks.push(chunk);
        }
    }
}

impl Chunk {
    fn of(moves: Vec<Arc<Move>>) -> Chunk {
        let near = moves.iter().fold(Near::default(), |near, step| near.and(step.near()));
        let merges = moves.iter().any(|step| step.is_merge());
        Chunk { moves, near, merges }
    }
}

impl<'m> IntoIterator for &'m Moves {
    type Item = &'m Arc<Move>;
    type IntoIter = Box<dyn Iterator<Item = &'m Arc<Move>> + 'm>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
