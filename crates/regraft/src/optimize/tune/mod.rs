//! Second stage: propose under the current prices, measure the proposal as a whole, correct the
//! prices, propose again.

mod backoff;
mod bodies;
mod lighten;
mod propose;
mod record;
mod rescue;
mod study;
mod turns;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Instant;

use regraft_cost::{CostModel, Operators, Pricing, Roofline};
use regraft_rules::Library;
use regraft_search::{Engine, Spread, all_moves};

pub use bodies::{Bodies, Inside, rewrite_bodies};
pub use propose::{Proposal, Proposals, everywhere, explored, place, propose, scramble, spread};
pub use record::{TuningRecord, retrace};

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::compare::FINALISTS;
use crate::optimize::observer::Phase;
use crate::optimize::open_sizes::not_shown;
use crate::optimize::run::Run;
use crate::optimize::script::Rewrite;
use crate::optimize::starting::admits;
use crate::report::{Aim, NotDone, Trial};
use rescue::{Start, refused_since, rescue};
use turns::Turns;

/// Maximum number of rounds of proposing and measuring.
const ROUNDS: usize = 30;
/// In every cycle of this many rounds, one prices unmeasured operators optimistically, one
/// explores, and one exploits what is known.
const CYCLE: usize = 3;
/// The first round that exploits.
const EXPLOITS: usize = 2;
/// The first round after an excerpt was studied. It exploits, and the next that learns does so in
/// the usual way: what each choice brings, a spread has shown in the excerpt; what only the whole
/// shows, such as how many nodes share their weights, it has not.
const STUDIED: usize = CYCLE + EXPLOITS;
/// The first round that may build on a measured candidate instead of the input.
const BUILDS_ON: usize = 4;
/// Rounds in a row without a new proposal after which tuning gives up.
const BARREN: usize = 2;
/// What takes so many times as long as the input in a trial is not compared with it.
const HOPELESS: f64 = 1.2;
/// Bytes of serialized candidates held at a time.
const HELD: u64 = 1 << 30;
/// Proposals predicted to gain less than this over the best measured one are no longer measured.
const WORTHWHILE: f64 = 0.002;
/// An exploration is tried if so much of what it costs, relative to its whole, is a guess: less can
/// hardly gain what a trial is worth.
const TELLING: f64 = 0.02;
/// What costs at most so many times as much as the input, by optimistic guesses, may turn out
/// cheaper.
const NEAR: f64 = 1.15;
/// Part of the arithmetic of a model that fewer operators may add.
const ADDED: f64 = 0.01;

/// Alternates searches and measurements.
pub struct Tuner<'r, 'a> {
    /// The run that it is part of.
    pub run: &'r mut Run<'a>,
    candidates: Vec<Candidate>,
    /// The number of the next round.
    round: usize,
    /// Whether nothing is left to try.
    over: bool,
    /// Where searches start: the input, or a model that the runtime loads where it refuses the
    /// input.
    start: Start,
    /// Rules that searches use.
    library: Library,
    /// Keys of proposals already tried.
    tried: HashSet<u128>,
    /// Keys of those that the runtime does not load because of a single rule.
    refused: HashSet<u128>,
    /// Keys of those that are faster than all others and exceed the limits.
    exceeding: HashSet<u128>,
    /// Exploratory rules already applied wherever they match; the empty name stands for all of them
    /// together.
    explored: HashSet<String>,
    /// The latest of those that exceed the limits.
    heavy: Option<Candidate>,
    /// When to ask the slower members of a portfolio.
    turns: Turns,
}

impl<'r, 'a> Tuner<'r, 'a> {
    /// Nothing is known yet.
    pub fn new(run: &'r mut Run<'a>) -> Tuner<'r, 'a> {
        let start = Start { graph: run.job.input.graph.clone(), rewrites: Vec::new() };
        let library = run.job.rules.library.clone();
        let (candidates, round, tried, refused, exceeding, explored, turns) = Default::default();
        Tuner { run, candidates, round, over: true, start, library, tried, refused, exceeding, explored, heavy: None, turns }
    }

