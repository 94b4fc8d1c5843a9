//! What the store keeps from earlier runs for the same model: rewrites that were good, and whether
//! there was more to find.

use regraft_cost::{CostModel, fingerprint};
use regraft_ir::Graph;
use regraft_ir::key::canonical_key;
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Matcher, Script, all_moves, next_moves};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::evaluate::Prices;
use crate::optimize::load::Job;
use crate::optimize::tune::propose::{Proposal, replay};

/// Scripts kept per model.
const KEPT: usize = 3;
/// A run with up to this multiple of an earlier run's budget is not expected to find more.
const SAME_BUDGET: f64 = 2.0;

/// What is kept. It holds for one model at one set of sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningRecord {
    /// Which rules the search used: rewrites that were good under other rules may fall short of the
    /// best under these.
    pub library: u64,
    /// Seconds of the run's budget.
    pub budget: f64,
    /// True if tuning ended because nothing more was found.
    pub settled: bool,
    /// Rewrites that passed the final comparison and the check, best first, as places.
    pub scripts: Vec<Vec<u64>>,
}

impl TuningRecord {
    /// What is known about a job's model under its rules; empty if it was tuned under others.
    pub fn recall(job: &Job, prices: &Prices) -> TuningRecord {
        let (library, record) = (job.rules.library.fingerprint(), prices.recall_tuning(&key(job)));
        if record.library == library { record } else { TuningRecord { library, ..TuningRecord::default() } }
    }

    /// Keeps what this run found for later ones: `winner` passed the comparison and the check.
    pub fn keep(mut self, job: &Job, prices: &mut Prices, winner: Option<&Candidate>) -> Result<(), Failure> {
        if !prices.is_measured() {
            return Ok(());
        }
        let best = winner.map(|candidate| candidate.script.places()).filter(|places| !places.is_empty());
        self.scripts.retain(|script| winner.is_none_or(|winner| winner.script.places() != *script));
        self.scripts.splice(0..0, best);
        self.scripts.truncate(KEPT);
        prices.remember_tuning(&key(job), &self)
    }

    /// Whether an earlier run, with a similar budget, completed.
    pub fn is_settled_for(&self, job: &Job) -> bool {
        self.settled && self.budget * SAME_BUDGET >= job.request.budget.as_secs_f64()
    }

    /// The proposals that were good. A script that no longer applies is forgotten, and with it the
    /// claim that there was nothing else to find.
    pub fn proposals(&mut self, job: &Job, prices: &Prices) -> Vec<Proposal> {
        let (before, mut proposals) = (self.scripts.len(), Vec::new());
        self.scripts.retain(|script| {
            let proposal = retrace(script, &job.input.graph, prices.model(), &job.rules.library, &job.writable());
            let comes_up = proposal.is_some();
            proposals.extend(proposal);
            comes_up
        });
        self.settled &= proposals.len() == before;
        proposals
    }
}

/// The key for a model's records: its graph with its weights, the sizes, and how it is searched.
fn key(job: &Job) -> String {
    let search = format!("{:?}", job.request.search).to_lowercase();
    format!("tuning:{search}:{}:{:032x}", fingerprint(&job.input.graph, &job.sizes().symbols), canonical_key(job.input.model.graph()))
}

/// Repeats the rewrites of a script from the same graph; `None` if one of its places no longer
/// occurs.
pub fn retrace(script: &[u64], start: &Graph, prices: &dyn CostModel, library: &Library, writable: &dyn Writable) -> Option<Proposal> {
    let mut engine = Engine::new(start.clone(), prices);
    let mut matcher = Matcher::new(library, writable);
    let mut moves = all_moves(&mut engine, &mut matcher);
    let mut taken = Vec::new();
    for place in script {
        let step = moves.iter().find(|m| m.match_id() == *place)?.clone();
        engine.apply(&step);
        moves = next_moves(&mut engine, &mut matcher, &moves);
        taken.push(step);
    }
    let script = Script { moves: taken, cost: engine.cost(), key: engine.key() };
    while engine.undo() {}
    replay(&mut engine, library, &script)
}
