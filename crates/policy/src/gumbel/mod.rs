//! `Gumbel`: which move to take is decided by simulations that a policy guides.

mod searching;
mod table;

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::Budget;
use regraft_search::{Engine, Matcher, Move, Outcome, Strategy};

use crate::guide::Guide;
use searching::Searching;

/// Decides move after move as Gumbel AlphaZero does at its root (Danihelka, Guez, Schrittwieser and
/// Silver, "Policy improvement by planning with Gumbel", ICLR 2022): some moves are drawn without
/// replacement, the likely ones more often; sequential halving shares simulations out among them;
/// the move is taken that is best by its draw, its likelihood, and what simulations say of it. Even
/// a few simulations choose better, on average, than the policy alone. Below the first state, moves
/// are chosen such that visits match the improved policy.
///
/// As published, but for this:
/// * nobody answers: what a state is worth is a mixture of the best and the mean of what was found
///   below;
/// * many ways lead to one state: all simulations share one table of states, and none comes back to
///   a state that it came from;
/// * the result is the cheapest state seen, whichever moves were decided on: whenever a simulation
///   has found one, the search goes on from there;
/// * such a series of decisions ends when nothing cheaper is found for some time, and another
///   begins at the most promising state at which none did.
#[derive(Clone, Copy, Debug)]
pub struct Gumbel<'w> {
    /// What guides it.
    pub guide: Guide<'w>,
    /// States expanded at most.
    pub expansions: usize,
    /// Moves drawn for a decision.
    pub drawn: usize,
    /// Simulations for a decision.
    pub simulations: usize,
    /// Decisions without a cheaper state before it begins elsewhere.
    pub patience: usize,
    /// How values become comparable with likelihoods.
    pub scale: Scale,
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States that cost this many times the cheapest one are left.
    pub rise: f64,
    /// Scripts that are returned.
    pub keep: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// How values of moves become comparable with the logarithms of likelihoods.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// What the number of visits begins with (`c_visit` of the paper).
    pub visits: f64,
    /// What values from 0 to 1 count for each visit (`c_scale`).
    pub values: f64,
    /// Share of the best that was found below a state in what it is worth; the rest is the mean.
    pub best: f64,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { visits: 50.0, values: 1.0, best: 0.5 }
    }
}

/// What a search found, and how it went.
#[derive(Clone, Debug)]
pub struct Course {
    /// The cheapest states.
    pub outcome: Outcome,
    /// The moves from the first state to where each series of decisions ended.
    pub ways: Vec<Vec<Arc<Move>>>,
    /// For each state its visits, and those of all its moves: fewer by one.
    pub visits: Vec<(u32, u32)>,
}

impl<'w> Gumbel<'w> {
    /// With this guide.
    pub fn new(guide: Guide<'w>) -> Gumbel<'w> {
        Gumbel {
            guide,
            expansions: 2000,
            drawn: 2,
            simulations: 4,
            patience: 3,
            scale: Scale::default(),
            steps: None,
            rise: 1.6,
            keep: 4,
            seed: 0,
        }
    }

    /// Searches, and tells the cost of the cheapest state after each expansion.
    pub fn observed(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(usize, Ns),
    ) -> Course {
        Searching::new(self, engine, matcher, budget, observe).run()
    }
}

impl Strategy for Gumbel<'_> {
    fn name(&self) -> &'static str {
        "gumbel"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.observed(engine, matcher, budget, &mut |_, _| {}).outcome
    }
}
