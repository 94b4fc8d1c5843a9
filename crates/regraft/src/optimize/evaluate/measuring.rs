//! Measures: candidates are profiled beside the input, and timed end to end.

use std::time::{Duration, Instant};

use regraft_cost::Ceiling;
use regraft_runtime::{SessionOptions, Startup, median};

use crate::error::Failure;
use crate::optimize::arena::{Arena, Contender, Pace};
use crate::optimize::candidate::{Candidate, Timings};
use crate::optimize::ceiling;
use crate::optimize::contest::{Contest, Outcome};
use crate::optimize::evaluate::prices::{Prices, Profiler};
use crate::optimize::evaluate::{Evaluator, check_each, ratio_key, startup_key};
use crate::optimize::headroom::Profiled;
use crate::optimize::load::Job;
use crate::optimize::standing::{MARGIN, Standing, Wanted, is_slower};
use crate::optimize::time_budget::{Runs, sitting};
use crate::optimize::verify::{Subject, verify};
use crate::report::{Check, Speedup};

/// Most processes started with one model, and fewest if what they take decides: one may be slow by
/// chance, and its peak depends a little on where its memory lies.
const STARTS: usize = 5;
const JUDGED: usize = 3;

/// An evaluator that measures.
pub struct Measuring<'a> {
    job: &'a Job,
    prices: Prices,
}

impl<'a> Measuring<'a> {
    /// With the prices known so far.
    pub fn new(job: &'a Job, prices: Prices) -> Measuring<'a> {
        Measuring { job, prices }
    }

    fn profiler(&self) -> Profiler<'a> {
        let request = &self.job.request;
        let feeds = self.job.bindings.iter().map(|binding| &binding.feeds).collect();
        Profiler { runtime: &*self.job.runtime, feeds, threads: self.job.threads, budget: request.budget }
    }
}

