//! Cost-based backtracking search (TASO, SOSP 2019, section 5), with its published defects fixed:
//! the start state is a candidate from the beginning, every state has a collision-resistant key,
//! and a re-created node costs what the original did.

use crate::best::Best;
use crate::best_first::BestFirst;
use crate::engine::{Engine, Matcher};
use crate::greedy::Greedy;
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// Best-first search over states whose cost stays below `alpha` times the best cost so far.
#[derive(Clone, Copy, Debug)]
pub struct Backtrack {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States above `alpha` times the best cost are dropped.
    pub alpha: f64,
    /// Maximum number of states expanded.
    pub expansions: usize,
    /// Maximum number of scripts returned.
    pub keep: usize,
    /// Starts from the result of steepest descent rather than from the input: whole networks have
    /// hundreds of independent matches, and best-first search alone would spend its budget on their
    /// combinations.
    pub descend_first: bool,
}

impl Default for Backtrack {
    fn default() -> Backtrack {
        Backtrack { steps: None, alpha: 1.05, expansions: 60, keep: 4, descend_first: true }
    }
}

impl Strategy for Backtrack {
    fn name(&self) -> &'static str {
        "backtrack"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let start = engine.depth();
        let mut best = Best::from(Script::here(engine)).keeping(self.keep);
        let mut prefix = Vec::new();
        let mut visited = 0;
        if self.descend_first {
            let descent = Greedy { steps: self.steps, ..Greedy::default() }.search(engine, matcher, budget);
            visited += descent.visited;
            for script in descent.scripts {
                prefix = script.moves.clone();
                best.offer(script.cost, script.key, || script.moves);
            }
            prefix.iter().for_each(|m| engine.apply(m));
        }
        let steps = self.steps.map_or(usize::MAX, |most| most.saturating_sub(prefix.len()));
        let search = BestFirst { alpha: self.alpha, expansions: self.expansions, steps, admits: &|_, _| true };
        let (more, complete) = search.search(engine, matcher, budget, &prefix, &mut best);
        engine.rewind(start);
        Outcome { scripts: best.into_scripts(), visited: visited + more, complete }
    }
}
