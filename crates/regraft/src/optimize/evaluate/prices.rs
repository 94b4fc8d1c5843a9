//! The price list of a run: the roofline, or measurements on the runtime and those from the store.
//!
//! With several bindings of the sizes there is a list for each. A search goes by all of them: the
//! price of a node is its mean share of the input's time, so that a sum of prices orders graphs as
//! the mean of their times relative to the input's does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_cost::{
    Attribution, Carried, Ceiling, CostModel, Measured, NameTable, Ns, Observation, Operators, Prediction, Pricing, Roofline, Target,
};
use regraft_ir::key::canonical_key;
use regraft_ir::{Bindings, Graph, NodeId};
use regraft_onnx::Written;
use regraft_runtime::{
    Feeds, Profile, ProfileSubject, Profiling, Runtime, Session, SessionOptions, Startup, Store, TimingOptions, default_store_path, median,
    time_interleaved,
};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Failure;
use crate::optimize::artifact::Artifact;
use crate::optimize::headroom::Profiled;
use crate::optimize::request::{CostKind, Request};
use crate::optimize::time_budget::{Runs, fewest, is_long, sitting};
use crate::optimize::tune::TuningRecord;
use crate::report::Speedup;
use crate::sizes::Sizes;

/// Maximum runs of a model per sitting.
const MOST: usize = 100;
/// Runs that are done even if time is up.
const FEWEST: usize = 3;
/// Ratios are stored in millionths.
const RATIO_UNIT: f64 = 1e6;
/// Key of what the machine reaches.
const CEILING: &str = "ceiling";

/// Where prices come from, and the store behind them.
pub struct Prices {
    sites: Sites,
    /// The input, open for all sittings.
    input: Option<Box<dyn Session>>,
    store: Option<Store>,
    target: Target,
}

/// The price lists of all bindings; there is at least one.
struct Sites(Vec<Site>);

/// The price list of one binding.
struct Site {
    source: Source,
    /// What a nanosecond here counts.
    weight: f64,
}

enum Source {
    Roofline(Roofline),
    Operators(Operators),
    Measured(Box<Lab>),
}

/// Measured prices, and how the input ran.
struct Lab {
    measured: Measured,
    /// Prices of another machine, if those count: what was measured here only completes them.
    carried: Option<Carried>,
    input: Option<Input>,
    /// All models that this run profiled, the input too, once tuning is over.
    profiled: Vec<Seen>,
    /// Models that this run profiled beside the input.
    seen: Vec<Seen>,
    /// Whether prices of earlier runs are among the measured ones.
    recalled: bool,
}

/// A model that was profiled beside the input.
struct Seen {
    graph: Graph,
    names: NameTable,
    profile: Profile,
    /// Median of whole runs of the input and of this model in the same sitting, ns.
    run_ns: (f64, f64),
}

struct Input {
    graph: Graph,
    names: NameTable,
    profile: Profile,
    /// Median of whole runs in the first sitting, ns.
    run_ns: f64,
}

/// Opens the store that a request names, or the default one.
pub fn open_store(path: Option<&PathBuf>, frozen: bool) -> Result<Store, Failure> {
    let path = match path {
        Some(path) => path.clone(),
        None => default_store_path().map_err(|e| Failure::new(e).hint("name a store with --cost-store"))?,
    };
    Ok(if frozen { Store::open_frozen(&path)? } else { Store::open(&path)? })
}

impl Lab {
    fn new(measured: Measured) -> Lab {
        Lab { measured, carried: None, input: None, profiled: Vec::new(), seen: Vec::new(), recalled: false }
    }

    /// The same prices for another model, or at other sizes.
    fn lent(&self, bindings: &Bindings) -> Lab {
        let carried = self.carried.as_ref().map(|carried| carried.lent(bindings.clone()));
        Lab { carried, ..Lab::new(self.measured.lent(bindings.clone())) }
    }

    /// What was measured since tells more of what was not recorded.
    fn carry_over(&mut self) {
        if let Some(carried) = &mut self.carried {
            carried.learn(&self.measured);
        }
    }

