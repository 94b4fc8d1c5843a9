//! A model, and what each rule makes of it, profiled without a search: the prices that a search on
//! another machine will ask for.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regraft_cost::{Measured, RecordedModel, Signature, Target, Workload, describe, deviation, is_priced};
use regraft_ir::{Bindings, Graph, Kernel};
use regraft_runtime::{Runtime, SessionOptions, Store, TimingOptions, median, quantile, time_interleaved};
use regraft_search::{Matcher, Spread, meets};
use rustc_hash::FxHashMap;

use crate::error::Failure;
use crate::optimize::artifact::Artifact;
use crate::optimize::binding::Binding;
use crate::optimize::evaluate::{Prices, Profiler};
use crate::optimize::load::{Job, load};
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::request::Request;
use crate::optimize::time_budget::TimeBudget;
use crate::optimize::tune::{Proposal, everywhere, explored, spread};
use crate::record::RecordRequest;
use crate::recording::digest;

/// Sessions in which whole runs are timed: where one lands in memory shifts its times.
const SITTINGS: usize = 5;
/// Fewest and most runs in each of them.
const ROUNDS: (usize, usize) = (4, 100);
/// Share of the time that whole runs take.
const WHOLE: f64 = 0.25;

/// Measures one model with so many threads: prices go to the store, classes of kernels to
/// `kernels`. Returns the model at each of its sizes, and warnings.
pub fn rehearse(
    request: &RecordRequest,
    runtime: &Arc<dyn Runtime>,
    (model, store, threads): (&Path, &Path, usize),
    kernels: &mut FxHashMap<String, Kernel>,
    observer: &mut dyn Observer,
) -> Result<(Vec<RecordedModel>, Vec<String>), Failure> {
    let start = Instant::now();
    let mut clock = TimeBudget::new(start, request.budget);
    let mut run = Request::new(model, "");
    (run.shapes, run.binds) = (request.shapes.clone(), request.binds.clone());
    (run.threads, run.seed, run.budget) = (Some(threads), request.seed, request.budget);
    (run.runtime, run.cost_store) = (request.runtime.clone(), Some(store.to_path_buf()));
    let (job, journal) = load(&run, &|| Ok(runtime.clone()), &mut clock, observer)?;
    if job.memory.is_tight() {
        return Err(Failure::new(format!("{}: there is not memory enough to run it", model.display())));
    }
    if let Some(refusal) = &job.refusal {
        let failure = Failure::new(format!("{}: {}", model.display(), crate::refused::Refused::from(refusal)));
        return Err(failure.hint("what was recorded would be of another model than the one that is deployed"));
    }
    let ends = start + request.budget;
    let sizes: Vec<_> = job.bindings.iter().map(|binding| &binding.sizes).collect();
    let prices = Prices::open(&job.request, (&*job.runtime, threads), &sizes, &job.input.graph)?;
    let mut rehearsal = Rehearsal { job: &job, prices, kernels, observer, ends, variants: Vec::new() };
    rehearsal.input()?;
    let whole = rehearsal.whole(start + request.budget.mul_f64(WHOLE))?;
    rehearsal.variants();
    rehearsal.prices.save()?;
    let (variants, error) = (rehearsal.variants.len(), rehearsal.error());
    drop(rehearsal);

    let (digest, name) = (digest(model)?, model.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
    let store = Store::open_frozen(store)?;
    let recorded = |(binding, runs): (&Binding, Vec<u64>)| {
        let target = Target::here(&*job.runtime, threads as u32);
        let measured = Measured::load(binding.sizes.symbols.clone(), &store, &target)?;
        let rows = describe(&measured, &job.input.graph, usize::MAX);
        let quartile = |q: f64| quantile(&runs, q).unwrap_or(0.0);
        Ok(RecordedModel {
            name: name.clone(),
            digest: digest.clone(),
            shapes: binding.sizes.inputs.iter().map(|input| (input.name.clone(), input.shape.clone())).collect(),
            run_ns: median(&runs).unwrap_or(0.0),
            spread_ns: quartile(0.75) - quartile(0.25),
            runs: runs.len(),
            variants,
            error,
            profile: rows.into_iter().map(|row| (row.name, row.signature, row.ns)).collect(),
        })
    };
    let models = job.bindings.iter().zip(whole).map(recorded).collect::<Result<_, Failure>>()?;
    Ok((models, journal.warnings))
}

/// Measurements of one model.
struct Rehearsal<'a> {
    job: &'a Job,
    prices: Prices,
    kernels: &'a mut FxHashMap<String, Kernel>,
    observer: &'a mut dyn Observer,
    ends: Instant,
    /// Rewritten models that were profiled, and their times relative to the input's.
    variants: Vec<(Graph, f64)>,
}

