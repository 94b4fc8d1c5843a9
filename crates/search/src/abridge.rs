//! The moves of a long sequence that save most with a few of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::FxHashSet;

use crate::engine::{Engine, Matcher, Move};
use crate::strategy::{Outcome, Script, Strategy};
use crate::transfer::{Current, Names, Recorded, pass_over};
use regraft_ir::Budget;

/// At most so many steps of what another search finds.
pub(crate) struct Abridged<'a> {
    /// The other search.
    pub(crate) whole: &'a dyn Strategy,
    /// Most steps.
    pub(crate) steps: usize,
}

impl Strategy for Abridged<'_> {
    fn name(&self) -> &'static str {
        "abridged"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let Outcome { mut scripts, visited, complete } = self.whole.search(engine, matcher, budget);
        let best = scripts.swap_remove(0);
        let best = if best.moves.len() <= self.steps { best } else { abridge((engine, matcher), budget, &best.moves, self.steps) };
        Outcome { scripts: vec![best], visited, complete: complete && !budget.exhausted() }
    }
}

/// At most `most` of the moves of a sequence from the engine's current state.
///
/// A move comes with those that it builds on. What saves most per move is taken, again and again,
/// in the state that those before have led to. A descent with a limited number of steps spends them
/// on what saves at once, and has none left for what takes a few and saves more.
fn abridge((engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>), budget: &mut dyn Budget, moves: &[Arc<Move>], most: usize) -> Script {
    let start = engine.depth();
    let recorded = Recorded::all(engine, moves);
    let needs = needs(&recorded);
    let mut part = Part { current: Current::of(engine, matcher), made: vec![None; moves.len()], moves: Vec::new() };
    // What each saves per move, at the latest count: moves elsewhere hardly change that.
    let mut queue: BinaryHeap<(Ns, Reverse<usize>)> = (0..moves.len()).map(|at| (Ns::MAX, Reverse(at))).collect();
    while let Some((_, Reverse(at))) = queue.pop() {
        if part.moves.len() == most || budget.exhausted() {
            break;
        }
        let more: Vec<usize> = needs[at].iter().copied().filter(|need| part.made[*need].is_none()).collect();
        if more.is_empty() || part.moves.len() + more.len() > most {
            continue;
        }
        let (depth, cost) = (engine.depth(), engine.cost());
        let Some(longer) = part.with((engine, matcher), &recorded, &more) else { continue };
        let saved = cost.saturating_sub(engine.cost()) / more.len() as Ns;
        if saved > 0 && queue.peek().is_none_or(|(next, _)| saved >= *next) {
            part = longer;
            // What builds on it takes fewer moves now.
            let builds = |later: &usize| part.made[*later].is_none() && needs[*later].iter().any(|need| more.contains(need));
            queue.extend((0..moves.len()).filter(builds).map(|later| (Ns::MAX, Reverse(later))));
            continue;
        }
        engine.rewind(depth);
        if saved > 0 {
            queue.push((saved, Reverse(at)));
        }
    }
    let found = Script { moves: part.moves, cost: engine.cost(), key: engine.key() };
    engine.rewind(start);
    found
}

/// Some moves of a sequence, applied.
#[derive(Clone)]
struct Part {
    /// The moves of the state that they lead to.
    current: Current,
    /// For each move of the sequence, the nodes that it made here, if it was applied.
    made: Vec<Option<Vec<NodeId>>>,
    /// The moves applied.
    moves: Vec<Arc<Move>>,
}

impl Part {
    /// This and more of the sequence, applied in its order; `None`, and the engine as it was, if
    /// one of them is not found.
    fn with(&self, (engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>), recorded: &[Recorded], more: &[usize]) -> Option<Part> {
        let (start, mut part, mut names) = (engine.depth(), self.clone(), Names::default());
        for (at, one) in recorded.iter().enumerate().take_while(|(at, _)| more.last().is_some_and(|last| at <= last)) {
            if let Some(made) = &part.made[at] {
                names.extend(one.created.iter().copied().zip(made.iter().copied()));
            } else if !more.contains(&at) {
                pass_over(one, &mut names);
            } else if let Some(step) = part.current.follow((engine, matcher), one, &mut names) {
                part.made[at] = Some(engine.created().to_vec());
                part.moves.push(step);
            } else {
                engine.rewind(start);
                return None;
            }
        }
        Some(part)
    }
}

/// For each move, those before it that made nodes of its source, directly or by way of others, and
/// itself, in order.
fn needs(recorded: &[Recorded]) -> Vec<Vec<usize>> {
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(recorded.len());
    for (at, one) in recorded.iter().enumerate() {
        // Ids are used again: the latest move that made a node counts.
        let mut all: FxHashSet<usize> = FxHashSet::from_iter([at]);
        for id in &one.step.nodes {
            let maker = (0..at).rev().find(|before| recorded[*before].created.contains(id));
            all.extend(maker.into_iter().flat_map(|maker| needs[maker].iter().copied()));
        }
        let mut all: Vec<usize> = all.into_iter().collect();
        all.sort_unstable();
        needs.push(all);
    }
    needs
}
