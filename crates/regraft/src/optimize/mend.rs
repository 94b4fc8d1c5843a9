//! A candidate that fails its check: which rewrite is to blame, and what a search finds without its rule.

use std::time::Instant;

use regraft_cost::Stance;
use regraft_ir::Graph;
use regraft_rules::Library;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::hunt::Hunt;
use crate::optimize::memory::Memory;
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::propose::propose;
use crate::report::Check;

/// Rules that are left out of one candidate at most, one after the other.
const RULES: usize = 3;

/// What came of mending a candidate.
#[derive(Default)]
pub struct Mended {
    /// The rewrites that were to blame: rule and place.
    pub guilty: Vec<(String, String)>,
    /// The candidate without these rules, with its check; `None` if nothing is left, or if the time is up.
    pub candidate: Option<(Candidate, Check)>,
    /// Why the search for the guilty ended early.
    pub note: Option<&'static str>,
}

impl Hunt<'_> {
    /// Finds the first rewrite after which the check fails, by bisection over the script, and leaves its rule out; again, until the check
    /// passes. `examine` is the check.
    pub fn mend(
        &mut self,
        start: &Graph,
        failed: &Candidate,
        deadline: Instant,
        examine: &dyn Fn(&Candidate) -> Check,
        observer: &mut dyn Observer,
    ) -> Result<Mended, Failure> {
        let mut mended = Mended::default();
        let mut places = failed.places.clone();
        let mut library = self.library.clone();
        while mended.guilty.len() < RULES && !places.is_empty() {
            let (mut right, mut wrong) = (0, places.len());
            while wrong - right > 1 {
                let begun = Instant::now();
                if observer.interrupted() || begun >= deadline {
                    mended.note = Some("no time was left to find the rewrite that is to blame");
                    return Ok(mended);
                }
                let middle = (right + wrong) / 2;
                observer.phase(Phase::Check, &format!("the first {middle} of {} rewrites", places.len()));
                let Some(candidate) = self.after(start, &library, &places[..middle])? else { return Ok(mended) };
                *(if examine(&candidate).passed { &mut right } else { &mut wrong }) = middle;
            }
            let Some(candidate) = self.after(start, &library, &places[..wrong])? else { return Ok(mended) };
            let Some(guilty) = candidate.applied.last().cloned() else { return Ok(mended) };
            mended.guilty.push((guilty.rule, guilty.at));
            let without: Vec<String> = mended.guilty.iter().map(|(rule, _)| rule.clone()).collect();
            library = library.filter(|r| !without.iter().any(|name| *name == *r.name));
            let Some(candidate) = self.search_again(start, &library, deadline, observer)? else { return Ok(mended) };
            observer.phase(Phase::Check, &format!("{} without {}", failed.name, without.join(", ")));
            let check = examine(&candidate);
            if check.passed {
                mended.candidate = Some((candidate, check));
                return Ok(mended);
            }
            places = candidate.places;
        }
        Ok(mended)
    }

    /// The model after the rewrites of a script; `None` if it cannot be written.
    fn after(&mut self, start: &Graph, library: &Library, script: &[u64]) -> Result<Option<Candidate>, Failure> {
        let writable = self.writable();
        let Some(proposal) = Memory::replay(script, start, self.prices.model(), library, &writable) else { return Ok(None) };
        self.named += 1;
        self.put_down(proposal, self.named)
    }

    /// What a search with fewer rules finds, under the prices as they are known now.
    fn search_again(
        &mut self,
        start: &Graph,
        library: &Library,
        deadline: Instant,
        observer: &dyn Observer,
    ) -> Result<Option<Candidate>, Failure> {
        let writable = self.writable();
        self.prices.take(Stance::Sober);
        let mut budget = || Instant::now() >= deadline || observer.interrupted();
        let found = propose(start, self.prices.model(), library, &writable, self.request.search, &mut budget);
        self.visited += found.visited;
        let Some(proposal) = found.best.into_iter().next() else { return Ok(None) };
        self.named += 1;
        self.put_down(proposal, self.named)
    }
}
