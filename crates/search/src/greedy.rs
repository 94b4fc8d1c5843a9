//! Steepest descent in sweeps, with a short look-ahead over steps that do not pay off at once.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::Chain;
use crate::engine::{Engine, Matcher, Move, Moves, all_moves, next_moves};
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// A move that makes so many nodes makes a piece.
pub(crate) const PIECE: usize = 12;

/// Applies the moves that save, largest saving first, until none does; before giving up, tries
/// sequences of up to `depth` moves, each building on the one before, where only the whole must
/// save.
///
/// A sweep applies all saving moves that do not touch each other; a sequence that leads nowhere is
/// not retried at similar places, so repeated blocks cost one look-ahead. Short sequences are tried
/// everywhere before longer ones, and of those of two moves that want the same nodes, the one that
/// saves most is taken. Then come chains, in which a rule that merges two nodes goes on to merge
/// what it made with a third, and so on. What one move makes of many nodes, such as a fast
/// convolution, is a piece: a sequence does not begin inside of it, but at its border it may.
#[derive(Clone, Copy, Debug)]
pub struct Greedy {
    /// Most moves in all; any number, if `None`.
    pub steps: Option<usize>,
    /// Longest sequence that may pay off only as a whole; 1 is plain steepest descent.
    pub depth: usize,
    /// Along the way, a sequence may raise the cost by at most this fraction of the current cost.
    pub slack: f64,
    /// Follow-ups tried after each step of a sequence.
    pub width: usize,
    /// States visited by sequences of more than two moves, in all: there are many, and few pay. As
    /// many again by chains, which may be longer than `depth`.
    pub deep: u64,
    /// Makes no pieces before nothing else saves: what is part of a piece can no longer be merged
    /// with anything.
    pub pieces_last: bool,
    /// Leaves pieces as they were made: only what is not inside of one is rewritten.
    pub keeps_pieces: bool,
}

/// For each node of a piece, which one; nodes that made room for others may still be listed.
pub(crate) type Pieces = FxHashMap<NodeId, usize>;

impl Default for Greedy {
    fn default() -> Greedy {
        Greedy { steps: None, depth: 3, slack: 0.05, width: 64, deep: 10_000, pieces_last: false, keeps_pieces: false }
    }
}

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.search_beside(Pieces::default(), engine, matcher, budget)
    }
}

impl Greedy {
    /// Searches where moves made these pieces before.
    pub(crate) fn search_beside(
        &self,
        pieces: Pieces,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
    ) -> Outcome {
        let start = engine.depth();
        let moves = all_moves(engine, matcher);
        let mut descent = Descent {
            greedy: self,
            moves,
            script: Vec::new(),
            seen: FxHashSet::from_iter([engine.key()]),
            makes_pieces: !self.pieces_last,
            barren: FxHashMap::default(),
            barren_chains: FxHashSet::default(),
            pieces,
            visited: 1,
            deep: 0,
            chained: 0,
        };
        let mut complete = true;
        while descent.left() > 0 {
            if budget.exhausted() {
                complete = false;
                break;
            }
            if descent.sweep(engine, matcher) {
                continue;
            }
            match descent.look_ahead(engine, matcher, budget) {
                Some(true) => {}
                Some(false) if !descent.makes_pieces => {
                    descent.makes_pieces = true;
                    descent.barren.clear();
                    descent.barren_chains.clear();
                }
                Some(false) => break,
                None => {
                    complete = false;
                    break;
                }
            }
        }
        let found = Script { moves: descent.script, cost: engine.cost(), key: engine.key() };
        engine.rewind(start);
        Outcome { scripts: vec![found], visited: descent.visited, complete }
    }
}

struct Descent<'a> {
    greedy: &'a Greedy,
    moves: Moves,
    script: Vec<Arc<Move>>,
    seen: FxHashSet<u128>,
    /// Whether moves may make pieces yet.
    makes_pieces: bool,
    /// Kinds of places where a look-ahead found nothing, and how far it looked.
    barren: FxHashMap<u64, usize>,
    /// Kinds of places where a chain that begins there does not save.
    barren_chains: FxHashSet<u64>,
    pieces: Pieces,
    visited: u64,
    /// Those of sequences of more than two moves.
    deep: u64,
    /// Those of chains.
    chained: u64,
}

