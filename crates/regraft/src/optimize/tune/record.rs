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
use crate::optimize::place::Place;
use crate::optimize::request::Request;
use crate::optimize::standing::Standing;
use crate::optimize::subnormal;
use crate::optimize::tune::propose::{Proposal, replay};

/// Scripts kept per model.
const KEPT: usize = 3;
/// Digits of a key.
const DIGITS: usize = 32;
/// A run with up to this multiple of an earlier run's budget is not expected to find more.
const SAME_BUDGET: f64 = 2.0;

/// What is kept. It holds for one model, rules, sizes and options: see [`key`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningRecord {
    /// Seconds of the run's budget.
    pub budget: f64,
    /// True if tuning ended because nothing more was found, beside something that was.
    pub settled: bool,
    /// Rewrites that passed the final comparison and the check, best first.
    pub scripts: Vec<Vec<Place>>,
}

impl TuningRecord {
    /// What is known about a job.
    pub fn recall(job: &Job, prices: &Prices) -> TuningRecord {
        prices.recall_tuning(&key(job))
    }

    /// Keeps what this run found for later ones: `winner` passed the comparison and the check. What
    /// was refused is forgotten; what stayed undecided is not.
    pub fn keep(mut self, job: &Job, prices: &mut Prices, compared: &[Candidate], winner: Option<&Candidate>) -> Result<(), Failure> {
        if !prices.is_measured() {
            return Ok(());
        }
        let best = winner.map(|candidate| candidate.script.places()).filter(|places| !places.is_empty());
        let is_refused = |candidate: &&Candidate| candidate.standing() == Standing::Refused;
        let refused: Vec<Vec<Place>> = compared.iter().filter(is_refused).map(|candidate| candidate.script.places()).collect();
        // That there is nothing at all is never taken for granted: the next run looks again.
        self.settled &= best.is_some();
        self.scripts.retain(|script| !refused.contains(script) && best.as_ref() != Some(script));
        self.scripts.splice(0..0, best);
        self.scripts.truncate(KEPT);
        prices.remember_tuning(&key(job), &self)
    }

    /// Whether an earlier run, with a similar budget, found something and nothing more.
    pub fn is_settled_for(&self, job: &Job) -> bool {
        self.settled && !self.scripts.is_empty() && self.budget * SAME_BUDGET >= job.request.budget.as_secs_f64()
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

/// The key for records of a job: its graph with its weights, the sizes at every binding, the rules,
/// and all options that decide what is found and what may be written.
fn key(job: &Job) -> String {
    let mut tried = blake3::Hasher::new();
    tried.update(&canonical_key(job.input.model.graph()).to_le_bytes());
    for binding in &job.bindings {
        tried.update(fingerprint(&job.input.graph, &binding.sizes.symbols).as_bytes());
    }
    tried.update(&job.rules.library.fingerprint().to_le_bytes());
    let Request { search, allow_growth, limits, ref rules, .. } = job.request;
    tried.update(format!("{allow_growth:?} {:?} {:?}", job.input.opset, rules.require).as_bytes());
    if job.input.flushes {
        tried.update(subnormal::NAME.as_bytes());
    }
    if !limits.is_empty() {
        tried.update(format!("{limits:?}").as_bytes());
    }
    format!("tuning:{}:{}", format!("{search:?}").to_lowercase(), &tried.finalize().to_hex()[..DIGITS])
}

/// Repeats the rewrites of a script from the same graph; `None` if one of its places no longer
/// occurs.
pub fn retrace(script: &[Place], start: &Graph, prices: &dyn CostModel, library: &Library, writable: &dyn Writable) -> Option<Proposal> {
    let mut engine = Engine::new(start.clone(), prices);
    let mut matcher = Matcher::new(library, writable);
    let mut moves = all_moves(&mut engine, &mut matcher);
    let mut taken = Vec::new();
    for place in script {
        let step = place.find(engine.graph(), library, &moves)?;
        engine.apply(&step);
        moves = next_moves(&mut engine, &mut matcher, &moves);
        taken.push(step);
    }
    let script = Script { moves: taken, cost: engine.cost(), key: engine.key() };
    while engine.undo() {}
    replay(&mut engine, library, &script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::clean;
    use crate::optimize::tune::propose;
    use regraft_cost::Roofline;
    use regraft_ir::{Bindings, Steps};
    use regraft_onnx::Model;
    use regraft_rules::Anything;
    use regraft_saturate::Saturate;

    #[test]
    fn what_equality_saturation_found_is_found_again() {
        let library = Library::shipped().expect("the library");
        let prices = Roofline::new(Bindings::default());
        let mut edits = 0;
        for name in ["paper-nasrnn", "gpt2-block"] {
            let model = regraft_zoo::build(name, &regraft_zoo::Options::default()).expect("a network");
            let model = Model::from_proto(model).expect("a model");
            let graph = clean(model.graph()).0;
            let found = propose(&graph, &prices, &mut Matcher::new(&library, &Anything), &Saturate::small(), &mut Steps(5_000));
            let best = found.best.first().expect("something");
            let places = best.places();
            edits += places.iter().filter(|place| matches!(place, Place::Edit { .. })).count();
            let again = retrace(&places, &graph, &prices, &library, &Anything).expect("the same");
            assert_eq!((again.key, again.cost, again.places()), (best.key, best.cost, places), "{name}");
        }
        assert!(edits > 0, "no step was more than a match of a rule");
    }
}
