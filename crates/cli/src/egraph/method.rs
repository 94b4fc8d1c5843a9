//! `--method`: the methods by their names.

use regraft_egraph::{Exact, Extractor, GreedyDag, Shared, Tree};
use serde::Serialize;

/// Values of `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The cheapest trees: what is shared counts as often as it occurs (egg's default)
    Tree,
    /// Costs that know of sharing, approximately (PACT 2024, Algorithm 2)
    Shared,
    /// Sets of nodes, improved by local search
    GreedyDag,
    /// The cheapest choice, or the cheapest found in time with a bound (presolve, branch and bound)
    Ilp,
}

impl Method {
    /// All of them, fastest first.
    pub const ALL: [Method; 4] = [Method::Tree, Method::Shared, Method::GreedyDag, Method::Ilp];

    /// The method.
    pub fn extractor(self) -> &'static dyn Extractor {
        match self {
            Method::Tree => &Tree,
            Method::Shared => &Shared,
            Method::GreedyDag => &GreedyDag { local_search: true },
            Method::Ilp => &Exact,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.extractor().name()
    }
}
