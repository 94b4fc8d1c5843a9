//! The measured cost model: prices from what a runtime actually ran.

use regraft_ir::{Bindings, Graph, NodeId};
use regraft_runtime::Profile;

use crate::attribute::{Attribution, Charge};
use crate::collateral::Usual;
use crate::fingerprint::fingerprint;
use crate::model::{CostModel, Ns};
use crate::names::NameTable;
use crate::predict::Guesses;
use crate::roofline::{Machine, is_fused};
use crate::signature::Signature;
use crate::table::{Table, is_priced};
use crate::workload::Workload;

/// Optimistic guesses are this factor of the roofline, so that the search tries what was never
/// measured; measuring corrects them.
pub(crate) const OPTIMISM: f64 = 0.7;
/// Pessimistic guesses are this factor of it: what is not measured must promise a lot.
const CAUTION: f64 = 1.6;
/// Largest cost of one kernel besides its own time, ns.
const MAX_DISPATCH: f64 = 2_000.0;
/// Largest cost of one run besides its kernels, ns.
const MAX_OVERHEAD: f64 = 30_000.0;
/// Largest time that recording a profile adds to the recorded time of a kernel, ns: it leaves
/// colder caches to the next kernel.
const MAX_RECORDING: f64 = 2_500.0;
/// Smallest fraction of a kernel's recorded time that is its own.
const MIN_OWN: f64 = 0.25;
/// Largest factor between the sum of a profile and the run that it is scaled to, either way.
const MAX_PROFILE_ERROR: f64 = 4.0;
/// A kernel that runs longer than this, ns, is likely to be interrupted in every run on a busy
/// machine: elapsed time that was not processor time is subtracted from these kernels first.
const SLICE: f64 = 2_500_000.0;
/// Largest drift factor of the machine's speed between sittings, either way.
const MAX_DRIFT: f64 = 4.0;
/// Share of a model's time that must be known before its drift can be computed.
const MIN_SHARED: f64 = 0.5;

/// A profiled model of a sitting.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The graph as written.
    pub graph: &'a Graph,
    /// How it was written.
    pub names: &'a NameTable,
    /// Its profile, optimized graph included.
    pub profile: &'a Profile,
    /// Median of whole runs without profiling, ns, if timed in the same sitting; otherwise the
    /// first model's fit is used.
    pub run_ns: Option<f64>,
}

/// What was learned from one profiled model.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Where the time went, as profiled.
    pub attribution: Attribution,
    /// Whole run, ns: as timed, or else the sum of its nodes; corrected for drift.
    pub run_ns: f64,
    /// Share of the profile that belongs to no node.
    pub unattributed: f64,
    /// How profile and run were fitted to each other.
    pub fit: Fit,
    /// New times were multiplied by this to be comparable with earlier ones.
    pub drift: f64,
}

/// How to guess unmeasured prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pricing {
    /// Below the truth, to find what is worth measuring.
    #[default]
    Optimistic,
    /// Above the truth, to exploit what was measured: of many forms of which each was measured
    /// once, the one that seems fastest was lucky as well.
    Pessimistic,
}

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Nothing runs: an input or a constant cone.
    Free,
    /// Measured in this context.
    Measured,
    /// Measured in other contexts: the smallest price of the most similar ones, or the largest of
    /// all under [`Pricing::Pessimistic`].
    OtherContext,
    /// Not measured: a bound from the side of the pricing mode.
    Guess,
}

impl Source {
    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Source::Free => "free",
            Source::Measured => "measured",
            Source::OtherContext => "other-context",
            Source::Guess => "guess",
        }
    }
}

/// How much of a graph's price is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Nodes measured in their context.
    pub known: usize,
    /// Nodes not measured in their context, ascending.
    pub unknown: Vec<NodeId>,
    /// Part of the total that rests on them.
    pub unknown_ns: Ns,
}

/// Prices from measurements; see the laws of [`CostModel`].
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Values of the symbols.
    pub bindings: Bindings,
    /// How guesses are made.
    pub pricing: Pricing,
    pub(crate) table: Table,
    pub(crate) machine: Machine,
    pub(crate) overhead: f64,
    /// What was never measured; by the roofline if there are none.
    pub(crate) guesses: Option<Guesses>,
    /// Whole runs by fingerprint: ns, overhead.
    pub(crate) runs: std::collections::BTreeMap<String, (f64, f64)>,
}

impl Measured {
    /// A model without any measurements.
    pub fn new(bindings: Bindings) -> Measured {
        Measured { bindings, ..Measured::default() }
    }

