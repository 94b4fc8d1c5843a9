//! `--search`: the searches by their names.

use std::path::Path;

use regraft::error::Failure;
use regraft::optimize::{Agent, SearchKind};

/// Values of `--search`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Search {
    /// The best of descents, exact, and saturate with small e-graphs.
    Auto,
    /// The best of greedy, a descent that makes no fast convolutions before nothing else saves, and
    /// metaflow.
    Descents,
    /// Steepest descent with a short look-ahead.
    Greedy,
    /// Cost-based backtracking from the input (TASO).
    Backtrack,
    /// The same in parts of the graph, then across their borders (MetaFlow).
    Metaflow,
    /// All sequences of rewrites (OCGGS); for small graphs.
    Enumerate,
    /// The same, but for permutations (OCGGS, Algorithm 1).
    Prune,
    /// The same, where a state takes over the rewrites of the one before (OCGGS, Algorithm 2).
    Dpp,
    /// All sequences, of the orders of independent rewrites one.
    SleepSets,
    /// All graphs that rewrites lead to, each explored once.
    Table,
    /// Region by region, each exactly as far as its states can be visited.
    Exact,
    /// A beam, half of it for rewrites that cost something before they pay (OCGGS, Algorithm 3).
    Sample,
    /// All rewrites at once in an e-graph, and what is cheapest in it (TENSAT).
    Saturate,
    /// One rule after the other in an e-graph, chosen by Monte Carlo tree search (PACT 2024).
    Mcts,
    /// What a policy finds most promising first, which was trained on blocks of other networks.
    Prior,
    /// Rewrite after rewrite, each decided by simulations that this policy guides (Gumbel
    /// AlphaZero).
    Gumbel,
    /// Exact, where this policy decides between rewrites to equally cheap graphs.
    GuidedExact,
    /// Episodes of random rewrites: what learning must be better than.
    Random,
    /// Rollouts of an agent that was trained on this very model, which --agent names (X-RLflow).
    Xrlflow,
}

impl Search {
    /// Fails if an agent is given and none of the searches has one.
    ///
    /// # Errors
    ///
    /// As it says.
    pub fn expect_agent(searches: &[Search], agent: Option<&Path>) -> Result<(), Failure> {
        match agent.filter(|_| !searches.iter().any(|search| matches!(search, Search::Xrlflow))) {
            None => Ok(()),
            Some(path) => {
                Err(Failure::new(format!("{}: no agent takes part in this search", path.display())).hint("--agent is for --search xrlflow"))
            }
        }
    }

    /// The strategy, with sequences of at most so many rewrites, and with this agent if it needs
    /// one.
    ///
    /// # Errors
    ///
    /// If it needs one, and there is none or it cannot be read.
    pub fn limited(self, steps: Option<u16>, agent: Option<&Path>) -> Result<regraft::optimize::Search, Failure> {
        let kind = match self {
            Search::Auto => SearchKind::Auto,
            Search::Descents => SearchKind::Descents,
            Search::Greedy => SearchKind::Greedy,
            Search::Backtrack => SearchKind::Backtrack,
            Search::Metaflow => SearchKind::MetaFlow,
            Search::Enumerate => SearchKind::Enumerate,
            Search::Prune => SearchKind::Prune,
            Search::Dpp => SearchKind::Dpp,
            Search::SleepSets => SearchKind::SleepSets,
            Search::Table => SearchKind::Table,
            Search::Exact => SearchKind::Exact,
            Search::Sample => SearchKind::Sample,
            Search::Saturate => SearchKind::Saturate,
            Search::Mcts => SearchKind::Mcts,
            Search::Prior => SearchKind::Prior,
            Search::Gumbel => SearchKind::Gumbel,
            Search::GuidedExact => SearchKind::GuidedExact,
            Search::Random => SearchKind::Random,
            Search::Xrlflow => {
                let missing = || {
                    Failure::new("--search xrlflow needs an agent that was trained on this model")
                        .hint("`regraft policy xrlflow MODEL -o agent.bin` trains one; then --agent agent.bin")
                };
                SearchKind::XRLflow(Agent::read(agent.ok_or_else(missing)?)?)
            }
        };
        Ok(regraft::optimize::Search { kind, steps: steps.map(usize::from) })
    }
}