impl Descent<'_> {
    /// How many more moves may follow.
    fn left(&self) -> usize {
        self.greedy.steps.map_or(usize::MAX, |most| most.saturating_sub(self.script.len()))
    }

    fn commit(&mut self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, step: &Arc<Move>) {
        let around = self.piece(step);
        engine.apply(step);
        note_piece(&mut self.pieces, around, engine);
        self.moves = next_moves(engine, matcher, &self.moves);
        self.script.push(step.clone());
        self.seen.insert(engine.key());
    }

    /// Whether a move may be made yet.
    fn admits(&self, step: &Move) -> bool {
        (self.makes_pieces || step.makes() < PIECE) && !(self.greedy.keeps_pieces && self.piece(step).is_some())
    }

    /// The piece that a move is inside of, if it is.
    fn piece(&self, step: &Move) -> Option<usize> {
        let mut pieces = step.nodes.iter().map(|id| self.pieces.get(id).copied());
        let first = pieces.next()??;
        pieces.all(|piece| piece == Some(first)).then_some(first)
    }

    /// Applies every move that saves, largest saving first; false if there is none.
    fn sweep(&mut self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> bool {
        let before = engine.cost();
        let mut saving: Vec<(Ns, Arc<Move>)> = Vec::new();
        let admitted: Vec<Arc<Move>> = self.moves.iter().filter(|step| self.admits(step)).cloned().collect();
        for step in &admitted {
            engine.apply(step);
            self.visited += 1;
            if engine.cost() < before && !self.seen.contains(&engine.key()) {
                saving.push((engine.cost(), step.clone()));
            }
            engine.undo();
        }
        saving.sort_by_key(|(cost, _)| *cost);
        let mut progress = false;
        for (_, step) in saving {
            if self.left() == 0 {
                break;
            }
            // If an earlier move of this sweep touched this one, it is no longer in the list.
            if !self.moves.contains(&step) {
                continue;
            }
            let before = engine.cost();
            engine.apply(&step);
            let worth = engine.cost() < before && !self.seen.contains(&engine.key());
            engine.undo();
            if worth {
                self.commit(engine, matcher, &step);
                progress = true;
            }
        }
        progress
    }

    /// Applies the first sequence found that saves, the shortest first; `None` if the budget runs
    /// out.
    fn look_ahead(&mut self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Option<bool> {
        let before = engine.cost();
        let limit = before.saturating_add((before as f64 * self.greedy.slack) as Ns);
        let moves = self.moves.clone();
        let starts: Vec<&Arc<Move>> = moves.iter().filter(|step| self.admits(step) && self.piece(step).is_none()).collect();
        for depth in 2..=self.greedy.depth.min(self.left()) {
            if depth == 3 && self.chain(engine, matcher, &starts, budget)? {
                return Some(true);
            }
            for step in &starts {
                if budget.exhausted() {
                    return None;
                }
                if depth > 2 && self.deep >= self.greedy.deep {
                    return Some(false);
                }
                let kind = engine.kind_of(step);
                if self.barren.get(&kind).is_some_and(|looked| *looked >= depth) {
                    continue;
                }
                let (mut path, visited) = (vec![Arc::clone(step)], self.visited);
                let pays = self.descend(engine, matcher, &mut path, &moves, depth, (before, limit));
                if depth > 2 {
                    self.deep += self.visited - visited;
                }
                if pays {
                    if depth == 2 {
                        path = self.best_rival(engine, matcher, path, &starts, &moves, limit);
                    }
                    for step in path {
                        self.commit(engine, matcher, &step);
                    }
                    return Some(true);
                }
                self.barren.insert(kind, depth);
            }
        }
        Some(false)
    }

    /// Applies the first chain of merges found that saves; `None` if the budget runs out.
    fn chain(
        &mut self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        starts: &[&Arc<Move>],
        budget: &mut dyn Budget,
    ) -> Option<bool> {
        let before = engine.cost();
        let moves = self.moves.clone();
        for step in starts.iter().filter(|step| step.is_merge()) {
            if budget.exhausted() {
                return None;
            }
            if self.chained >= self.greedy.deep {
                break;
            }
            let kind = engine.kind_of(step);
            if self.barren_chains.contains(&kind) {
                continue;
            }
            let chain = Chain::from(step, &moves, |step| self.admits(step), engine, matcher);
            self.visited += chain.visited;
            self.chained += chain.visited;
            if chain.cost < before && chain.moves.len() <= self.left() {
                for step in chain.moves {
                    self.commit(engine, matcher, &step);
                }
                return Some(true);
            }
            self.barren_chains.insert(kind);
        }
        Some(false)
    }

    /// Of the sequences of two whose first move wants nodes of the first one's source as well, the
    /// one that saves most: the others are lost with it.
    fn best_rival(
        &mut self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        found: Vec<Arc<Move>>,
        starts: &[&Arc<Move>],
        moves: &Moves,
        limit: Ns,
    ) -> Vec<Arc<Move>> {
        let Some(wanted) = found.first().map(|step| step.nodes.clone()) else { return found };
        let depth = engine.depth();
        found.iter().for_each(|step| engine.apply(step));
        let mut best = (engine.cost(), found);
        engine.rewind(depth);
        for step in starts.iter().filter(|step| step.nodes.iter().any(|id| wanted.contains(id))) {
            engine.apply(step);
            self.visited += 1;
            if engine.cost() <= limit {
                let next = next_moves(engine, matcher, moves);
                for second in self.follow_ups(engine, &next, false) {
                    engine.apply(&second);
                    self.visited += 1;
                    if engine.cost() < best.0 && !self.seen.contains(&engine.key()) {
                        best = (engine.cost(), vec![Arc::clone(step), second.clone()]);
                    }
                    engine.undo();
                }
            }
            engine.undo();
        }
        best.1
    }

    /// Applies the last move of `path` and extends it, up to `depth` moves, until the whole saves;
    /// restores the engine either way.
    fn descend(
        &mut self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        path: &mut Vec<Arc<Move>>,
        moves: &Moves,
        depth: usize,
        (before, limit): (Ns, Ns),
    ) -> bool {
        let Some(step) = path.last().cloned() else { return false };
        engine.apply(&step);
        self.visited += 1;
        let cost = engine.cost();
        let mut saved = path.len() > 1 && cost < before && !self.seen.contains(&engine.key());
        if !saved && path.len() < depth && cost <= limit {
            let next = next_moves(engine, matcher, moves);
            let follow = self.follow_ups(engine, &next, path.len() + 2 <= depth);
            for step in follow {
                path.push(step);
                if self.descend(engine, matcher, path, &next, depth, (before, limit)) {
                    saved = true;
                    break;
                }
                path.pop();
            }
        }
        engine.undo();
        saved
    }

    /// What may follow the latest step.
    fn follow_ups(&self, engine: &Engine<'_>, next: &Moves, with_siblings: bool) -> Vec<Arc<Move>> {
        follow_ups(engine, next, with_siblings).filter(|step| self.admits(step)).take(self.greedy.width).cloned().collect()
    }
}

/// Notes of which piece the nodes are that the latest move made: of the one around it, or a new
/// one.
pub(crate) fn note_piece(pieces: &mut Pieces, around: Option<usize>, engine: &Engine<'_>) {
    let piece = around.or_else(|| (engine.created().len() >= PIECE).then(|| engine.depth()));
    // Ids are used again.
    for id in engine.created() {
        match piece {
            Some(piece) => pieces.insert(*id, piece),
            None => pieces.remove(id),
        };
    }
}

/// What may follow the latest move, of the moves after it: those that it enabled; and, if another
/// may come after it, those at other operands of the nodes that read what it made, since a third
/// may need both, such as one that merges two branches once both are convolutions. Any other could
/// as well come first.
pub(crate) fn follow_ups<'m>(engine: &Engine<'_>, next: &'m Moves, with_siblings: bool) -> impl Iterator<Item = &'m Arc<Move>> {
    let graph = engine.graph();
    let readers = engine.created().iter().flat_map(|id| &graph.node(*id).users);
    let siblings: FxHashSet<NodeId> = if with_siblings {
        readers.flat_map(|(reader, _)| &graph.node(*reader).inputs).map(|value| value.node).filter(|id| !graph.node(*id).constant).collect()
    } else {
        FxHashSet::default()
    };
    let beside = next.known().filter(move |step| step.nodes.iter().any(|id| siblings.contains(id)));
    next.enabled().chain(beside)
}
