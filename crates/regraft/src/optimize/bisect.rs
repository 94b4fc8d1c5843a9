//! A candidate that failed its check: which rewrite is to blame, and what a search finds without
//! its rule.

use std::time::Instant;

use regraft_cost::Pricing;
use regraft_rules::Library;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::certify::Certifier;
use crate::optimize::observer::Phase;
use crate::optimize::place::Place;
use crate::optimize::run::Run;
use crate::optimize::tune::retrace;
use crate::optimize::validate::examine;
use crate::report::{Applied, Check};

/// Maximum number of rules left out of one candidate, one after the other.
const RULES: usize = 3;

/// The candidate without the offending rules, if one is found that passes its check. Warns about
/// each of these rules.
///
/// The first rewrite after which the check fails is found by bisection over the script, unless the
/// check names it.
pub fn bisect(run: &mut Run<'_>, certifier: &Certifier<'_>, failed: &Candidate) -> Result<Option<Candidate>, Failure> {
    let bisection = Bisection { run, certifier, name: failed.name.clone() };
    bisection.mended(failed.script.places(), failed.check.as_ref())
}

struct Bisection<'r, 'a> {
    run: &'r mut Run<'a>,
    certifier: &'r Certifier<'r>,
    /// Name of the candidate that failed.
    name: String,
}

impl Bisection<'_, '_> {
    fn mended(mut self, mut places: Vec<Place>, check: Option<&Check>) -> Result<Option<Candidate>, Failure> {
        let mut library = self.run.job.rules.library.clone();
        let mut blamed = check.and_then(|check| check.blamed.clone());
        let mut left_out: Vec<String> = Vec::new();
        while left_out.len() < RULES && !places.is_empty() {
            let known = blamed.take().filter(|(rule, _)| library.get(rule).is_some());
            let Some((rule, at)) = known.map_or_else(|| self.culprit(&library, &places), |known| Ok(Some(known)))? else { break };
            self.run.journal.warnings.push(format!("the rule `{rule}` at {at} is to blame: it was left out"));
            left_out.push(rule);
            library = library.filter(|r| !left_out.iter().any(|name| *name == *r.name));
            let Some(mut candidate) = self.search(&library)? else { break };
            self.run.phase(Phase::Check, &format!("{} without {}", self.name, left_out.join(", ")));
            if examine(self.run, self.certifier, &mut candidate) {
                return Ok(Some(candidate));
            }
            places = candidate.script.places();
            blamed = candidate.check.and_then(|check| check.blamed);
        }
        Ok(None)
    }

    /// The first rewrite of a script after which the check fails: rule and place. `None` if it
    /// cannot be found in time.
    fn culprit(&mut self, library: &Library, places: &[Place]) -> Result<Option<(String, String)>, Failure> {
        let (mut right, mut wrong) = (0, places.len());
        while wrong - right > 1 {
            if self.run.is_interrupted() || Instant::now() >= self.run.clock.deadline() {
                let note = "no time was left to find the rewrite that is to blame";
                self.run.journal.warnings.push(note.into());
                return Ok(None);
            }
            let middle = (right + wrong) / 2;
            let Some(mut candidate) = self.after(library, &places[..middle])? else { return Ok(None) };
            self.run.phase(Phase::Check, &format!("the first {middle} of {} rewrites", places.len()));
            *(if examine(self.run, self.certifier, &mut candidate) { &mut right } else { &mut wrong }) = middle;
        }
        let candidate = self.after(library, &places[..wrong])?;
        Ok(candidate.and_then(|candidate| candidate.script.applied().last().map(|Applied { rule, at, .. }| (rule.clone(), at.clone()))))
    }

    /// The model after the rewrites of a script; `None` if it cannot be written.
    fn after(&mut self, library: &Library, script: &[Place]) -> Result<Option<Candidate>, Failure> {
        let job = self.run.job;
        let prices = self.run.evaluator.prices().model();
        let Some(proposal) = retrace(script, &job.input.graph, prices, library, &job.writable()) else { return Ok(None) };
        let name = self.run.next_name();
        self.run.realize(name, proposal)
    }

    /// What a search with fewer rules finds, under the current prices.
    fn search(&mut self, library: &Library) -> Result<Option<Candidate>, Failure> {
        self.run.evaluator.prices_mut().set_pricing(Pricing::Pessimistic);
        let deadline = self.run.clock.deadline();
        let found = self.run.search(&self.run.job.input.graph, library, &*self.run.job.request.search.strategy(), deadline);
        let Some(proposal) = found.best.into_iter().next() else { return Ok(None) };
        let name = self.run.next_name();
        self.run.realize(name, proposal)
    }
}
