//! `--search`: the searches by their names.

use regraft::optimize::SearchKind;

/// Values of `--search`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Search {
    /// Steepest descent, then backtracking around its result.
    Auto,
    /// Steepest descent with a short look-ahead.
    Greedy,
    /// Cost-based backtracking from the input (TASO).
    Backtrack,
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
}

/// Longest sequence of an exhaustive search, as in the paper on OCGGS.
const STEPS: usize = 10;

impl Search {
    /// The strategy, with sequences of at most so many rewrites.
    pub fn kind(self, steps: Option<u16>) -> SearchKind {
        let limit = steps.map(usize::from);
        let steps = limit.unwrap_or(STEPS);
        match self {
            Search::Auto => SearchKind::Auto,
            Search::Greedy => SearchKind::Greedy,
            Search::Backtrack => SearchKind::Backtrack,
            Search::Enumerate => SearchKind::Enumerate { steps },
            Search::Prune => SearchKind::Prune { steps },
            Search::Dpp => SearchKind::Dpp { steps },
            Search::SleepSets => SearchKind::SleepSets { steps },
            Search::Table => SearchKind::Table { steps },
            Search::Exact => SearchKind::Exact { steps: limit },
            Search::Sample => SearchKind::Sample { steps: limit },
        }
    }

    /// Whether sequences can be limited.
    pub fn takes_steps(self) -> bool {
        !matches!(self, Search::Auto | Search::Greedy | Search::Backtrack)
    }
}
