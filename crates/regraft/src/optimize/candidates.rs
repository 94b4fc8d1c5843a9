//! Hunting for candidates: propose under the price list, measure the proposal as a whole, correct the list, propose again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use regraft_cost::{Ns, Stance};
use regraft_ir::{Graph, OpKind};
use regraft_onnx::{Model, WriteOptions, Written};
use regraft_rules::{Library, Writable};
use regraft_runtime::{Feeds, ModelSource, OnnxRuntime};

use crate::error::Failure;
use crate::optimize::FINALISTS;
use crate::optimize::artifact::Artifact;
use crate::optimize::choose::{Effort, MARGIN, compare};
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::prices::{Bench, Prices};
use crate::optimize::propose::{Proposal, Proposals, everywhere, propose};
use crate::optimize::request::Request;
use crate::report::{Applied, NotDone, Seconds, Speedup, Timing};

/// Rounds of proposing and measuring at most.
const ROUNDS: usize = 30;
/// In a frozen run: share of a candidate's price that may rest on guesses, and the gain that the price list must promise.
const GUESSED: f64 = 0.05;
const LISTED_MARGIN: f64 = 0.02;
/// Bytes of serialized candidates that are held at a time.
const HELD: u64 = 1 << 30;
/// Part of the budget that one search may take.
const SLICE: f64 = 0.08;
/// Proposals that promise less than this over the best one measured are not measured any more.
const WORTHWHILE: f64 = 0.002;
/// Part of the budget that hunting may take; the rest is for choosing and checking.
const HUNTING: f64 = 0.5;
/// Part of the budget after which nothing new is compared.
const CHOOSING: f64 = 0.72;

/// A rewritten model that may be written.
pub struct Candidate {
    /// Name in reports.
    pub name: String,
    /// Its graph.
    pub graph: Graph,
    /// Rewrites that led to it.
    pub applied: Vec<Applied>,
    /// Cost under the price list.
    pub predicted: Ns,
    /// Time relative to the input in the profile, if it was measured.
    pub profiled: Option<f64>,
    /// Its serialized form.
    pub artifact: Artifact,
    /// The same, decoded, for saving.
    pub written: Written,
}

/// What the model at hand can express.
struct InModel<'a>(regraft_onnx::Speller, std::marker::PhantomData<&'a ()>);

impl Writable for InModel<'_> {
    fn check(&self, op: &regraft_ir::Op, inputs: &[regraft_ir::TensorType], outputs: &[regraft_ir::TensorType]) -> Result<(), String> {
        if op.kind() == OpKind::Constant { Ok(()) } else { self.0.can_spell(op, inputs, outputs).map_err(|e| e.to_string()) }
    }
}

/// One hunt, and what it learned.
pub struct Hunt<'a> {
    pub request: &'a Request,
    pub model: &'a Model,
    pub runtime: &'a OnnxRuntime,
    pub feeds: &'a Feeds,
    pub library: &'a Library,
    pub prices: Prices,
    pub start: Instant,
    pub seconds: Seconds,
    pub not_done: Vec<NotDone>,
    pub visited: u64,
    pub complete: bool,
    pub measured: usize,
    /// Candidates named so far.
    pub named: usize,
    /// The longest that trying out one proposal took.
    pub trial: Duration,
}