    /// The prices.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The speeds that guesses are based on.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The same prices for another model, whose symbols have these values.
    pub fn lent(&self, bindings: Bindings) -> Measured {
        Measured { bindings, ..self.clone() }
    }

    /// Takes over what was learned since the prices were lent.
    pub fn take_back(&mut self, lent: Measured) {
        (self.table, self.machine, self.runs, self.guesses) = (lent.table, lent.machine, lent.runs, lent.guesses);
    }

    /// As if nothing had been measured.
    pub fn forget(&mut self) {
        (self.table, self.machine, self.runs, self.overhead) = Default::default();
        self.guesses.iter_mut().for_each(Guesses::forget);
    }

    /// The price of a node in its context, and where the price comes from.
    pub fn quote(&self, graph: &Graph, id: NodeId) -> (Ns, Source) {
        if !is_priced(graph, id) {
            return (0, Source::Free);
        }
        let is_optimistic = self.pricing == Pricing::Optimistic;
        let signature = Signature::of(graph, &self.bindings, id);
        if let Some(entry) = self.table.get(&signature) {
            return (if is_optimistic { entry.price() } else { entry.cautious() }, Source::Measured);
        }
        let nearest = if is_optimistic { self.table.nearest(&signature) } else { self.table.dearest(&signature) };
        if let Some(price) = nearest {
            return (price, Source::OtherContext);
        }
        if is_fused(graph, id) {
            return (0, Source::Guess);
        }
        if let Some(predicted) = self.guesses.as_ref().and_then(|guesses| guesses.predict(&signature, &self.machine)) {
            return ((if is_optimistic { predicted.low } else { predicted.high }) as Ns, Source::Guess);
        }
        let factor = if is_optimistic { OPTIMISM } else { CAUTION };
        let load = Workload::of(graph, &self.bindings, id);
        (load.map_or(self.machine.launch, |load| factor * self.machine.time(&load)) as Ns, Source::Guess)
    }

    /// What a node takes at the speeds that were seen, ns.
    pub(crate) fn guess(&self, graph: &Graph, id: NodeId) -> f64 {
        if is_fused(graph, id) {
            return 0.0;
        }
        Workload::of(graph, &self.bindings, id).map_or(self.machine.launch, |load| self.machine.time(&load))
    }

    /// How much of a graph's price is measured.
    pub fn known(&self, graph: &Graph) -> Knowledge {
        let mut knowledge = Knowledge::default();
        for id in graph.ids() {
            match self.quote(graph, id) {
                (_, Source::Free) => {}
                (_, Source::Measured) => knowledge.known += 1,
                (price, _) => {
                    knowledge.unknown.push(id);
                    knowledge.unknown_ns = knowledge.unknown_ns.saturating_add(price);
                }
            }
        }
        knowledge
    }

    /// The whole run of a graph, ns, if it was timed before under these sizes.
    pub fn run_of(&self, graph: &Graph) -> Option<Ns> {
        self.runs.get(&fingerprint(graph, &self.bindings)).map(|(run, _)| run.round() as Ns)
    }

    /// Announces that this model will be priced: the overhead of a run is what its runs had, if it
    /// was timed here before.
    pub fn expect_model(&mut self, graph: &Graph) {
        if let Some((_, overhead)) = self.runs.get(&fingerprint(graph, &self.bindings)) {
            self.overhead = *overhead;
        }
    }