    /// Finds candidates: the most promising first, as many as can be compared in the remaining
    /// time.
    pub fn candidates(&mut self) -> Result<Vec<Candidate>, Failure> {
        let mut candidates = self.tuned()?;
        let job = self.run.job;
        if !job.memory.is_tight() {
            let open = not_shown(&job.input.model, &job.input.graph, job.sizes(), &job.rules.library, &job.writable());
            self.run.journal.not_done.extend(open);
            candidates.extend(bodies::with_bodies(self.run, candidates.first())?);
        }
        regraft_onnx::release_weights();
        Ok(candidates)
    }

    /// Goes on after a comparison, which left time: with what it showed, finds further candidates
    /// that may be faster than those compared.
    pub fn more(&mut self, compared: Vec<Candidate>) -> Result<Vec<Candidate>, Failure> {
        let known = |mut candidate: Candidate| {
            // More runs are better evidence than those of a trial.
            if candidate.is_compared() {
                candidate.profiled = Some(1.0 / candidate.timed().speedup.median);
            }
            candidate
        };
        self.candidates.extend(compared.into_iter().map(known));
        if !self.over {
            self.over = self.rounds(self.round.max(EXPLOITS), None)? && self.prune()?;
            self.run.record.settled = self.over;
        }
        let found = self.finish()?;
        regraft_onnx::release_weights();
        Ok(found)
    }

    /// Ends tuning. Whether nothing was left to try.
    pub fn end(self) -> bool {
        self.run.evaluator.prices_mut().release();
        self.over
    }

    /// Candidates, the fastest under the profile first.
    fn tuned(&mut self) -> Result<Vec<Candidate>, Failure> {
        let known = self.run.record.proposals(self.run.job, self.run.evaluator.prices());
        let timed = self.run.evaluator.is_timed();
        let is_refused = self.run.job.refusal.is_some();
        let done = if timed { self.is_settled() } else { !known.is_empty() };
        self.run.recalled = done && timed;
        if is_refused && !done {
            if !self.rescue(known.clone())? {
                self.run.record.settled = false;
                return self.finish();
            }
        } else if done {
            self.run.phase(Phase::Search, &format!("an earlier run found {} rewritten models and nothing more", known.len()));
        } else if let Err(why) = self.profile_input() {
            // The runtime may refuse the input written anew, although it loads the file.
            let what = "the input written anew".to_string();
            self.run.journal.not_done.push(NotDone { what, at: "loading".into(), because: why.cause });
            if !self.rescue(known.clone())? {
                self.run.record.settled = false;
                return self.finish();
            }
        }
        for proposal in known {
            if !self.run.is_interrupted() && (done || !timed || self.run.clock.affords_trial()) {
                self.try_out(proposal, Aim::Remembered)?;
            }
        }
        if !done {
            self.over = self.searched()?;
            self.run.record.settled = self.over;
            self.run.record.budget = self.run.job.request.budget.as_secs_f64();
        }
        self.finish()
    }

    /// Searches, first by all prices that are known, then by those that this run saw: a price from
    /// the store may be wrong, and hides a gain for as long as it is believed. Whether everything
    /// was done in time.
    fn searched(&mut self) -> Result<bool, Failure> {
        if self.run.evaluator.prices().are_recalled() {
            let until = self.run.clock.half_tuned();
            self.rounds(0, Some(until))?;
            if self.is_out_of_time(None) {
                return Ok(false);
            }
            self.run.evaluator.prices_mut().doubt()?;
        }
        let first = if self.study()? {
            STUDIED
        } else {
            self.compare_choices()?;
            0
        };
        let settled = self.rounds(first, None)?;
        self.run.clock.renew_patience();
        Ok(settled & self.prune()?)
    }

    /// Whether an earlier run found everything this one would.
    fn is_settled(&self) -> bool {
        self.run.evaluator.prices().is_measured() && self.run.record.is_settled_for(self.run.job)
    }