impl Evaluator for Measuring<'_> {
    fn prices(&self) -> &Prices {
        &self.prices
    }

    fn prices_mut(&mut self) -> &mut Prices {
        &mut self.prices
    }

    fn into_prices(self: Box<Self>) -> Prices {
        self.prices
    }

    fn learns(&self) -> bool {
        self.prices.is_measured()
    }

    fn profile_input(&mut self, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        let graph = &self.job.input.graph;
        let artifact = self.artifact(self.job.write(graph)?)?;
        self.prices.observe_input(&self.profiler(), graph, &artifact, go_on)
    }

    fn profile_first(&mut self, candidate: &Candidate, go_on: &dyn Fn() -> bool) -> Result<Runs, Failure> {
        self.prices.observe_input(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)
    }

    fn profile(&mut self, candidate: &mut Candidate, go_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
        if let Some(graph) = self.prices.closed() {
            let artifact = self.artifact(self.job.write(graph)?)?;
            self.prices.reopen(&self.profiler(), &artifact)?;
        }
        // Known prices do not replace a measurement: they may be wrong, and their sum more so.
        if !self.prices.has_input() {
            return Ok(false);
        }
        let ratio = self.prices.observe(&self.profiler(), &candidate.graph, &candidate.artifact, go_on)?;
        candidate.profiled = Some(ratio);
        candidate.predicted = self.prices.total(&candidate.graph);
        Ok(true)
    }

    fn time(&mut self, candidates: &mut [Candidate], until: Instant, each: Duration, stop: &dyn Fn() -> bool) -> Result<Timings, Failure> {
        let Job { request, bindings, runtime, threads, .. } = self.job;
        let sources = std::iter::once(self.job.source()).chain(candidates.iter().filter_map(|c| c.artifact.source()));
        let models = Contender::all(&**runtime, sources);
        let arenas = |threads: usize| -> Vec<Arena<'_>> {
            bindings.iter().map(|b| Arena { models: models.clone(), feeds: &b.feeds, threads, seed: request.seed }).collect()
        };
        let contest = Contest {
            deciding: arenas(*threads),
            single: if *threads > 1 { arenas(1) } else { Vec::new() },
            wanted: candidates.iter().map(|candidate| candidate.wanted).collect(),
            tried: candidates.iter().map(|candidate| candidate.profiled.map(|ratio| 1.0 / ratio)).collect(),
            beside_input: !self.job.input.has_subnormal(),
            each,
            until,
            pace: Pace { now: &Instant::now, stop },
        };
        let (input, outcomes) = contest.decide()?;
        drop((contest, models));
        for (candidate, Outcome { timings, took }) in candidates.iter_mut().zip(outcomes) {
            (candidate.timings, candidate.compared) = (timings, took);
            let standing = candidate.standing();
            let Timings { deciding, single } = &candidate.timings;
            let deciding = bindings.iter().zip(deciding).map(|(binding, timed)| (binding.label.clone(), candidate.wanted, timed));
            let single = bindings.iter().zip(single).filter(|(_, timed)| timed.speedup.pairs > 0);
            let single = single.map(|(binding, timed)| (binding.label_at_one_thread(), Wanted::NotSlower, timed));
            for (setting, wanted, timed) in deciding.chain(single) {
                let key = ratio_key(self.job, candidate, &setting);
                if self.prices.recall_ratio(&key).is_none_or(|known| replaces((wanted, standing), &timed.speedup, &known)) {
                    self.prices.remember_ratio(&key, timed.speedup)?;
                }
            }
        }
        Ok(input)
    }

    fn start_up(&mut self, candidate: Option<&Candidate>) -> Result<Option<Startup>, Failure> {
        let Job { request, runtime, bindings, input, .. } = self.job;
        let saved = candidate.map(|candidate| candidate.artifact.saved(input.model.has_external_data())).transpose()?;
        let file = saved.as_ref().map_or(&request.input, |(_folder, path)| path);
        let options = SessionOptions { threads: self.job.threads, ..SessionOptions::default() };
        let least = if request.limits.is_empty() { 1 } else { JUDGED };
        let (until, mut startups) = (Instant::now() + sitting(request.budget), Vec::new());
        while startups.len() < least || startups.len() < STARTS && Instant::now() < until {
            let Some(startup) = runtime.start_up(file, &bindings[0].feeds, &options)? else { return Ok(None) };
            startups.push(startup);
        }
        let of = |values: Vec<u64>| median(&values).map(|value| value as u64);
        let startup = Startup {
            load_ns: of(startups.iter().map(|startup| startup.load_ns).collect()).unwrap_or(0),
            peak_bytes: of(startups.iter().filter_map(|startup| startup.peak_bytes).collect()),
        };
        self.prices.remember_startup(&startup_key(self.job, candidate), startup)?;
        Ok(Some(startup))
    }

    fn profiled(&mut self, candidate: Option<&Candidate>, affordable: bool) -> Result<Option<Profiled>, Failure> {
        let graph = candidate.map_or(&self.job.input.graph, |candidate| &candidate.graph);
        // Graphs do not tell bodies apart.
        let is_whole = candidate.is_none_or(|candidate| candidate.script.bodies.is_empty());
        if let Some(profiled) = self.prices.profiled(graph).filter(|_| is_whole) {
            return Ok(Some(profiled));
        }
        if !affordable || candidate.is_none() && self.job.refusal.is_some() {
            return Ok(None);
        }
        let written = candidate.is_none().then(|| self.artifact(self.job.write(graph)?)).transpose()?;
        let Some(artifact) = written.as_ref().or(candidate.map(|candidate| &candidate.artifact)) else { return Ok(None) };
        let until = Instant::now() + sitting(self.job.request.budget);
        self.prices.profile(&self.profiler(), graph, artifact, &|| Instant::now() < until)
    }

    fn ceiling(&mut self, affordable: bool) -> Result<Option<Ceiling>, Failure> {
        let known = self.prices.recall_ceiling();
        if known.is_some() || !affordable {
            return Ok(known);
        }
        let nothing = Ceiling { flops: 0.0, bandwidth: 0.0 };
        self.renewed_ceiling(nothing).map(Some)
    }

    fn renewed_ceiling(&mut self, known: Ceiling) -> Result<Ceiling, Failure> {
        let ceiling = known.max(ceiling::measure(&*self.job.runtime, self.job.threads)?);
        self.prices.remember_ceiling(ceiling)?;
        Ok(ceiling)
    }

    /// A rewritten model must be faster beyond noise; the cleaned input need only not be slower.
    fn wins(&self, candidate: &Candidate) -> bool {
        let speedup = candidate.timed().speedup;
        candidate.is_compared()
            && match candidate.wanted {
                Wanted::Faster => speedup.low > 1.0 + MARGIN,
                Wanted::NotSlower => !is_slower(&speedup),
            }
    }

    fn check(&self, candidate: &Candidate, deadline: Instant) -> Check {
        check_whole(self.job, candidate, deadline)
    }
}

/// Whether a new comparison of a candidate that stands like this replaces that of an earlier run:
/// if it is decided, and is not the same with less evidence.
fn replaces((wanted, standing): (Wanted, Standing), new: &Speedup, known: &Speedup) -> bool {
    let same = Standing::of(wanted, std::slice::from_ref(known), &[]) == standing;
    standing != Standing::Open && !(same && known.pairs > new.pairs)
}

/// The numeric check of a candidate that can be run as a whole.
pub fn check_whole(job: &Job, candidate: &Candidate, deadline: Instant) -> Check {
    let Some(rewritten) = candidate.artifact.source() else { return Check::default() };
    check_each(job, |binding| verify(&Subject { job, candidate, rewritten, binding, deadline }))
}