    /// Learns from models that were profiled in one sitting, interleaved; the first is the input
    /// model.
    ///
    /// Times are corrected for drift: nodes of the input model that are already known must cost
    /// what they cost before. Profiles without an optimized graph are skipped (`None`).
    pub fn observe(&mut self, sitting: &[Observation<'_>]) -> Vec<Option<Learned>> {
        let (mut drift, mut first, mut usual) = (1.0, None, Usual::default());
        let mut learned = Vec::with_capacity(sitting.len());
        for (at, one) in sitting.iter().enumerate() {
            let Some(attribution) = Attribution::of(one.graph, &self.bindings, one.names, one.profile) else {
                learned.push(None);
                continue;
            };
            let fit = match (one.run_ns, first) {
                (None, Some(fit)) => fit,
                (run_ns, _) => Fit::new(&attribution, run_ns),
            };
            first.get_or_insert(fit);
            let mut times = attribution.spread(one.graph.capacity(), |charge| fit.time(charge));
            if at == 0 {
                drift = self.drift(one.graph, &times);
            }
            times.iter_mut().for_each(|ns| *ns *= drift);
            if at == 0 {
                usual = Usual::of(one.graph, &self.bindings, &times);
            } else {
                usual.charge(one.graph, &self.bindings, &mut times);
            }
            self.table.record(one.graph, &self.bindings, &times);
            if let Some(guesses) = &mut self.guesses {
                let priced = one.graph.ids().filter(|id| is_priced(one.graph, *id));
                guesses.learn(priced.map(|id| (Signature::of(one.graph, &self.bindings, id), times[id.0 as usize])));
            }
            let total = attribution.total();
            let overhead = fit.overhead * drift;
            let run_ns = one.run_ns.map_or_else(|| times.iter().sum::<f64>() + overhead, |ns| ns * drift);
            if at == 0 {
                self.overhead = overhead;
            }
            self.runs.insert(fingerprint(one.graph, &self.bindings), (run_ns, overhead));
            let unattributed = if total > 0.0 { attribution.unattributed / total } else { 0.0 };
            learned.push(Some(Learned { run_ns, unattributed, fit, drift, attribution }));
        }
        self.machine = self.table.speeds.machine();
        learned
    }

    /// The factor that corrects new times, from the nodes of a graph whose prices are known.
    fn drift(&self, graph: &Graph, times: &[f64]) -> f64 {
        let (mut before, mut now, mut all) = (0.0, 0.0, 0.0);
        for id in graph.ids().filter(|id| is_priced(graph, *id)) {
            let ns = times[id.0 as usize];
            all += ns;
            if let Some(entry) = self.table.get(&Signature::of(graph, &self.bindings, id)) {
                before += entry.price() as f64;
                now += ns;
            }
        }
        if before <= 0.0 || now <= 0.0 || now < MIN_SHARED * all {
            return 1.0;
        }
        (before / now).clamp(1.0 / MAX_DRIFT, MAX_DRIFT)
    }
}

/// How profiled kernels add up to a run without profiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Time per kernel caused by recording alone, ns.
    pub recording: f64,
    /// Factor for kernels that were probably interrupted.
    pub long_factor: f64,
    /// Factor for all kernels.
    pub factor: f64,
    /// Time per kernel besides its own, ns.
    pub dispatch: f64,
    /// Time of a run besides its kernels, ns.
    pub overhead: f64,
}

impl Default for Fit {
    /// The profile as is.
    fn default() -> Fit {
        Fit { recording: 0.0, long_factor: 1.0, factor: 1.0, dispatch: 0.0, overhead: 0.0 }
    }
}

impl Fit {
    /// Distributes the difference between a run and the sum of its kernels. A shortfall: a bounded
    /// part per kernel, a bounded part per run, the rest in proportion. An excess: taken from
    /// kernels long enough to be interrupted, then a bounded part per kernel, then from all in
    /// proportion.
    fn new(times: &Attribution, run_ns: Option<f64>) -> Fit {
        let mut fit = Fit::default();
        let sum = times.attributed();
        let Some(run) = run_ns.filter(|run| *run > 0.0 && sum > 0.0) else { return fit };
        // Kernels that belong to no node still run.
        let run = run * sum / times.total();
        let kernels = times.kernels().count() as f64;
        let long: f64 = times.kernels().map(|c| c.ns).filter(|ns| *ns > SLICE).sum();
        let bounded = |factor: f64| factor.clamp(1.0 / MAX_PROFILE_ERROR, MAX_PROFILE_ERROR);
        if sum > run && long > 0.0 {
            fit.long_factor = bounded((run - (sum - long)) / long);
        }
        let excess = sum - long + long * fit.long_factor - run;
        fit.recording = (excess / kernels).clamp(0.0, MAX_RECORDING);
        let sum: f64 = times.kernels().map(|c| fit.time(c)).sum();
        let missing = (run - sum).max(0.0);
        if excess < 0.0 {
            fit.dispatch = (missing / kernels).min(MAX_DISPATCH);
            fit.overhead = (missing - fit.dispatch * kernels).clamp(0.0, MAX_OVERHEAD);
        }
        fit.factor = bounded((run - fit.dispatch * kernels - fit.overhead) / sum);
        fit
    }

    /// The time of a kernel in a run without profiling, ns.
    pub fn time(&self, charge: &Charge) -> f64 {
        let own = (charge.ns - self.recording).max(MIN_OWN * charge.ns);
        own * self.factor * if charge.ns > SLICE { self.long_factor } else { 1.0 } + self.dispatch
    }
}

impl CostModel for Measured {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        self.quote(graph, id).0
    }

    fn bindings(&self) -> Option<&Bindings> {
        Some(&self.bindings)
    }

    fn overhead(&self) -> Ns {
        self.overhead.round() as Ns
    }
}
