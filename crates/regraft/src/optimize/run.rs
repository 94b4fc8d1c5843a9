//! A run: what all stages after loading share, and what they record along the way.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use regraft_ir::Graph;
use regraft_onnx::Written;
use regraft_rules::Library;
use regraft_runtime::Startup;
use regraft_search::{MatchCache, Strategy};

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timings};
use crate::optimize::evaluate::{Evaluator, Prices, evaluator};
use crate::optimize::load::Job;
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::script::Script;
use crate::optimize::standing::Wanted;
use crate::optimize::surcharge::Surcharged;
use crate::optimize::time_budget::TimeBudget;
use crate::optimize::tune::{Proposal, Proposals, TuningRecord, propose, retrace};
use crate::report::{NotDone, Seconds, Trial};

/// One run of `optimize`.
pub struct Run<'a> {
    /// The task.
    pub job: &'a Job,
    /// How candidates are priced, timed and checked.
    pub evaluator: Box<dyn Evaluator + 'a>,
    /// How the time is divided.
    pub clock: TimeBudget,
    /// What earlier runs learned about this model, to be passed on to later ones.
    pub record: TuningRecord,
    /// Whether the candidates are what an earlier run found, and nothing was searched.
    pub recalled: bool,
    /// What a process takes that loads the input, once that was asked; `None` if it is not known.
    pub startup: OnceCell<Option<Startup>>,
    /// What searches add to the price of a node for each byte of weights that it reads, ns: more
    /// than nothing if what was found exceeds the limits.
    pub surcharge: f64,
    /// What searches learned of the rules, for the next one.
    pub matches: MatchCache,
    /// Notes for the report.
    pub journal: Journal,
    /// Receives progress, and may interrupt.
    pub observer: &'a mut dyn Observer,
}

/// What stages record for the report.
#[derive(Default)]
pub struct Journal {
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What could have been done but was not, and why.
    pub not_done: Vec<NotDone>,
    /// Where the time went.
    pub seconds: Seconds,
    /// States that searches visited.
    pub visited: u64,
    /// Whether tuning ended because there was nothing more to try, rather than for want of time.
    pub complete: bool,
    /// Models profiled as wholes.
    pub measured: usize,
    /// Rewritten excerpts profiled.
    pub excerpts: usize,
    /// Models measured while tuning.
    pub trials: Vec<Trial>,
    /// Candidates named so far.
    pub named: usize,
}

impl<'a> Run<'a> {
    /// A run at its start.
    pub fn new(job: &'a Job, clock: TimeBudget, journal: Journal, observer: &'a mut dyn Observer) -> Result<Run<'a>, Failure> {
        let evaluator = evaluator(job)?;
        // What comes out untimed depends on the model alone, and what is predicted for another
        // machine on the recording.
        let forgets = job.request.untimed || evaluator.prices().is_recorded();
        let record = if forgets { TuningRecord::default() } else { TuningRecord::recall(job, evaluator.prices()) };
        Ok(Run { record, ..Run::of(job, evaluator, clock, journal, observer) })
    }

    /// A run at its start that remembers no other.
    pub fn of(
        job: &'a Job,
        evaluator: Box<dyn Evaluator + 'a>,
        clock: TimeBudget,
        journal: Journal,
        observer: &'a mut dyn Observer,
    ) -> Run<'a> {
        let (record, startup) = (TuningRecord::default(), OnceCell::new());
        Run { job, evaluator, clock, record, recalled: false, startup, surcharge: 0.0, journal, matches: MatchCache::default(), observer }
    }

    /// What was learned, and the notes.
    pub fn into_learned(self) -> (Prices, Journal) {
        (self.evaluator.into_prices(), self.journal)
    }

    /// Tells the observer what begins.
    pub fn phase(&mut self, phase: Phase, detail: &str) {
        self.observer.phase(phase, detail);
    }

    /// Whether the user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.observer.interrupted()
    }

    /// Searches from a graph under the current prices, until the given time at most.
    pub fn search(&mut self, start: &Graph, library: &Library, search: &dyn Strategy, until: Instant) -> Proposals {
        let (prices, timed, observer) = (self.evaluator.prices(), self.evaluator.is_timed(), &*self.observer);
        let mut budget = || (timed && Instant::now() >= until) || observer.interrupted();
        let (writable, bindings) = (self.job.writable(), prices.bindings());
        let surcharge = self.surcharge;
        let found = self.matches.with(library, &writable, |matcher| {
            if surcharge <= 0.0 {
                return propose(start, prices.model(), matcher, search, &mut budget);
            }
            let surcharged = Surcharged { prices: prices.model(), bindings, rate: surcharge };
            let mut found = propose(start, &surcharged, matcher, search, &mut budget);
            // At their own prices again.
            let priced = |proposal: &Proposal| retrace(&proposal.places(), start, prices.model(), library, &writable);
            found.best = found.best.iter().filter_map(priced).collect();
            found
        });
        self.journal.visited += found.visited;
        found
    }

    /// Whether there is time to go on tuning after a comparison, and a point in it.
    pub fn may_go_on(&mut self) -> bool {
        let learns = self.evaluator.learns() && !self.evaluator.prices().is_recorded();
        learns && !self.recalled && self.job.refusal.is_none() && !self.is_interrupted() && self.clock.begin_lap()
    }

    /// What an earlier run found was not confirmed: there may be something else to find.
    pub fn doubt_record(&mut self) {
        (self.record.settled, self.recalled) = (false, false);
    }

    /// A name for the next candidate.
    pub fn next_name(&mut self) -> String {
        self.journal.named += 1;
        format!("candidate {}", self.journal.named)
    }

    /// A proposal as a model; `None`, with a note, if it cannot be written or would be too large.
    pub fn realize(&mut self, name: String, proposal: Proposal) -> Result<Option<Candidate>, Failure> {
        let written = self.job.write(&proposal.graph);
        self.candidate(name, proposal.graph, Script { main: proposal.rewrites, bodies: Vec::new() }, written)
    }

    /// The written candidate; `None`, with a note, if it was not written or is too large.
    pub fn candidate(
        &mut self,
        name: String,
        graph: Graph,
        script: Script,
        written: Result<Written, Failure>,
    ) -> Result<Option<Candidate>, Failure> {
        let largest = self.job.input.model.largest(self.job.request.allow_growth);
        let because = match &written {
            Ok(written) if written.size() <= largest => None,
            Ok(written) => {
                Some(format!("the file would take {} bytes, {largest} are allowed (--allow-growth allows more)", written.size()))
            }
            Err(why) => Some(why.cause.clone()),
        };
        if let Some(because) = because {
            self.journal.not_done.push(NotDone { what: name, at: "writing".into(), because });
            return Ok(None);
        }
        let artifact = self.evaluator.artifact(written?)?;
        let predicted = self.evaluator.prices().total(&graph);
        let wanted = if script.is_empty() { Wanted::NotSlower } else { Wanted::Faster };
        Ok(Some(Candidate {
            name,
            graph,
            wanted,
            script,
            artifact,
            predicted,
            profiled: None,
            timings: Timings::default(),
            compared: Duration::ZERO,
            startup: None,
            check: None,
        }))
    }
}
