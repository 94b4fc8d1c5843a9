//! `Descents`: the best of three fast searches.

use std::sync::Arc;

use crate::abridge::Abridged;
use crate::beside::Beside;
use crate::engine::{Engine, Matcher, Move};
use crate::greedy::Greedy;
use crate::metaflow::MetaFlow;
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// The best of three searches, each in seconds:
///
/// * a descent that always takes what saves most;
/// * one that makes no pieces before nothing else saves: the first may put a convolution into a
///   fast form that keeps it from being merged with its neighbours;
/// * the search of parts, which follows long sequences that pay in the end, and a descent from its
///   result.
///
/// With a limited number of steps, also the best steps of what the first and the third find without
/// the limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descents {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// Whether the third runs in a thread of its own, beside the other two, which take as long.
    /// What is found before a budget ends the search is then not the same in every run.
    pub threaded: bool,
}

impl Strategy for Descents {
    fn name(&self) -> &'static str {
        "descents"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let greedy = Greedy { steps: self.steps, ..Greedy::default() };
        let pieces_last = Greedy { pieces_last: true, ..greedy };
        let parts = Parts { steps: self.steps };
        let mut all = Outcome::of(Script::here(engine));
        // What one of them left undone, the others may still do, but not without time.
        let mut add = |found: Outcome| {
            all.add(found);
            all.complete
        };
        if self.threaded {
            std::thread::scope(|scope| {
                let beside = Beside::start(scope, &parts, engine, matcher);
                let in_time = add(greedy.search(engine, matcher, budget)) && add(pieces_last.search(engine, matcher, budget));
                let mut found = beside.wait(matcher, &mut || !in_time || budget.exhausted());
                found.scripts.iter_mut().for_each(|script| script.retrace(engine));
                add(found);
            });
        } else {
            let members: [&dyn Strategy; 3] = [&greedy, &pieces_last, &parts];
            members.into_iter().all(|member| add(member.search(engine, matcher, budget)));
        }
        if let Some(steps) = self.steps {
            let wholes: [&dyn Strategy; 2] = [&Greedy::default(), &Parts { steps: None }];
            wholes.into_iter().all(|whole| add(Abridged { whole, steps }.search(engine, matcher, budget)));
        }
        all
    }
}

/// The search of parts, and a descent from its result.
struct Parts {
    steps: Option<usize>,
}

impl Strategy for Parts {
    fn name(&self) -> &'static str {
        "parts"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let (start, steps) = (engine.depth(), self.steps);
        let Outcome { scripts, visited, .. } = MetaFlow { steps, ..MetaFlow::default() }.search(engine, matcher, budget);
        let moves: Vec<Arc<Move>> = scripts.into_iter().next().map_or_else(Vec::new, |script| script.moves);
        let left = steps.map(|most| most.saturating_sub(moves.len()));
        moves.iter().for_each(|step| engine.apply(step));
        // Without looking ahead: that took place in the parts.
        let mut found = Greedy { steps: left, depth: 1, ..Greedy::default() }.search(engine, matcher, budget);
        engine.rewind(start);
        for script in &mut found.scripts {
            script.moves.splice(0..0, moves.iter().cloned());
        }
        Outcome { visited: visited + found.visited, ..found }
    }
}