    /// The part of a graph's price that rests on guesses, or on prices of another machine than that
    /// which counts, ns.
    fn guessed(&self, graph: &Graph) -> Ns {
        match &self.carried {
            Some(carried) => carried.carried(&self.measured, graph).round() as Ns,
            None => self.measured.known(graph).unknown_ns,
        }
    }
}

impl CostModel for Lab {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        match &self.carried {
            Some(carried) => carried.price(&self.measured, graph, id),
            None => self.measured.price(graph, id),
        }
    }

    fn overhead(&self) -> Ns {
        self.carried.as_ref().map_or_else(|| self.measured.overhead(), |carried| carried.overhead().round() as Ns)
    }

    fn bindings(&self) -> Option<&Bindings> {
        Some(&self.measured.bindings)
    }
}

impl Site {
    fn model(&self) -> &dyn CostModel {
        match &self.source {
            Source::Roofline(roofline) => roofline,
            Source::Operators(operators) => operators,
            Source::Measured(lab) => &**lab,
        }
    }

    fn lab(&self) -> Option<&Lab> {
        if let Source::Measured(lab) = &self.source { Some(lab) } else { None }
    }

    /// Part of a price.
    fn share(&self, ns: Ns) -> f64 {
        self.weight * ns as f64
    }
}

impl Sites {
    fn labs(&mut self) -> impl Iterator<Item = &mut Lab> {
        self.0.iter_mut().filter_map(|site| if let Source::Measured(lab) = &mut site.source { Some(&mut **lab) } else { None })
    }

    fn blend(&self, price: impl Fn(&Site) -> Ns) -> Ns {
        self.0.iter().map(|site| site.share(price(site))).sum::<f64>().round() as Ns
    }

    /// Weighs the lists such that this graph, the input, takes the same time under each of them:
    /// that under the first.
    fn weigh(&mut self, input: &Graph) {
        let totals: Vec<f64> = self.0.iter().map(|site| site.model().total(input).max(1) as f64).collect();
        let lists = self.0.len() as f64;
        self.0.iter_mut().zip(&totals).for_each(|(site, total)| site.weight = totals[0] / total / lists);
    }
}

impl CostModel for Sites {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        self.blend(|site| site.model().price(graph, id))
    }

    fn overhead(&self) -> Ns {
        self.blend(|site| site.model().overhead())
    }

    fn bindings(&self) -> Option<&Bindings> {
        let [site] = self.0.as_slice() else { return None };
        site.model().bindings()
    }
}

impl Prices {
    /// Prices as requested, of runs with so many threads at each of these sizes.
    pub fn open(request: &Request, (runtime, threads): (&dyn Runtime, usize), sizes: &[&Sizes], input: &Graph) -> Result<Prices, Failure> {
        let target = Target::here(runtime, threads as u32);
        let store = open_store(request.cost_store.as_ref(), request.frozen)?;
        let source = |sizes: &&Sizes| {
            Ok::<Source, Failure>(match &request.cost {
                CostKind::Roofline => Source::Roofline(Roofline::new(sizes.symbols.clone())),
                CostKind::Operators => Source::Operators(Operators(Roofline::new(sizes.symbols.clone()))),
                CostKind::Measured => {
                    let measured = Measured::load(sizes.symbols.clone(), &store, &target)?;
                    let recalled = !measured.table().is_empty();
                    Source::Measured(Box::new(Lab { recalled, ..Lab::new(measured) }))
                }
                CostKind::Recorded(recorded) => {
                    let measured = Measured::load(sizes.symbols.clone(), &store, &target)?;
                    let carried = Carried::new(&recorded.recording, sizes.symbols.clone(), input, &measured);
                    Source::Measured(Box::new(Lab { carried: Some(carried), ..Lab::new(measured) }))
                }
            })
        };
        let sites = sizes.iter().map(|sizes| Ok(Site { source: source(sizes)?, weight: 1.0 })).collect::<Result<_, Failure>>()?;
        let mut sites = Sites(sites);
        sites.weigh(input);
        Ok(Prices { sites, input: None, store: Some(store), target })
    }