impl<'a> Hunt<'a> {
    fn bench(&self) -> Bench<'a> {
        Bench { runtime: self.runtime, feeds: self.feeds, request: self.request }
    }

    fn deadline(&self, part: f64) -> Instant {
        self.start + Duration::from_secs_f64(self.request.budget.as_secs_f64() * part)
    }

    /// Candidates, the fastest under the profile first.
    pub fn run(&mut self, start: &Graph, observer: &mut dyn Observer) -> Result<Vec<Candidate>, Failure> {
        let writable = InModel(self.model.speller(), std::marker::PhantomData);
        let end = self.deadline(HUNTING);
        self.observe_input(start, observer)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut tried: HashSet<u128> = HashSet::new();
        let mut explored: HashSet<String> = HashSet::new();
        let mut settled = 0;
        for round in 0..ROUNDS {
            // Another trial must end in time.
            if (!self.request.frozen && Instant::now() + self.trial >= end) || observer.interrupted() {
                self.complete = false;
                break;
            }
            observer.phase(Phase::Search, &format!("round {}, {} rules", round + 1, self.library.rules().len()));
            let searching = Instant::now();
            let slice = end.min(searching + self.request.budget.mul_f64(SLICE));
            // Every third round goes to a respelling; in the others, hope finds what is worth measuring and sobriety makes the most of it.
            if round % 3 == 1
                && let Some(proposal) = self.respell(start, &writable, &mut explored)
            {
                if tried.insert(proposal.key) {
                    self.try_out(proposal, &mut candidates, observer)?;
                    settled = 0;
                }
                continue;
            }
            let sober = round % 3 != 0 || self.request.frozen;
            self.prices.take(if sober { Stance::Sober } else { Stance::Hopeful });
            let proposals = {
                // A frozen run repeats exactly: no clock decides in it.
                let frozen = self.request.frozen;
                let mut budget = || (!frozen && Instant::now() >= slice) || observer.interrupted();
                if sober && round > 3 {
                    self.build_on(&candidates, start, &writable, &mut budget)
                } else {
                    propose(start, self.prices.model(), self.library, &writable, self.request.search, &mut budget)
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
            settled = if fresh.is_some() { 0 } else { settled + 1 };
            let proposal = match fresh {
                Some(proposal) => proposal,
                // Both stances and every respelling have had their say.
                None if settled > 2 || !self.prices.is_measured() || self.request.frozen => break,
                None => continue,
            };
            tried.insert(proposal.key);
            self.try_out(proposal, &mut candidates, observer)?;
            if !self.prices.is_measured() {
                break;
            }
        }
        self.prune(start, &writable, &mut candidates, &mut tried, observer)?;
        self.prices.take(Stance::Hopeful);
        self.prices.save()?;
        self.prices.release();
        for candidate in &mut candidates {
            candidate.predicted = self.prices.total(&candidate.graph);
        }
        let input = self.prices.total(start).max(1) as f64;
        let relative = |c: &Candidate| c.profiled.unwrap_or(c.predicted as f64 / input);
        candidates.sort_by(|a, b| relative(a).total_cmp(&relative(b)));
        Ok(candidates)
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
        self.prices.observe_input(&bench, start, &written, artifact.source())?;
        self.seconds.measure += measuring.elapsed().as_secs_f64();
        Ok(())
    }

    fn write(&self, graph: &Graph) -> Result<Written, Failure> {
        let options = WriteOptions { allow_growth: self.request.allow_growth, ..WriteOptions::default() };
        self.model.write(graph, &options).map_err(Failure::new)
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
        let end = self.deadline(HUNTING);
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
            if Instant::now() + self.trial >= end || observer.interrupted() {
                return Ok(());
            }
            asked.insert(rule.clone());
            let library = self.library.clone().filter(|r| !without.contains(r.name.as_ref()) && *r.name != *rule);
            self.prices.take(Stance::Sober);
            let slice = end.min(Instant::now() + self.request.budget.mul_f64(SLICE));
            let mut budget = || Instant::now() >= slice;
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
        if let Some(candidate) = self.measure(proposal, number)? {
            if let Some(ratio) = candidate.profiled {
                observer.phase(Phase::Measure, &format!("candidate {number}: {:.3} times as fast as the input", 1.0 / ratio));
            }
            candidates.push(candidate);
            self.drop_losers(candidates);
        }
        self.seconds.measure += measuring.elapsed().as_secs_f64();
        self.trial = self.trial.max(measuring.elapsed());
        Ok(())
    }

    /// How many candidates can be compared with the input in the time that is left for it: opening and running one takes about half a trial.
    pub fn finalists(&self) -> usize {
        let left = self.deadline(CHOOSING).saturating_duration_since(Instant::now()).as_secs_f64();
        let each = 0.5 * self.trial.as_secs_f64().max(1e-3);
        ((left / each) as usize).saturating_sub(1).clamp(1, FINALISTS)
    }

    /// Writes a proposal and, if its prices are not all known, measures it beside the input.
    fn measure(&mut self, proposal: Proposal, number: usize) -> Result<Option<Candidate>, Failure> {
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
        let artifact = Artifact::new(&written)?;
        let mut profiled = None;
        if self.prices.has_input() && !self.prices.knows(&proposal.graph) {
            let (until, bench) = (self.deadline(HUNTING), self.bench());
            match self.prices.observe(&bench, &proposal.graph, &written, artifact.source(), until) {
                Ok(ratio) => profiled = Some(ratio),
                Err(why) => {
                    self.not_done.push(NotDone { what: format!("candidate {number}"), at: "loading".into(), because: why.cause });
                    return Ok(None);
                }
            }
            self.measured += 1;
        }
        let predicted = self.prices.total(&proposal.graph);
        Ok(Some(Candidate {
            name: format!("candidate {number}"),
            graph: proposal.graph,
            applied: proposal.applied,
            predicted,
            profiled,
            artifact,
            written,
        }))
    }

    /// Times the input and the candidates end to end. Returns all timings (input first) and the candidates that beat the input, best first.
    pub fn choose(
        &mut self,
        start: &Graph,
        original: ModelSource<'_>,
        candidates: &[Candidate],
        observer: &dyn Observer,
    ) -> Result<(Vec<Timing>, Vec<usize>), Failure> {
        let named = |name: &str, median_ns: f64, speedup: Speedup| Timing { model: name.into(), median_ns, speedup };
        if candidates.is_empty() {
            return Ok((vec![named("input", 0.0, Speedup::NONE)], Vec::new()));
        }
        if self.request.frozen {
            return Ok(self.choose_from_store(start, candidates));
        }
        let mut models = vec![original];
        models.extend(candidates.iter().map(|c| c.artifact.source()));
        let effort = Effort { sittings: 3, rounds: (5, 40), until: self.deadline(CHOOSING) };
        let result =
            compare(self.runtime, &models, self.feeds, self.request.threads, effort, self.request.seed, &|| observer.interrupted())?;
        let speedup = |at: usize| result.ratios[at].map_or(Speedup::NONE, Speedup::from);
        let mut timings = vec![named("input", result.medians[0], Speedup { pairs: speedup(0).pairs, ..Speedup::NONE })];
        timings.extend(candidates.iter().enumerate().map(|(at, c)| named(&c.name, result.medians[at + 1], speedup(at + 1))));
        let mut order: Vec<usize> = (0..candidates.len()).filter(|at| accepted(&candidates[*at], &timings[at + 1].speedup)).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        for (candidate, timing) in candidates.iter().zip(&timings[1..]) {
            self.prices.remember_ratio(&self.prices_key(candidate), timing.speedup)?;
        }
        Ok((timings, order))
    }

    /// Decides by what the store remembers: for frozen runs, which measure nothing. An earlier comparison counts first; else the price list
    /// does, where it knows the whole candidate.
    fn choose_from_store(&self, start: &Graph, candidates: &[Candidate]) -> (Vec<Timing>, Vec<usize>) {
        let mut timings = vec![Timing { model: "input".into(), median_ns: 0.0, speedup: Speedup::NONE }];
        let input = self.prices.total(start) as f64;
        for candidate in candidates {
            let predicted = input / candidate.predicted.max(1) as f64;
            let listed = || {
                (self.prices.guessed(&candidate.graph) < GUESSED).then_some(Speedup {
                    median: predicted,
                    low: predicted,
                    high: predicted,
                    pairs: 0,
                })
            };
            let speedup = self.prices.recall_ratio(&self.prices_key(candidate)).or_else(listed).unwrap_or(Speedup::NONE);
            timings.push(Timing { model: candidate.name.clone(), median_ns: candidate.predicted as f64, speedup });
        }
        let faster =
            |at: &usize| timings[at + 1].speedup.low > 1.0 + if timings[at + 1].speedup.pairs > 0 { MARGIN } else { LISTED_MARGIN };
        let mut order: Vec<usize> = (0..candidates.len()).filter(faster).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        (timings, order)
    }

    /// Identity of a pair of models in the store.
    fn prices_key(&self, candidate: &Candidate) -> String {
        format!(
            "ratio:{:032x}:{:032x}",
            regraft_ir::key::canonical_key(self.model.graph()),
            regraft_ir::key::canonical_key(&candidate.graph)
        )
    }

    /// Adds what was measured and lost to the "not done, because" list.
    pub fn explain_losers(&mut self, winner: Option<&Candidate>, candidates: &[Candidate], timings: &[Timing]) {
        let won: HashSet<&str> = winner.into_iter().flat_map(|c| c.applied.iter().map(|a| a.rule.as_str())).collect();
        let mut told: HashSet<String> = HashSet::new();
        for (candidate, timing) in candidates.iter().zip(timings.iter().skip(1)) {
            for applied in &candidate.applied {
                if !won.contains(applied.rule.as_str()) && told.insert(applied.rule.clone()) {
                    self.not_done.push(NotDone {
                        what: applied.rule.clone(),
                        at: applied.at.clone(),
                        because: format!(
                            "part of {}, which runs {:.3} times as fast as the input [{:.3}, {:.3}]",
                            candidate.name, timing.speedup.median, timing.speedup.low, timing.speedup.high
                        ),
                    });
                }
            }
        }
    }
}

/// A rewritten model must be faster beyond noise; the cleaned input must only not be slower.
fn accepted(candidate: &Candidate, speedup: &Speedup) -> bool {
    if candidate.applied.is_empty() {
        return speedup.pairs > 0 && speedup.median >= 1.0 && speedup.high >= 1.0;
    }
    speedup.pairs > 0 && speedup.low > 1.0 + MARGIN
}
