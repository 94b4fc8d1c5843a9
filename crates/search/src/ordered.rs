//! Sequences of moves in one order: what Algorithms 1 and 2 of OCGGS share.
//!
//! An original node has the label `(0, id)`, the node number `j` that step `i` made has `(i, j)`,
//! and the key of a move is the largest label of the nodes that it takes away (OCGGS, PVLDB 13(11)
//! 2020, section 4: depth, then index). Of all permutations of a sequence, the one with rising keys
//! is tried.
//!
//! That this loses nothing (Theorem 4) holds for monotone moves alone. So only runs of them are
//! ordered; any other move ends a run, and what is there then counts as original.

use regraft_ir::NodeId;
use regraft_rules::{Library, reaches};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::engine::{Engine, Move, Moves};
use crate::traversal::Traversal;

/// Which moves are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those of monotone rules that take their whole source away and make all of their target anew.
    /// If all rules are monotone, nothing is lost. Among others, a graph may be, where a target
    /// finds a twin to reuse in one of two orders only.
    #[default]
    Monotone,
    /// All, as published: graphs are lost where a rewrite enables another one without feeding it.
    Published,
}

/// Where a node comes from: a step, or 0 for the start of the run; and a number within.
type Label = (usize, usize);

/// A run of ordered moves.
#[derive(Clone, Copy)]
struct Run {
    /// Length of the path where it began.
    start: usize,
    /// The key of its latest move.
    last: Option<Label>,
}

/// Rules and what they take away, in no particular order.
type Places = FxHashSet<(usize, SmallVec<[NodeId; 6]>)>;

fn place(step: &Move) -> (usize, SmallVec<[NodeId; 6]>) {
    let mut nodes = step.nodes.clone();
    nodes.sort_unstable();
    (step.rule, nodes)
}

/// A search of ordered sequences.
pub(crate) struct Ordered {
    order: Order,
    /// After a move, only those of the state before are tried that are left, and those that take
    /// away what it made (OCGGS, Theorem 5).
    reuses_children: bool,
    monotone: Vec<bool>,
    labels: FxHashMap<NodeId, Label>,
}

impl Ordered {
    pub(crate) fn new(order: Order, reuses_children: bool, library: &Library) -> Ordered {
        let monotone = library.rules().iter().map(|rule| reaches(rule).is_empty()).collect();
        Ordered { order, reuses_children, monotone, labels: FxHashMap::default() }
    }

    /// Explores the start state, with these moves.
    pub(crate) fn explore(&mut self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves) {
        self.from(traversal, moves, &Places::default(), 0, Run { start: 0, last: None });
    }

    /// Explores a state with these moves, `before` being those of the state before that could only
    /// make all anew.
    fn from(&mut self, traversal: &mut Traversal<'_, '_, '_>, moves: &Moves, before: &Places, depth: usize, run: Run) {
        if traversal.left() == 0 {
            return;
        }
        // By what they take away: that one operand is another value now matters to none. Of several
        // that take away the same, it is not told which is which.
        let mut anew: Places = moves.iter().filter(|m| m.reused().len() == 0).map(|m| place(m)).collect();
        moves.iter().filter(|m| m.reused().len() > 0).for_each(|m| {
            anew.remove(&place(m));
        });
        for step in moves {
            let mut next_run = run;
            let admits = |engine: &Engine<'_>| {
                if !self.is_ordered(engine, step) {
                    next_run = Run { start: depth + 1, last: None };
                    return true;
                }
                let key = self.key(engine, step, run);
                next_run.last = Some(key);
                // Where it would have met a twin of its target, the other order ends elsewhere.
                let could_come_first = self.order == Order::Published || before.contains(&place(step));
                run.last.is_none_or(|last| last < key || !could_come_first)
            };
            match traversal.enter_if(step, admits) {
                None => return,
                Some(false) => continue,
                Some(true) => {}
            }
            if traversal.left() > 0 {
                let created: Vec<NodeId> = traversal.engine.created().to_vec();
                self.labels.extend(created.iter().enumerate().map(|(at, id)| (*id, (depth + 1, at))));
                let mut next = traversal.next_moves(moves);
                if self.reuses_children && next_run.last.is_some() {
                    let known: Places = moves.iter().map(|m| place(m)).collect();
                    let is_bound = |m: &Move| self.order == Order::Published || self.monotone[m.rule];
                    let feeds = |m: &Move| m.nodes.iter().any(|id| created.contains(id));
                    next.retain(|m| known.contains(&place(m)) || !is_bound(m) || feeds(m));
                }
                self.from(traversal, &next, &anew, depth + 1, next_run);
                self.labels.retain(|id, _| !created.contains(id));
            }
            traversal.leave();
        }
    }

    /// Whether the latest move takes part in the order.
    fn is_ordered(&self, engine: &Engine<'_>, step: &Move) -> bool {
        let takes_all = || step.nodes.iter().all(|id| engine.graph().get(*id).is_none());
        self.order == Order::Published || self.monotone[step.rule] && takes_all() && step.reused().len() == 0
    }

    /// The key of the latest move.
    fn key(&self, engine: &Engine<'_>, step: &Move, run: Run) -> Label {
        let label = |id: NodeId| match self.labels.get(&id) {
            Some(label) if label.0 > run.start => *label,
            _ => (0, id.0 as usize),
        };
        // A move that takes nothing away counts where its source is.
        let taken = engine.removed().map(label).max();
        taken.or_else(|| step.nodes.iter().map(|id| label(*id)).max()).unwrap_or_default()
    }
}