    /// The same prices for an excerpt of the model, whose symbols have these values at each
    /// binding.
    pub fn lend<'b>(&self, symbols: impl Iterator<Item = &'b Bindings>) -> Prices {
        let lent = |(site, symbols): (&Site, &Bindings)| {
            let source = match &site.source {
                Source::Roofline(roofline) => Source::Roofline(Roofline { bindings: symbols.clone(), ..roofline.clone() }),
                Source::Operators(_) => Source::Operators(Operators(Roofline::new(symbols.clone()))),
                Source::Measured(lab) => Source::Measured(Box::new(lab.lent(symbols))),
            };
            Site { source, weight: site.weight }
        };
        Prices { sites: Sites(self.sites.0.iter().zip(symbols).map(lent).collect()), input: None, store: None, target: self.target.clone() }
    }

    /// Takes over what was learned since the prices were lent.
    pub fn take_back(&mut self, mut lent: Prices) {
        for (lab, lent) in self.sites.labs().zip(lent.sites.labs()) {
            lab.measured.take_back(std::mem::take(&mut lent.measured));
            lab.carry_over();
        }
    }

    /// The price list at the first binding.
    fn first(&self) -> &Site {
        &self.sites.0[0]
    }

    /// The cost model for searching.
    pub fn model(&self) -> &dyn CostModel {
        match self.sites.0.as_slice() {
            [one] => one.model(),
            _ => &self.sites,
        }
    }

    /// Values of the model's symbols at the first binding.
    pub fn bindings(&self) -> &Bindings {
        match &self.first().source {
            Source::Roofline(roofline) | Source::Operators(Operators(roofline)) => &roofline.bindings,
            Source::Measured(lab) => &lab.measured.bindings,
        }
    }

    /// The same prices at other sizes.
    pub fn at(&self, bindings: &Bindings, pricing: Pricing) -> Box<dyn CostModel> {
        match &self.first().source {
            Source::Roofline(roofline) => Box::new(Roofline { bindings: bindings.clone(), ..roofline.clone() }),
            Source::Operators(_) => Box::new(Operators(Roofline::new(bindings.clone()))),
            Source::Measured(lab) => {
                let mut lent = lab.lent(bindings);
                lent.measured.pricing = pricing;
                Box::new(lent)
            }
        }
    }

    /// How unmeasured prices are guessed.
    pub fn set_pricing(&mut self, pricing: Pricing) {
        self.sites.labs().for_each(|lab| lab.measured.pricing = pricing);
    }

    /// Whether what was not measured counts as cheap.
    pub fn is_optimistic(&self) -> bool {
        self.first().lab().is_some_and(|lab| lab.measured.pricing == Pricing::Optimistic)
    }

    /// True if measuring can correct the prices.
    pub fn is_measured(&self) -> bool {
        self.first().lab().is_some()
    }

    /// The price of a whole graph.
    pub fn total(&self, graph: &Graph) -> Ns {
        self.model().total(graph)
    }

    /// Share of a graph's price that rests on guesses.
    pub fn guessed(&self, graph: &Graph) -> f64 {
        if !self.is_measured() {
            return 1.0;
        }
        let guessed: f64 = self.sites.0.iter().filter_map(|site| Some(site.share(site.lab()?.guessed(graph)))).sum();
        guessed / self.total(graph).max(1) as f64
    }

    /// True if prices of another machine count.
    pub fn is_recorded(&self) -> bool {
        self.first().lab().is_some_and(|lab| lab.carried.is_some())
    }

    /// What a graph takes instead of another one on the machine that prices were recorded on, at
    /// each binding; nothing if prices are of this machine.
    pub fn predictions(&self, before: &Graph, after: &Graph) -> Vec<Prediction> {
        let one = |lab: &Lab| Some(lab.carried.as_ref()?.predict(&lab.measured, before, after));
        self.sites.0.iter().filter_map(|site| one(site.lab()?)).collect()
    }

    /// Signatures that both this machine and the recording know, at the first binding.
    pub fn shared(&self) -> usize {
        self.first().lab().and_then(|lab| lab.carried.as_ref()).map_or(0, Carried::shared)
    }

    /// True if every node of the graph has a measured price in its context.
    pub fn knows(&self, graph: &Graph) -> bool {
        let knows = |site: &Site| site.lab().is_some_and(|lab| lab.measured.known(graph).unknown.is_empty());
        self.sites.0.iter().all(knows)
    }

    /// Whether sittings are possible: the input was profiled in this run.
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Profiles the input at every binding and keeps it open: every later sitting runs beside it.
    pub fn observe_input(
        &mut self,
        profiler: &Profiler<'_>,
        graph: &Graph,
        artifact: &Artifact,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Runs, Failure> {
        let mut all = Runs::default();
        for (lab, feeds) in self.sites.labs().zip(&profiler.feeds) {
            let (mut session, profile, runs, once) = profiler.profile(artifact, feeds, go_on)?;
            let start = Instant::now();
            let samples = time_interleaved(&mut [&mut *session], &timing(runs, once), &mut || go_on())?;
            let run_ns = median(&samples.sessions[0]).unwrap_or(once);
            all.one += Duration::from_nanos(run_ns as u64);
            all.all += start.elapsed() + Duration::from_nanos(profile.runs.iter().sum());
            let names = names(&artifact.written);
            lab.measured.observe(&[Observation { graph, names: &names, profile: &profile, run_ns: Some(run_ns) }]);
            lab.carry_over();
            lab.input = Some(Input { graph: graph.clone(), names, profile, run_ns });
            self.input.get_or_insert(session);
        }
        self.sites.weigh(graph);
        Ok(all)
    }

    /// Profiles a rewritten model at every binding and times it beside the input; corrects the
    /// prices. Returns its time relative to the input's, the geometric mean over the bindings.
    pub fn observe(
        &mut self,
        profiler: &Profiler<'_>,
        graph: &Graph,
        artifact: &Artifact,
        go_on: &dyn Fn() -> bool,
    ) -> Result<f64, Failure> {
        let (lists, Some(beside)) = (self.sites.0.len(), &mut self.input) else { return Ok(1.0) };
        let mut ratios = 0.0;
        for (lab, feeds) in self.sites.labs().zip(&profiler.feeds) {
            let Some(input) = &lab.input else { continue };
            let (mut session, profile, runs, once) = profiler.profile(artifact, feeds, go_on)?;
            if lists > 1 {
                beside.bind(feeds)?;
            }
            let samples = time_interleaved(&mut [&mut **beside, &mut *session], &timing(runs, once), &mut || go_on())?;
            drop(session);
            let (before, after) =
                (median(&samples.sessions[0]).unwrap_or(input.run_ns), median(&samples.sessions[1]).unwrap_or(input.run_ns));
            let names = names(&artifact.written);
            let seen = Seen { graph: graph.clone(), names, profile, run_ns: (before, after) };
            learn(&mut lab.measured, input, &seen);
            lab.carry_over();
            lab.seen.push(seen);
            ratios += (after / before).ln();
        }
        Ok((ratios / lists as f64).exp())
    }

    /// Whether searches go by prices of earlier runs, too.
    pub fn are_recalled(&self) -> bool {
        self.sites.0.iter().filter_map(Site::lab).any(|lab| lab.recalled && lab.input.is_some())
    }

    /// Sets aside what earlier runs learned: from now on, prices are what this run saw.
    pub fn doubt(&mut self) -> Result<(), Failure> {
        self.save()?;
        for lab in self.sites.labs() {
            let Some(input) = &lab.input else { continue };
            lab.measured.forget();
            lab.measured.observe(&[input.observation(input.run_ns)]);
            lab.seen.iter().for_each(|seen| learn(&mut lab.measured, input, seen));
            lab.recalled = false;
        }
        Ok(())
    }

    /// Writes what was learned to the store.
    pub fn save(&mut self) -> Result<(), Failure> {
        if let Some(store) = &mut self.store {
            self.sites.labs().try_for_each(|lab| lab.measured.save(store, &self.target).map(drop))?;
        }
        Ok(())
    }

    /// Closes the input's session to free its memory.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// The input, if it was profiled and its session was closed since.
    pub fn closed(&self) -> Option<&Graph> {
        let input = self.first().lab()?.input.as_ref()?;
        self.input.is_none().then_some(&input.graph)
    }

    /// Opens a session of the input again.
    pub fn reopen(&mut self, profiler: &Profiler<'_>, artifact: &Artifact) -> Result<(), Failure> {
        let (Some(model), Some(feeds)) = (artifact.source(), profiler.feeds.first()) else { return Ok(()) };
        let options = SessionOptions { threads: profiler.threads, ..SessionOptions::default() };
        let mut session = profiler.runtime.open(model, &options)?;
        session.bind(feeds)?;
        self.input = Some(session);
        Ok(())
    }

    /// Nothing more is profiled. What was stays known.
    pub fn release(&mut self) {
        self.close();
        for lab in self.sites.labs() {
            let input = lab.input.take();
            let seen = |Input { graph, names, profile, run_ns }| Seen { graph, names, profile, run_ns: (run_ns, run_ns) };
            lab.profiled.extend(input.map(seen));
            lab.profiled.append(&mut lab.seen);
        }
    }

    /// Where the time of a graph's runs at the first binding went, if it was profiled.
    pub fn profiled(&self, graph: &Graph) -> Option<Profiled> {
        let lab = self.first().lab()?;
        let key = canonical_key(graph);
        let seen = lab.profiled.iter().rev().find(|seen| canonical_key(&seen.graph) == key)?;
        let Seen { graph, names, profile, run_ns: (_, run_ns) } = seen;
        let attribution = Attribution::of(graph, self.bindings(), names, profile)?;
        Some(Profiled { graph: graph.clone(), attribution, run_ns: Some(*run_ns) })
    }

    /// Profiles a model alone at the first binding, to see where its time goes. Prices stay as they
    /// are.
    pub fn profile(
        &self,
        profiler: &Profiler<'_>,
        graph: &Graph,
        artifact: &Artifact,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Profiled>, Failure> {
        let Some(feeds) = profiler.feeds.first() else { return Ok(None) };
        let (_, profile, ..) = profiler.profile(artifact, feeds, go_on)?;
        let attribution = Attribution::of(graph, self.bindings(), &names(&artifact.written), &profile);
        Ok(attribution.map(|attribution| Profiled { graph: graph.clone(), attribution, run_ns: None }))
    }

    /// Stores what tuning found.
    pub fn remember_tuning(&mut self, key: &str, record: &TuningRecord) -> Result<(), Failure> {
        self.remember(key, 0, record)
    }

    /// What earlier runs found; empty if there was none, or if its format is that of another
    /// version.
    pub fn recall_tuning(&self, key: &str) -> TuningRecord {
        self.recall(key).unwrap_or_default()
    }

    /// Stores an end-to-end comparison for frozen runs.
    pub fn remember_ratio(&mut self, key: &str, speedup: Speedup) -> Result<(), Failure> {
        let Some(store) = self.store.as_mut().filter(|s| !s.is_frozen()) else { return Ok(()) };
        let millionths = |ratio: f64| (ratio * RATIO_UNIT).round() as u64;
        let row = |name: &str, ratio: f64| regraft_runtime::Measurement {
            key: self.target.key(format!("{key}:{name}")),
            median_ns: millionths(ratio),
            spread_ns: 0,
            samples: speedup.pairs as u32,
            context: "end-to-end ratio, millionths".into(),
            updated_at: 0,
        };
        store.put(&[row("median", speedup.median), row("low", speedup.low), row("high", speedup.high)])?;
        Ok(())
    }

    /// Stores the most that this machine reaches.
    pub fn remember_ceiling(&mut self, ceiling: Ceiling) -> Result<(), Failure> {
        self.remember(CEILING, 0, &ceiling)
    }

    /// The most that this machine reaches, from the store.
    pub fn recall_ceiling(&self) -> Option<Ceiling> {
        self.recall(CEILING).filter(|ceiling: &Ceiling| ceiling.flops > 0.0 && ceiling.bandwidth > 0.0)
    }

    /// Stores what it takes to start with a model, for frozen runs.
    pub fn remember_startup(&mut self, key: &str, startup: Startup) -> Result<(), Failure> {
        self.remember(key, startup.load_ns, &startup)
    }

    /// What it took to start with a model, from the store.
    pub fn recall_startup(&self, key: &str) -> Option<Startup> {
        self.recall(key)
    }

    /// Stores something, as JSON, unless the store is frozen.
    fn remember(&mut self, key: &str, median_ns: u64, what: &impl Serialize) -> Result<(), Failure> {
        let Some(store) = self.store.as_mut().filter(|s| !s.is_frozen()) else { return Ok(()) };
        let (key, context) = (self.target.key(key), serde_json::to_string(what).map_err(Failure::new)?);
        store.put(&[regraft_runtime::Measurement { key, median_ns, spread_ns: 0, samples: 1, context, updated_at: 0 }])?;
        Ok(())
    }

    /// What was stored; `None` if there is none, or if its format is that of another version.
    fn recall<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let row = self.store.as_ref()?.get(&self.target.key(key)).ok().flatten()?;
        serde_json::from_str(&row.context).ok()
    }

    /// An end-to-end comparison from the store.
    pub fn recall_ratio(&self, key: &str) -> Option<Speedup> {
        let get = |name: &str| self.store.as_ref()?.get(&self.target.key(format!("{key}:{name}"))).ok().flatten();
        let ratio = |m: &regraft_runtime::Measurement| m.median_ns as f64 / RATIO_UNIT;
        let (median, low, high) = (get("median")?, get("low")?, get("high")?);
        Some(Speedup { median: ratio(&median), low: ratio(&low), high: ratio(&high), pairs: median.samples as usize })
    }
}

