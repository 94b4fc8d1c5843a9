//! `Best`: the cheapest states that a search has found.

use std::sync::Arc;

use regraft_cost::Ns;

use crate::engine::Move;
use crate::strategy::Script;

/// Scripts kept unless a strategy says otherwise.
const KEEP: usize = 4;

/// The cheapest states found, best first, each once; of equally cheap ones, those found first.
pub(crate) struct Best {
    scripts: Vec<Script>,
    keep: usize,
}

impl From<Script> for Best {
    fn from(start: Script) -> Best {
        Best { scripts: vec![start], keep: KEEP }
    }
}

impl Best {
    /// Keeps so many, at least one.
    pub(crate) fn keeping(self, keep: usize) -> Best {
        Best { keep: keep.max(1), ..self }
    }

    /// The cost of the cheapest state.
    pub(crate) fn cost(&self) -> Ns {
        self.scripts[0].cost
    }

    /// Keeps a state if it is among the cheapest.
    pub(crate) fn offer(&mut self, cost: Ns, key: u128, moves: impl FnOnce() -> Vec<Arc<Move>>) {
        let at = self.scripts.partition_point(|known| known.cost <= cost);
        // Equal keys have equal costs.
        if at < self.keep && !self.scripts[..at].iter().rev().take_while(|known| known.cost == cost).any(|known| known.key == key) {
            self.scripts.insert(at, Script { moves: moves(), cost, key });
            self.scripts.truncate(self.keep);
        }
    }

    /// The scripts, best first.
    pub(crate) fn into_scripts(self) -> Vec<Script> {
        self.scripts
    }
}