impl<'a> Rehearsal<'a> {
    fn profiler(&self, budget: Duration) -> Profiler<'a> {
        let job = self.job;
        let feeds = job.bindings.iter().map(|binding| &binding.feeds).collect();
        Profiler { runtime: &*job.runtime, feeds, threads: job.threads, budget }
    }

    /// Profiles the input.
    fn input(&mut self) -> Result<(), Failure> {
        self.observer.phase(Phase::Measure, "the input");
        let (job, profiler, ends) = (self.job, self.profiler(self.job.request.budget), self.ends);
        let artifact = Artifact::runnable(job.write(&job.input.graph)?)?;
        let observer = &*self.observer;
        self.prices.observe_input(&profiler, &job.input.graph, &artifact, &|| Instant::now() < ends && !observer.interrupted())?;
        self.classify(&job.input.graph);
        Ok(())
    }

    /// Whole runs of the file at every binding, ns, in new sessions each.
    fn whole(&mut self, until: Instant) -> Result<Vec<Vec<u64>>, Failure> {
        self.observer.phase(Phase::Measure, "whole runs");
        let (job, observer) = (self.job, &*self.observer);
        let options = SessionOptions { threads: job.threads, ..SessionOptions::default() };
        let sittings = SITTINGS * job.bindings.len();
        let mut all = vec![Vec::new(); job.bindings.len()];
        for sitting in 0..sittings {
            let at = sitting % job.bindings.len();
            if sitting >= job.bindings.len() && (Instant::now() >= until || observer.interrupted()) {
                break;
            }
            let begun = Instant::now();
            let share = until.saturating_duration_since(begun) / (sittings - sitting) as u32;
            let mut session = job.runtime.open(job.source(), &options)?;
            session.bind(&job.bindings[at].feeds)?;
            let timing = TimingOptions { min_rounds: ROUNDS.0, max_rounds: ROUNDS.1, ..TimingOptions::default() };
            let mut go_on = || begun.elapsed() < share && !observer.interrupted();
            let samples = time_interleaved(&mut [&mut *session], &timing, &mut go_on)?;
            all[at].extend(samples.sessions.into_iter().flatten());
        }
        Ok(all)
    }

    /// Profiles what each rule makes of the input, as far as the time suffices: first another
    /// choice in each repetition of a block, which tells most at once. What cannot be written or
    /// run tells nothing.
    fn variants(&mut self) {
        let job = self.job;
        let (library, start) = (&job.rules.library, &job.input.graph);
        let ends = self.ends;
        let mut budget = || Instant::now() >= ends;
        let writable = job.writable();
        let mut matcher = Matcher::new(library, &writable);
        let first = spread(Spread { keeps_pieces: false }, start, self.prices.model(), &mut matcher, &mut budget);
        let mut seen: Vec<u128> = Vec::new();
        self.profile(first, "a choice in each block", &mut seen);
        for rule in library.rules() {
            if self.is_over() {
                return;
            }
            if meets(start, rule) || rule.explore {
                let variant = self.variant(&mut matcher, rule);
                self.profile(variant, &rule.name, &mut seen);
            }
        }
    }

    /// What one rule makes of the input.
    fn variant(&self, matcher: &mut Matcher<'_>, rule: &regraft_rules::Rule) -> Option<Proposal> {
        let (start, prices) = (&self.job.input.graph, self.prices.model());
        if rule.explore {
            return explored(start, prices, matcher, rule);
        }
        let alone = matcher.library().clone().filter(|other| other.name == rule.name);
        everywhere(start, prices, &mut Matcher::new(&alone, matcher.writable()), &|_| true)
    }

    fn profile(&mut self, variant: Option<Proposal>, name: &str, seen: &mut Vec<u128>) {
        let Some(variant) = variant.filter(|variant| !seen.contains(&variant.key)) else { return };
        seen.push(variant.key);
        if self.is_over() || self.prices.knows(&variant.graph) {
            return;
        }
        self.observer.phase(Phase::Measure, name);
        let Ok(artifact) = self.job.write(&variant.graph).and_then(Artifact::runnable) else { return };
        let (ends, observer, profiler) = (self.ends, &*self.observer, self.profiler(self.job.request.budget));
        let go_on = || Instant::now() < ends && !observer.interrupted();
        if let Ok(ratio) = self.prices.observe(&profiler, &variant.graph, &artifact, &go_on) {
            self.classify(&variant.graph);
            self.variants.push((variant.graph, ratio));
        }
    }

    /// How far the prices are off about the rewritten models that they come from.
    fn error(&self) -> f64 {
        let input = self.prices.total(&self.job.input.graph).max(1) as f64;
        let off = |(graph, ratio): &(Graph, f64)| (self.prices.total(graph).max(1) as f64 / input / ratio).ln();
        deviation(&self.variants.iter().map(off).collect::<Vec<_>>())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.ends || self.observer.interrupted()
    }

    /// Notes the classes of a graph's kernels.
    fn classify(&mut self, graph: &Graph) {
        for binding in &self.job.bindings {
            let symbols: &Bindings = &binding.sizes.symbols;
            for id in graph.ids().filter(|id| is_priced(graph, *id)) {
                if let Some(load) = Workload::of(graph, symbols, id) {
                    self.kernels.insert(Signature::of(graph, symbols, id).core, load.work.kernel);
                }
            }
        }
    }
}