    /// Saves the prices, and returns the candidates worth comparing, with those compared before.
    fn finish(&mut self) -> Result<Vec<Candidate>, Failure> {
        let candidates = std::mem::take(&mut self.candidates);
        let run = &mut *self.run;
        let prices = run.evaluator.prices_mut();
        prices.set_pricing(Pricing::Optimistic);
        prices.save()?;
        prices.close();
        let (mut compared, mut candidates): (Vec<_>, Vec<_>) = candidates.into_iter().partition(Candidate::is_compared);
        for candidate in &mut candidates {
            candidate.predicted = prices.total(&candidate.graph);
        }
        let input = prices.total(&run.job.input.graph).max(1) as f64;
        let relative = |c: &Candidate| c.profiled.unwrap_or(c.predicted as f64 / input);
        candidates.sort_by(|a, b| relative(a).total_cmp(&relative(b)));
        // What was slower in a trial than one that is faster than the input need not be compared.
        let winners = compared.iter().filter(|candidate| run.evaluator.wins(candidate)).map(relative);
        let goal = winners.min_by(f64::total_cmp).map_or(HOPELESS, |ratio| ratio * (1.0 - WORTHWHILE));
        let most = if run.evaluator.is_timed() { run.clock.finalists() } else { FINALISTS };
        let mut finalists = 0;
        for mut candidate in candidates {
            let ratio = candidate.profiled.filter(|_| run.job.refusal.is_none()).unwrap_or(0.0);
            if ratio > HOPELESS {
                let faster = 1.0 / ratio;
                let because = match run.evaluator.prices().is_recorded() {
                    true => format!("it is predicted to run {faster:.2} times as fast as the input"),
                    false => format!("it ran {faster:.2} times as fast as the input when it was tried out"),
                };
                run.journal.not_done.push(NotDone { what: candidate.name, at: "trial".into(), because });
            } else if finalists < most && ratio <= goal && admits(run, &mut candidate) {
                finalists += 1;
                compared.push(candidate);
            } else {
                self.candidates.push(candidate);
            }
        }
        Ok(compared)
    }

