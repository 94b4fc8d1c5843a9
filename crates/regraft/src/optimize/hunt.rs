//! Hunting for candidates: propose under the price list, measure the proposal as a whole, correct the list, propose again.

use std::collections::HashSet;
use std::time::Instant;

use regraft_cost::Stance;
use regraft_ir::{Graph, OpKind};
use regraft_onnx::{Model, WriteOptions, Written};
use regraft_rules::{Library, Writable};
use regraft_runtime::{Feeds, OnnxRuntime};

use crate::error::Failure;
use crate::optimize::FINALISTS;
use crate::optimize::artifact::Artifact;
use crate::optimize::candidate::Candidate;
use crate::optimize::memory::Memory;
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::pace::Pace;
use crate::optimize::points::Point;
use crate::optimize::prices::{Bench, Prices};
use crate::optimize::propose::{Proposal, Proposals, everywhere, propose};
use crate::optimize::request::Request;
use crate::optimize::room::Room;
use crate::report::{NotDone, Seconds};
use crate::sizes::Sizes;

/// Rounds of proposing and measuring at most.
const ROUNDS: usize = 30;
/// Bytes of serialized candidates that are held at a time.
const HELD: u64 = 1 << 30;
/// Proposals that promise less than this over the best one measured are not measured any more.
const WORTHWHILE: f64 = 0.002;
/// Scripts that are remembered of one model.
const REMEMBERED: usize = 3;
/// A hunt with this many times the budget of an earlier one is not taken to find anything more.
const SAME_BUDGET: f64 = 2.0;

/// What the model at hand can express.
pub struct InModel(regraft_onnx::Speller);

impl InModel {
    /// What `model` can express.
    pub fn new(model: &Model) -> InModel {
        InModel(model.speller())
    }
}

impl Writable for InModel {
    fn check(&self, op: &regraft_ir::Op, inputs: &[regraft_ir::TensorType], outputs: &[regraft_ir::TensorType]) -> Result<(), String> {
        if op.kind() == OpKind::Constant {
            return Ok(());
        }
        let first = inputs.first().map(|ty| regraft_runtime::DType::from_onnx(ty.dtype.to_onnx()));
        if first.is_some_and(|dtype| regraft_runtime::lacks_kernel(op.kind().name(), dtype, self.0.version())) {
            return Err(format!("the runtime has no `{}` for such elements", op.kind().name()));
        }
        self.0.can_spell(op, inputs, outputs).map_err(|e| e.to_string())
    }
}

/// One hunt, and what it learned.
pub struct Hunt<'a> {
    pub request: &'a Request,
    pub model: &'a Model,
    pub runtime: &'a OnnxRuntime,
    /// Bindings to decide at; the search is about the first, with `feeds`.
    pub points: &'a [Point],
    pub feeds: &'a Feeds,
    pub library: &'a Library,
    pub prices: Prices,
    pub seconds: Seconds,
    pub not_done: Vec<NotDone>,
    pub visited: u64,
    pub complete: bool,
    pub measured: usize,
    /// Candidates named so far.
    pub named: usize,
    /// How the time is divided.
    pub pace: Pace,
    /// What earlier runs learned about this model.
    pub memory: Memory,
    /// The hunt ended because nothing more was found.
    pub settled: bool,
    /// Memory that the run may take.
    pub room: Room,
}

impl<'a> Hunt<'a> {
    /// What the model can express.
    pub fn writable(&self) -> InModel {
        InModel::new(self.model)
    }