impl Input {
    /// As it was profiled, in a sitting in which a run of it took so long.
    fn observation(&self, run_ns: f64) -> Observation<'_> {
        Observation { graph: &self.graph, names: &self.names, profile: &self.profile, run_ns: Some(run_ns) }
    }
}

/// Learns from a model that was profiled beside the input. The input's first profile, scaled to its
/// run time in that sitting, accounts for machine drift.
fn learn(measured: &mut Measured, input: &Input, seen: &Seen) {
    let Seen { graph, names, profile, run_ns: (before, after) } = seen;
    measured.observe(&[input.observation(*before), Observation { graph, names, profile, run_ns: Some(*after) }]);
}

fn names(written: &Written) -> NameTable {
    NameTable::new(written.values.clone()).with_nodes_of(&written.proto)
}

/// What profiles models for a run.
pub struct Profiler<'a> {
    /// The runtime.
    pub runtime: &'a dyn Runtime,
    /// Input values, one set for each binding that has prices.
    pub feeds: Vec<&'a Feeds>,
    /// Threads per operator.
    pub threads: usize,
    /// Wall time of the whole run; a sitting takes a share of it.
    pub budget: Duration,
}

impl Profiler<'_> {
    /// Opens and profiles a model. The session continues without profiling; the number of runs is
    /// what a sitting affords, and the time is that of one run in ns.
    fn profile(
        &self,
        artifact: &Artifact,
        feeds: &Feeds,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(Box<dyn Session>, Profile, usize, f64), Failure> {
        let model = artifact.source().ok_or_else(|| Failure::new("a model that is not run as a whole cannot be profiled"))?;
        let options = SessionOptions { threads: self.threads, ..SessionOptions::default() };
        let mut profiling = Profiling::open(self.runtime, ProfileSubject { model, feeds }, &options, true)?;
        // The first run allocates memory.
        profiling.run()?;
        let start = Instant::now();
        profiling.run()?;
        let once = start.elapsed().max(Duration::from_micros(1));
        let share = sitting(self.budget).as_secs_f64() / self.feeds.len() as f64;
        let runs = ((share / (3.0 * once.as_secs_f64())) as usize).clamp(fewest(once) as usize, MOST);
        // Where runs are long, the one that was timed is one of them.
        let dropped = if is_long(once) { 1 } else { 2 };
        for run in 2 - dropped..runs {
            if run >= FEWEST && !go_on() {
                break;
            }
            profiling.run()?;
        }
        let (profile, session) = profiling.finish(dropped)?;
        Ok((session, profile, runs, once.as_nanos() as f64))
    }
}

/// How so many runs are timed, of a session that has just run and took so long, ns.
fn timing(runs: usize, once: f64) -> TimingOptions {
    let warmup = usize::from(!is_long(Duration::from_nanos(once as u64)));
    TimingOptions { warmup, min_rounds: FEWEST.min(runs), max_rounds: runs, ..TimingOptions::default() }
}