    fn profile_input(&mut self) -> Result<(), Failure> {
        // If the store knows the whole input, no profile is needed until a proposal holds something
        // new.
        if !self.run.evaluator.learns() {
            return Ok(());
        }
        let start = Instant::now();
        self.run.phase(Phase::Measure, "the input");
        let (until, observer) = (self.run.clock.tuning_ends(), &*self.run.observer);
        let runs = self.run.evaluator.profile_input(&|| Instant::now() < until && !observer.interrupted())?;
        self.run.clock.profiled(start.elapsed(), runs);
        self.run.journal.seconds.measure += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Finds a model that the runtime loads as deployed, where it refuses the input so. Later
    /// searches start from it, and their results are profiled beside it. False if there is none.
    fn rescue(&mut self, known: Vec<Proposal>) -> Result<bool, Failure> {
        let start = Instant::now();
        let found = rescue(self.run, known)?;
        self.run.journal.seconds.search += start.elapsed().as_secs_f64();
        let Some(mut found) = found else {
            self.run.journal.complete &= !self.is_out_of_time(None);
            return Ok(false);
        };
        self.start = Start { graph: found.graph.clone(), rewrites: found.script.main.clone() };
        self.tried.insert(Engine::new(found.graph.clone(), self.run.evaluator.prices().model()).key());
        if self.run.evaluator.learns() {
            let start = Instant::now();
            self.run.phase(Phase::Measure, &found.name);
            let (until, observer) = (self.run.clock.tuning_ends(), &*self.run.observer);
            let runs = self.run.evaluator.profile_first(&found, &|| Instant::now() < until && !observer.interrupted())?;
            self.run.clock.profiled(start.elapsed(), runs);
            self.run.journal.seconds.measure += start.elapsed().as_secs_f64();
            found.profiled = Some(1.0);
        }
        self.candidates.push(found);
        Ok(true)
    }

    /// Measures, where a block is repeated, a model with another choice in each repetition, if
    /// there is time to use what that tells.
    fn compare_choices(&mut self) -> Result<(), Failure> {
        if !self.candidates.is_empty() || !self.run.evaluator.learns() || !self.run.clock.affords_two_trials() {
            return Ok(());
        }
        match self.choices(Spread { keeps_pieces: false }) {
            Some(proposal) => self.try_out(proposal, Aim::Choices).map(drop),
            None => Ok(()),
        }
    }

    /// The input with another choice in each repetition of a block, if that tells anything new.
    fn choices(&mut self, how: Spread) -> Option<Proposal> {
        self.run.phase(Phase::Search, "what to do with blocks that are repeated");
        self.run.evaluator.prices_mut().set_pricing(Pricing::Optimistic);
        let (job, observer, until) = (self.run.job, &*self.run.observer, self.run.clock.search_ends());
        let mut budget = || Instant::now() >= until || observer.interrupted();
        let (start, prices, writable) = (&self.start, self.run.evaluator.prices(), job.writable());
        let found =
            self.run.matches.with(&self.library, &writable, |matcher| spread(how, &start.graph, prices.model(), matcher, &mut budget));
        let found = start.extend(found?);
        (prices.guessed(&found.graph) > WORTHWHILE).then_some(found)
    }

    /// Proposes and measures in turn, from this round on, until nothing new turns up; whether that
    /// was before time was up.
    fn rounds(&mut self, first: usize, until: Option<Instant>) -> Result<bool, Failure> {
        self.run.clock.renew_patience();
        let mut barren = 0;
        for round in first..ROUNDS {
            self.round = round;
            if self.is_out_of_time(until) {
                return Ok(false);
            }
            if self.run.clock.is_stale() {
                break;
            }
            self.run.phase(Phase::Search, &format!("round {}, {} rules", round + 1, self.run.job.rules.library.rules().len()));
            if round % CYCLE == 1
                && self.run.clock.affords_two_trials()
                && let Some(proposal) = self.explore()
            {
                if self.try_explored(proposal)?.is_some() {
                    barren = 0;
                }
                continue;
            }
            let proposal = self.search(round)?;
            barren = if proposal.is_some() { 0 } else { barren + 1 };
            let learns = self.run.evaluator.learns();
            match proposal {
                Some(proposal) => {
                    let aim = if self.run.evaluator.prices().is_optimistic() { Aim::Learn } else { Aim::Exploit };
                    self.try_out(proposal, aim)?;
                    self.lighten()?;
                }
                // No pricing and no exploratory rule found anything new.
                None if barren > BARREN => {
                    let further = self.run.clock.affords_two_trials().then(|| self.explore_further()).flatten();
                    let Some(proposal) = further else { break };
                    self.try_explored(proposal)?;
                    barren = 0;
                }
                None => {}
            }
            if !learns {
                break;
            }
        }
        Ok(true)
    }

    fn is_out_of_time(&self, until: Option<Instant>) -> bool {
        is_out_of_time(self.run, until)
    }

    /// The best proposal of a search, if it is new and better than those tried. Optimistic prices
    /// find what is worth measuring; pessimistic ones exploit what is known.
    fn search(&mut self, round: usize) -> Result<Option<Proposal>, Failure> {
        let start = Instant::now();
        // The last trial goes by what is known.
        let last = !self.candidates.is_empty() && !self.run.clock.affords_two_trials();
        let pessimistic = !round.is_multiple_of(CYCLE) || last || !self.run.evaluator.learns();
        self.run.evaluator.prices_mut().set_pricing(if pessimistic { Pricing::Pessimistic } else { Pricing::Optimistic });
        let best = self.fastest().filter(|_| pessimistic && round >= BUILDS_ON);
        let best = best.map(|at| &self.candidates[at]);
        let best = best.map(|best| Start { graph: best.graph.clone(), rewrites: best.script.main.clone() });
        let aim = if pessimistic { Aim::Exploit } else { Aim::Learn };
        if !pessimistic
            && spreads(round)
            && self.run.evaluator.learns()
            && let Some(found) = self.choices(Spread { keeps_pieces: true }).filter(|found| !self.tried.contains(&found.key))
        {
            self.run.journal.seconds.search += start.elapsed().as_secs_f64();
            return Ok(Some(found));
        }
        let from = best.as_ref();
        let mut proposals = found_from(self.run, &self.turns, from.unwrap_or(&self.start), &self.library, aim);
        // Other rules may lead to a model that the runtime does not load, or that exceeds the
        // limits.
        while let Some(refused) =
            proposals.best.first().filter(|p| self.refused.contains(&p.key) || self.exceeding.contains(&p.key)).cloned()
            && !self.is_out_of_time(None)
        {
            let (name, exceeds) = (self.run.next_name(), self.exceeding.contains(&refused.key));
            let Some(candidate) = self.run.realize(name, refused)? else { break };
            let left_out = if exceeds { self.leave_out_heavy(&candidate)? } else { self.leave_out_refused(&candidate)? };
            if !left_out {
                break;
            }
            proposals = found_from(self.run, &self.turns, from.unwrap_or(&self.start), &self.library, aim);
        }
        while self.run.job.request.untimed
            && let Some((rule, at)) = proposals.best.first().and_then(|proposal| self.laborious(proposal))
            && !self.is_out_of_time(None)
        {
            self.leave_out(rule, at, "fewer operators would take more arithmetic".into());
            proposals = found_from(self.run, &self.turns, from.unwrap_or(&self.start), &self.library, aim);
        }
        self.run.journal.seconds.search += start.elapsed().as_secs_f64();
        if round == 0 {
            let refused = proposals.refused.into_iter().filter(|refused| !self.run.journal.not_done.contains(refused)).collect::<Vec<_>>();
            self.run.journal.not_done.extend(refused);
        }
        let prices = self.run.evaluator.prices();
        let seen = self.candidates.iter().map(|c| prices.total(&c.graph)).min();
        let is_better = |p: &Proposal| seen.is_none_or(|best| (p.cost as f64) < best as f64 * (1.0 - WORTHWHILE));
        Ok(proposals.best.into_iter().next().filter(|p| !self.tried.contains(&p.key) && is_better(p)))
    }

    /// The fastest measured candidate, if it is faster than the input.
    fn fastest(&self) -> Option<usize> {
        let measured = self.candidates.iter().enumerate().filter_map(|(at, c)| Some((at, c.profiled?)));
        measured.filter(|(_, ratio)| *ratio < 1.0).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }

    /// Applies one exploratory rule wherever it matches, or would once prepared, if that tells
    /// prices that are not known. Later rounds combine it with others.
    fn explore(&mut self) -> Option<Proposal> {
        let Tuner { run, start: from, library, explored, .. } = self;
        let Run { job, evaluator, matches, .. } = &mut **run;
        if !evaluator.learns() {
            return None;
        }
        let (start, prices, writable) = (&from.graph, evaluator.prices(), job.writable());
        let tells = |proposal: &Proposal| prices.guessed(&proposal.graph) > TELLING;
        let found = matches.with(library, &writable, |matcher| {
            // All of them together first: if each pays, one trial is enough.
            let together = explored.insert(String::new()).then(|| everywhere(start, prices.model(), matcher, &|rule| rule.explore));
            together.flatten().filter(tells).or_else(|| {
                let mut rules = library.rules().iter().filter(|rule| rule.explore && explored.insert(rule.name.to_string()));
                rules.find_map(|rule| propose::explored(start, prices.model(), matcher, rule).filter(tells))
            })
        });
        found.map(|p| from.extend(p))
    }

    /// Tries out what an exploration proposes, which is not to be built upon.
    fn try_explored(&mut self, proposal: Proposal) -> Result<Option<f64>, Failure> {
        let ratio = self.try_out(proposal, Aim::Explore)?;
        self.heavy = None;
        Ok(ratio)
    }

    /// Applies one more rule wherever it matches, where only guesses speak against it: the one that
    /// would cost least if they are too high, among those that come near to the start.
    fn explore_further(&mut self) -> Option<Proposal> {
        self.run.evaluator.prices_mut().set_pricing(Pricing::Optimistic);
        let Tuner { run, start: from, library, explored, .. } = self;
        let Run { job, evaluator, matches, clock, .. } = &mut **run;
        let (start, prices, writable, until) = (&from.graph, evaluator.prices(), job.writable(), clock.search_ends());
        let near = prices.total(start) as f64 * NEAR;
        let best = matches.with(library, &writable, |matcher| {
            let mut engine = Engine::new(start.clone(), prices.model());
            let matching: BTreeSet<usize> = all_moves(&mut engine, matcher).iter().map(|step| step.rule).collect();
            let mut best: Option<(Proposal, &str)> = None;
            for rule in matching.into_iter().map(|rule| &library.rules()[rule]) {
                if Instant::now() >= until || explored.contains(&*rule.name) {
                    continue;
                }
                let proposal = everywhere(start, prices.model(), matcher, &|other| other.name == rule.name);
                let proposal = proposal.filter(|p| p.cost as f64 <= near && prices.guessed(&p.graph) > TELLING);
                match proposal {
                    Some(proposal) if best.as_ref().is_none_or(|(best, _)| proposal.cost < best.cost) => {
                        best = Some((proposal, &rule.name))
                    }
                    Some(_) => {}
                    None => drop(explored.insert(rule.name.to_string())),
                }
            }
            best
        });
        let (proposal, rule) = best?;
        explored.insert(rule.to_string());
        Some(from.extend(proposal))
    }

    /// Prices mislead where effects reach beyond one operator. In the remaining time, rules of the
    /// best candidate are left out one at a time, the least useful first, and stay out if the whole
    /// is faster without. False if time ran out.
    fn prune(&mut self) -> Result<bool, Failure> {
        if !self.run.evaluator.learns() {
            return Ok(true);
        }
        let (mut without, mut asked) = (HashSet::new(), HashSet::new());
        while let Some((rule, goal)) = self.least_useful(&asked) {
            if self.is_out_of_time(None) {
                return Ok(false);
            }
            if self.run.clock.is_stale() {
                break;
            }
            asked.insert(rule.clone());
            let library = self.library.clone().filter(|r| !without.contains(r.name.as_ref()) && *r.name != *rule);
            self.run.evaluator.prices_mut().set_pricing(Pricing::Pessimistic);
            let proposals = found_from(self.run, &self.turns, &self.start, &library, Aim::Prune);
            let Some(proposal) = proposals.best.into_iter().next() else { continue };
            if self.try_out(proposal, Aim::Prune)?.is_some_and(|ratio| ratio < goal * (1.0 - WORTHWHILE)) {
                without.insert(rule);
            }
        }
        Ok(true)
    }

    /// The rule of the fastest measured candidate that gains least by the prices, among those not
    /// asked about yet; and that candidate's time.
    fn least_useful(&self, asked: &HashSet<String>) -> Option<(String, f64)> {
        let measured = self.candidates.iter().filter_map(|c| Some((c, c.profiled?)));
        let (best, goal) = measured.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut gains: BTreeMap<&str, i64> = BTreeMap::new();
        for step in best.script.applied() {
            *gains.entry(&step.rule).or_default() += step.gain_ns;
        }
        let (rule, _) = gains.into_iter().filter(|(rule, _)| !asked.contains(*rule)).min_by_key(|(_, gain)| *gain)?;
        Some((rule.to_string(), goal))
    }

    /// Measures a proposal and keeps it. Returns its time relative to the input's, infinite if it
    /// was not measured; `None` if it was tried before.
    fn try_out(&mut self, proposal: Proposal, aim: Aim) -> Result<Option<f64>, Failure> {
        if !self.tried.insert(proposal.key) {
            return Ok(None);
        }
        let start = Instant::now();
        let ratio = self.measure(proposal, aim)?;
        let won = self.run.clock.tried(start.elapsed(), ratio);
        self.turns.judge(won);
        Ok(Some(ratio.unwrap_or(f64::INFINITY)))
    }

    /// Measures a proposal and keeps it. Returns its time relative to the input's, if it was
    /// measured.
    fn measure(&mut self, proposal: Proposal, aim: Aim) -> Result<Option<f64>, Failure> {
        let (start, key, nodes) = (Instant::now(), proposal.key, proposal.graph.len());
        if self.run.evaluator.is_timed() && !self.run.clock.affords_opening(nodes) {
            self.leave_out_largest(&proposal.rewrites, "a model with it at every place takes too long to open");
            return Ok(None);
        }
        let name = self.run.next_name();
        self.run.phase(Phase::Measure, &format!("{name}: {} rewrites, {nodes} nodes", proposal.rewrites.len()));
        let prices = self.run.evaluator.prices();
        let before = prices.total(&self.run.job.input.graph) as f64;
        let mut trial = Trial {
            model: name.clone(),
            aim,
            rewrites: proposal.rewrites.len(),
            predicted: before / prices.total(&proposal.graph).max(1) as f64,
            guessed: prices.guessed(&proposal.graph),
            measured: None,
            begun: start.duration_since(self.run.clock.start()).as_secs_f64(),
            seconds: 0.0,
        };
        let mut ratio = None;
        if let Some(mut candidate) = self.run.realize(name, proposal)? {
            if self.profile(&mut candidate) {
                trial.measured = candidate.profiled.filter(|_| !self.run.evaluator.prices().is_recorded()).map(f64::recip);
                if !self.leads(&candidate) || admits(self.run, &mut candidate) {
                    ratio = candidate.profiled;
                    self.run.clock.opened(nodes, start.elapsed());
                    if ratio.is_some_and(|ratio| ratio > 1.0) && self.run.clock.is_costly(start.elapsed()) {
                        self.leave_out_largest(&candidate.script.main, "a model with it at many places is slow and takes long to open");
                    }
                    self.candidates.push(candidate);
                    self.drop_slowest();
                } else {
                    self.exceeding.insert(key);
                    self.heavy = Some(candidate);
                }
            } else if self.leave_out_refused(&candidate)? {
                self.refused.insert(key);
            }
        }
        trial.seconds = start.elapsed().as_secs_f64();
        self.run.journal.seconds.measure += trial.seconds;
        if self.run.evaluator.learns() {
            self.run.journal.trials.push(trial);
        }
        Ok(ratio)
    }

    /// Profiles a candidate if needed; false, with a note, if it does not run.
    fn profile(&mut self, candidate: &mut Candidate) -> bool {
        let (until, observer) = (self.run.clock.tuning_ends(), &*self.run.observer);
        match self.run.evaluator.profile(candidate, &|| Instant::now() < until && !observer.interrupted()) {
            Ok(measured) => self.run.journal.measured += usize::from(measured),
            Err(why) => {
                self.run.journal.not_done.push(NotDone { what: candidate.name.clone(), at: "loading".into(), because: why.cause });
                return false;
            }
        }
        if let Some(ratio) = candidate.profiled {
            let by = if self.run.evaluator.prices().is_recorded() { " by recorded prices" } else { "" };
            self.run.phase(Phase::Measure, &format!("{}: {:.3} times as fast as the input{by}", candidate.name, 1.0 / ratio));
        }
        true
    }

    /// Leaves out the rule that made most of the nodes of a model.
    fn leave_out_largest(&mut self, rewrites: &[Rewrite], because: &str) {
        let mut made: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for rewrite in rewrites {
            let (nodes, _) = made.entry(&rewrite.applied.rule).or_insert((0, &rewrite.applied.at));
            *nodes += rewrite.step.makes();
        }
        let Some((rule, (_, at))) = made.into_iter().max_by_key(|(_, (nodes, _))| *nodes) else { return };
        self.leave_out(rule.to_string(), at.to_string(), format!("{because}, and it was left out"));
    }

    /// Leaves a rule out of later searches, with the place and the reason.
    fn leave_out(&mut self, what: String, at: String, because: String) {
        self.library = std::mem::take(&mut self.library).filter(|r| *r.name != *what);
        self.run.journal.not_done.push(NotDone { what, at, because });
    }

    /// Where a model with fewer operators takes more arithmetic, the rule that adds most, and a
    /// place.
    fn laborious(&self, proposal: &Proposal) -> Option<(String, String)> {
        let roofline = Roofline::new(self.run.job.sizes().symbols.clone());
        let (before, after) = (roofline.total(&self.run.job.input.graph), roofline.total(&proposal.graph));
        if after as f64 <= before as f64 * (1.0 + ADDED) {
            return None;
        }
        let mut added: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for applied in proposal.rewrites.iter().map(|rewrite| &rewrite.applied) {
            let (ns, _) = added.entry(&applied.rule).or_insert((0, &applied.at));
            *ns -= Operators::parts(applied.gain_ns).1;
        }
        let (rule, (ns, at)) = added.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
        (ns > 0).then(|| (rule.to_owned(), at.to_owned()))
    }

    /// Whether a candidate was measured to be faster than those before.
    fn leads(&self, candidate: &Candidate) -> bool {
        let best = self.fastest().and_then(|at| self.candidates[at].profiled);
        candidate.profiled.is_some_and(|ratio| ratio < best.unwrap_or(1.0))
    }

    /// Of a candidate that the runtime does not load, leaves out the rule after which it refuses
    /// it, so that what else was proposed is not lost; false if there is no such rule.
    fn leave_out_refused(&mut self, candidate: &Candidate) -> Result<bool, Failure> {
        let found = refused_since(self.run, &self.library, &self.start, candidate)?;
        let Some((rule, at, cause)) = found else { return Ok(false) };
        self.leave_out(rule, at, format!("the runtime does not load the model after it, and it was left out: {cause}"));
        Ok(true)
    }

    /// Serialized models take memory: beyond a bound, the slowest are dropped.
    fn drop_slowest(&mut self) {
        let held = |candidates: &[Candidate]| candidates.iter().map(|c| c.artifact.written.size()).sum::<u64>();
        while self.candidates.len() > FINALISTS && held(&self.candidates) > HELD {
            let ratio = |at: &usize| self.candidates[*at].profiled.unwrap_or(1.0);
            let Some(slowest) = (0..self.candidates.len()).max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else { return };
            self.candidates.remove(slowest);
        }
    }
}

/// What a search finds from a rewritten model, whose rewrites come first; its members take turns.
fn found_from(run: &mut Run<'_>, turns: &Turns, start: &Start, library: &Library, aim: Aim) -> Proposals {
    let clock = run.evaluator.is_timed().then_some(&run.clock);
    let search = turns.of(run.job.request.search, aim == Aim::Learn, clock);
    let found = run.search(&start.graph, library, &search, run.clock.tuning_ends());
    Proposals { best: found.best.into_iter().map(|proposal| start.extend(proposal)).collect(), ..found }
}

/// Whether a round that learns tries another choice in each repetition of a block: every other one
/// does, since a spread tells of many choices and little of how they combine.
fn spreads(round: usize) -> bool {
    (round / CYCLE) % 2 == 1
}

fn is_out_of_time(run: &Run<'_>, until: Option<Instant>) -> bool {
    let is_timed = run.evaluator.is_timed();
    let is_late = !run.clock.affords_trial() || until.is_some_and(|until| Instant::now() >= until);
    run.is_interrupted() || is_timed && is_late
}