    fn bench(&self) -> Bench<'a> {
        Bench { runtime: self.runtime, feeds: self.feeds, request: self.request }
    }

    /// Candidates, the fastest under the profile first.
    pub fn run(&mut self, start: &Graph, observer: &mut dyn Observer) -> Result<Vec<Candidate>, Failure> {
        let writable = self.writable();
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut tried: HashSet<u128> = HashSet::new();
        let remembered = self.remembered(start, &writable);
        let done = if self.request.frozen { !remembered.is_empty() } else { self.is_settled() };
        if done {
            observer.phase(Phase::Search, &format!("an earlier run found {} rewritten models and nothing more", remembered.len()));
        } else {
            self.observe_input(start, observer)?;
        }
        for proposal in remembered {
            if !observer.interrupted() && (done || self.request.frozen || self.pace.affords_trial()) && tried.insert(proposal.key) {
                self.try_out(proposal, &mut candidates, observer)?;
            }
        }
        if !done {
            self.pace.take_heart();
            self.rounds(start, &writable, &mut candidates, &mut tried, observer)?;
            self.pace.take_heart();
            self.prune(start, &writable, &mut candidates, &mut tried, observer)?;
        }
        self.prices.take(Stance::Hopeful);
        self.prices.save()?;
        self.prices.release();
        for candidate in &mut candidates {
            candidate.predicted = self.prices.total(&candidate.graph);
        }
        let input = self.prices.total(start).max(1) as f64;
        let relative = |c: &Candidate| c.profiled.unwrap_or(c.predicted as f64 / input);
        candidates.sort_by(|a, b| relative(a).total_cmp(&relative(b)));
        candidates.truncate(self.pace.finalists());
        Ok(candidates)
    }

    /// True if an earlier hunt with the same rules, and not much less time, came to its end.
    fn is_settled(&self) -> bool {
        let enough = self.memory.budget * SAME_BUDGET >= self.request.budget.as_secs_f64();
        self.prices.is_measured() && self.memory.settled && self.memory.library == self.library.fingerprint() && enough
    }

    /// What was good in earlier runs. A script that does not come up any more is forgotten, and with it that nothing else was found.
    fn remembered(&mut self, start: &Graph, writable: &dyn Writable) -> Vec<Proposal> {
        if self.memory.library != self.library.fingerprint() {
            return Vec::new();
        }
        let (before, mut proposals) = (self.memory.scripts.len(), Vec::new());
        let (prices, library) = (self.prices.model(), self.library);
        self.memory.scripts.retain(|script| {
            let proposal = Memory::replay(script, start, prices, library, writable);
            let comes_up = proposal.is_some();
            proposals.extend(proposal);
            comes_up
        });
        self.memory.settled &= proposals.len() == before;
        proposals
    }

    /// Keeps what this run found for later ones: `winner` passed the comparison and the check.
    pub fn remember(&mut self, start: &Graph, sizes: &Sizes, winner: Option<&Candidate>) -> Result<(), Failure> {
        if !self.prices.is_measured() {
            return Ok(());
        }
        let library = self.library.fingerprint();
        let mut scripts: Vec<Vec<u64>> = winner.map(|c| c.places.clone()).filter(|p| !p.is_empty()).into_iter().collect();
        if self.memory.library == library {
            scripts.extend(self.memory.scripts.drain(..).filter(|s| winner.is_none_or(|w| w.places != *s)));
        }
        scripts.truncate(REMEMBERED);
        let settled = self.settled || self.is_settled();
        let budget = if self.is_settled() { self.memory.budget } else { self.request.budget.as_secs_f64() };
        let memory = Memory { library, budget, settled, scripts };
        self.prices.remember_hunt(&Memory::key(start, self.model, sizes, self.request), &memory)
    }

    /// Proposes and measures in turns until nothing comes of it any more, or the time is up.
    fn rounds(
        &mut self,
        start: &Graph,
        writable: &dyn Writable,
        candidates: &mut Vec<Candidate>,
        tried: &mut HashSet<u128>,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let mut explored: HashSet<String> = HashSet::new();
        let mut barren = 0;
        for round in 0..ROUNDS {
            if observer.interrupted() || (!self.request.frozen && !self.pace.affords_trial()) {
                self.complete = false;
                return Ok(());
            }
            if self.pace.is_exhausted() {
                break;
            }
            observer.phase(Phase::Search, &format!("round {}, {} rules", round + 1, self.library.rules().len()));
            let searching = Instant::now();
            // Every third round goes to a respelling; in the others, hope finds what is worth measuring and sobriety makes the most of it.
            if round % 3 == 1
                && let Some(proposal) = self.respell(start, writable, &mut explored)
            {
                if tried.insert(proposal.key) {
                    self.try_out(proposal, candidates, observer)?;
                    barren = 0;
                }
                continue;
            }
            let sober = round % 3 != 0 || self.request.frozen;
            self.prices.take(if sober { Stance::Sober } else { Stance::Hopeful });
            let proposals = {
                // A frozen run repeats exactly: no clock decides in it.
                let (frozen, slice) = (self.request.frozen, self.pace.search_ends());
                let mut budget = || (!frozen && Instant::now() >= slice) || observer.interrupted();
                if sober && round > 3 {
                    self.build_on(candidates, start, writable, &mut budget)
                } else {
                    propose(start, self.prices.model(), self.library, writable, self.request.search, &mut budget)
                }
            };
            self.seconds.search += searching.elapsed().as_secs_f64();
            self.visited += proposals.visited;
            if round == 0 {
                self.complete = proposals.complete;
                self.not_done.extend(proposals.refused);
            }
            // The list is settled when its favourite was measured already, or is no better than what was: under both stances in turn.
            let favourite = proposals.best.into_iter().next();
            let seen = candidates.iter().map(|c| self.prices.total(&c.graph)).min();
            let fresh =
                favourite.filter(|p| !tried.contains(&p.key) && seen.is_none_or(|best| (p.cost as f64) < best as f64 * (1.0 - WORTHWHILE)));
            barren = if fresh.is_some() { 0 } else { barren + 1 };
            let proposal = match fresh {
                Some(proposal) => proposal,
                // Both stances and every respelling have had their say.
                None if barren > 2 || !self.prices.is_measured() || self.request.frozen => break,
                None => continue,
            };
            tried.insert(proposal.key);
            self.try_out(proposal, candidates, observer)?;
            if !self.prices.is_measured() {
                break;
            }
        }
        self.settled = true;
        Ok(())
    }

    fn observe_input(&mut self, start: &Graph, observer: &mut dyn Observer) -> Result<(), Failure> {
        // A store that knows the whole input needs no profile of it, until a proposal holds something new.
        if !self.prices.is_measured() || self.request.frozen {
            return Ok(());
        }
        let measuring = Instant::now();
        observer.phase(Phase::Measure, "the input");
        let written = self.write(start)?;
        let artifact = Artifact::new(&written)?;
        let bench = self.bench();
        let until = self.pace.hunting_ends();
        self.prices.observe_input(&bench, start, &written, artifact.source(), &|| Instant::now() < until && !observer.interrupted())?;
        self.pace.opened(measuring.elapsed(), self.prices.input_run());
        self.seconds.measure += measuring.elapsed().as_secs_f64();
        Ok(())
    }

    /// A rewritten graph as a model. Where memory is tight, new constants wait in the output's folder.
    pub fn write(&self, graph: &Graph) -> Result<Written, Failure> {
        let park = self.room.is_tight().then(|| regraft_onnx::folder_of(&self.request.output));
        let options = WriteOptions { allow_growth: self.request.allow_growth, park, ..WriteOptions::default() };
        self.model.write(graph, &options).map_err(Failure::from)
    }

    /// What the runtime opens, if whole models are run.
    pub fn artifact(&self, written: &Written) -> Result<Option<Artifact>, Failure> {
        if self.room.is_tight() { Ok(None) } else { Artifact::new(written).map(Some) }
    }

    /// One exploratory rule applied wherever it fits. Its prices are then known, and later rounds combine it with others.
    fn respell(&self, start: &Graph, writable: &dyn Writable, explored: &mut HashSet<String>) -> Option<Proposal> {
        if !self.prices.is_measured() || self.request.frozen {
            return None;
        }
        // All of them together first: where each pays, one trial is enough.
        if explored.insert(String::new()) {
            return everywhere(start, self.prices.model(), self.library, writable, &|r| r.explore);
        }
        let rule = self.library.rules().iter().filter(|r| r.explore);
        rule.filter(|r| explored.insert(r.name.to_string()))
            .find_map(|rule| everywhere(start, self.prices.model(), self.library, writable, &|r| r.name == rule.name))
    }

    /// Searches from the best candidate, so that what was measured to be good is built upon; its rewrites come first.
    fn build_on(
        &self,
        candidates: &[Candidate],
        start: &Graph,
        writable: &dyn Writable,
        budget: &mut dyn regraft_search::Budget,
    ) -> Proposals {
        let faster = candidates.iter().filter(|c| c.profiled.is_some_and(|ratio| ratio < 1.0));
        let Some(best) = faster.min_by(|a, b| a.profiled.unwrap_or(1.0).total_cmp(&b.profiled.unwrap_or(1.0))) else {
            return propose(start, self.prices.model(), self.library, writable, self.request.search, budget);
        };
        let mut found = propose(&best.graph, self.prices.model(), self.library, writable, self.request.search, budget);
        for proposal in &mut found.best {
            proposal.applied.splice(0..0, best.applied.iter().cloned());
            proposal.places.splice(0..0, best.places.iter().copied());
            proposal.moves.splice(0..0, best.moves.iter().cloned());
        }
        found
    }

    /// Prices mislead where effects reach further than one operator. With the time that is left, rules of the best candidate are left out
    /// one after the other, the least useful first, and stay out if the whole is faster without.
    fn prune(
        &mut self,
        start: &Graph,
        writable: &dyn Writable,
        candidates: &mut Vec<Candidate>,
        tried: &mut HashSet<u128>,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        if !self.prices.has_input() {
            return Ok(());
        }
        let mut without: HashSet<String> = HashSet::new();
        let mut asked: HashSet<String> = HashSet::new();
        loop {
            let Some(best) = candidates
                .iter()
                .filter(|c| c.profiled.is_some())
                .min_by(|a, b| a.profiled.unwrap_or(1.0).total_cmp(&b.profiled.unwrap_or(1.0)))
            else {
                return Ok(());
            };
            let goal = best.profiled.unwrap_or(1.0);
            let mut gains: std::collections::BTreeMap<&str, i64> = Default::default();
            for step in &best.applied {
                *gains.entry(&step.rule).or_default() += step.gain_ns;
            }
            let Some(rule) = gains
                .into_iter()
                .filter(|(rule, _)| !asked.contains(*rule))
                .min_by_key(|(_, gain)| *gain)
                .map(|(rule, _)| rule.to_string())
            else {
                return Ok(());
            };
            if observer.interrupted() || !self.pace.affords_trial() {
                self.settled = false;
                return Ok(());
            }
            if self.pace.is_exhausted() {
                return Ok(());
            }
            asked.insert(rule.clone());
            let library = self.library.clone().filter(|r| !without.contains(r.name.as_ref()) && *r.name != *rule);
            self.prices.take(Stance::Sober);
            let slice = self.pace.search_ends();
            let mut budget = || Instant::now() >= slice || observer.interrupted();
            let proposals = propose(start, self.prices.model(), &library, writable, self.request.search, &mut budget);
            self.visited += proposals.visited;
            let Some(proposal) = proposals.best.into_iter().next().filter(|p| tried.insert(p.key)) else { continue };
            self.try_out(proposal, candidates, observer)?;
            if candidates.last().and_then(|c| c.profiled).is_some_and(|ratio| ratio < goal * (1.0 - WORTHWHILE)) {
                without.insert(rule);
            }
        }
    }

    /// Serialized models take memory: beyond a bound, the slowest go.
    fn drop_losers(&self, candidates: &mut Vec<Candidate>) {
        let held = |candidates: &[Candidate]| candidates.iter().map(|c| c.written.size()).sum::<u64>();
        while candidates.len() > FINALISTS && held(candidates) > HELD {
            let slowest = |c: &Candidate| c.profiled.unwrap_or(1.0);
            let Some(at) = (0..candidates.len()).max_by(|a, b| slowest(&candidates[*a]).total_cmp(&slowest(&candidates[*b]))) else {
                return;
            };
            candidates.remove(at);
        }
    }

    /// Measures a proposal and keeps it.
    fn try_out(&mut self, proposal: Proposal, candidates: &mut Vec<Candidate>, observer: &mut dyn Observer) -> Result<(), Failure> {
        let measuring = Instant::now();
        self.named += 1;
        let number = self.named;
        observer.phase(Phase::Measure, &format!("candidate {number}: {} rewrites", proposal.applied.len()));
        let measured = self.measure(proposal, number, observer)?;
        let ratio = measured.as_ref().and_then(|c| c.profiled);
        if let Some(candidate) = measured {
            if let Some(ratio) = candidate.profiled {
                observer.phase(Phase::Measure, &format!("candidate {number}: {:.3} times as fast as the input", 1.0 / ratio));
            }
            candidates.push(candidate);
            self.drop_losers(candidates);
        }
        self.seconds.measure += measuring.elapsed().as_secs_f64();
        self.pace.tried(measuring.elapsed(), ratio);
        Ok(())
    }

    /// Writes a proposal and, if its prices are not all known, measures it beside the input.
    fn measure(&mut self, proposal: Proposal, number: usize, observer: &dyn Observer) -> Result<Option<Candidate>, Failure> {
        let unknown = self.prices.has_input() && !self.prices.knows(&proposal.graph);
        let Some(mut candidate) = self.put_down(proposal, number)? else { return Ok(None) };
        if let Some(artifact) = candidate.artifact.as_ref().filter(|_| unknown) {
            let (until, bench) = (self.pace.hunting_ends(), self.bench());
            let go_on = || Instant::now() < until && !observer.interrupted();
            match self.prices.observe(&bench, &candidate.graph, &candidate.written, artifact.source(), &go_on) {
                Ok(ratio) => candidate.profiled = Some(ratio),
                Err(why) => {
                    self.not_done.push(NotDone { what: candidate.name, at: "loading".into(), because: why.cause });
                    return Ok(None);
                }
            }
            self.measured += 1;
            candidate.predicted = self.prices.total(&candidate.graph);
        }
        Ok(Some(candidate))
    }

    /// Writes a proposal; `None` if it cannot be written, or if the file would be too large.
    pub fn put_down(&mut self, proposal: Proposal, number: usize) -> Result<Option<Candidate>, Failure> {
        let written = match self.write(&proposal.graph) {
            Ok(written) => written,
            Err(why) => {
                self.not_done.push(NotDone { what: format!("candidate {number}"), at: "writing".into(), because: why.cause });
                return Ok(None);
            }
        };
        let largest = self.model.largest(self.request.allow_growth);
        if written.size() > largest {
            let because = format!("the file would take {} bytes, {largest} are allowed (--allow-growth allows more)", written.size());
            self.not_done.push(NotDone { what: format!("candidate {number}"), at: "writing".into(), because });
            return Ok(None);
        }
        Ok(Some(Candidate {
            name: format!("candidate {number}"),
            predicted: self.prices.total(&proposal.graph),
            graph: proposal.graph,
            applied: proposal.applied,
            places: proposal.places,
            moves: proposal.moves,
            bodies: Vec::new(),
            rewritten: Vec::new(),
            profiled: None,
            artifact: self.artifact(&written)?,
            written,
        }))
    }
}
