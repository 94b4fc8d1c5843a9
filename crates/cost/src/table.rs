//! Prices by signature, from observations.

use std::collections::BTreeMap;

use regraft_ir::{Bindings, Graph, Kernel, NodeId, Op};
use rustc_hash::FxHashMap;

use crate::model::Ns;
use crate::roofline::Machine;
use crate::signature::Signature;
use crate::workload::Workload;

/// Number of latest observations kept per signature: their median is its price.
const KEPT: usize = 5;
/// Standard deviation of an observation, relative: sessions of one model differ by so much.
pub(crate) const NOISE: f64 = 0.03;
/// Fewest operations of a node that may set the speed of its kernel class: below, launching
/// dominates.
const MIN_FLOPS: f64 = 200_000.0;
/// Fewest bytes of a node that may set the speed of memory.
const MIN_BYTES: f64 = 64.0 * 1024.0;
/// Share of the time of a class that its best speed must have been seen for. A kernel that computes
/// several nodes may be charged to one of them only; the others then seem to take next to nothing.
const SEEN: f64 = 0.1;
/// Largest factor between observed speeds and those of [`Machine::default`], either way: beyond, an
/// attribution went wrong.
const MAX_DEVIATION: f64 = 8.0;

/// What is known about one signature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The latest observations, ns, oldest first.
    observations: Vec<f64>,
    /// Number of all observations.
    pub count: u32,
    /// Largest minus smallest price among one observation's places, or among observations, ns.
    pub spread: f64,
    /// Not yet saved.
    pub(crate) fresh: bool,
}

impl Entry {
    /// The price: the median of the latest observations.
    pub fn price(&self) -> Ns {
        let mut sorted = self.observations.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return 0 };
        (0.5 * (sorted[last / 2] + sorted[last.div_ceil(2)])).round() as Ns
    }

    /// A price that few observations are unlikely to be below by chance.
    pub fn cautious(&self) -> Ns {
        let doubt = NOISE / f64::from(self.count.max(1)).sqrt();
        (self.price() as f64 * (1.0 + doubt)).round() as Ns
    }

    fn observe(&mut self, ns: f64, spread: f64) {
        if self.observations.len() == KEPT {
            self.observations.remove(0);
        }
        self.observations.push(ns);
        self.count = self.count.saturating_add(1);
        let low = self.observations.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.observations.iter().copied().fold(0.0, f64::max);
        self.spread = spread.max(high - low);
        self.fresh = true;
    }
}

/// The two halves of a context.
type Context = (String, String);

/// The best speeds seen, per class of kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds(BTreeMap<&'static str, f64>);

impl Speeds {
    /// Names of the classes, as the store keeps them.
    pub const CLASSES: [&'static str; 6] = ["bandwidth", "dense", "elementwise", "thin", "transcendental", "window"];

    /// Raises the speed of a class to an observed one.
    pub(crate) fn raise(&mut self, class: &'static str, speed: f64) {
        let best = self.0.entry(class).or_insert(speed);
        *best = best.max(speed);
    }

    /// Raises all speeds to those seen elsewhere.
    pub(crate) fn raise_all(&mut self, others: &Speeds) {
        others.0.iter().for_each(|(class, speed)| self.raise(class, *speed));
    }

    /// The best speed of a class: operations per ns, bytes per ns (`bandwidth`).
    pub fn get(&self, class: &str) -> Option<f64> {
        self.0.get(class).copied()
    }

    /// Raises the speeds to those of one model, of whose nodes each took so long.
    fn see(&mut self, nodes: &[(Workload, f64)]) {
        let mut seen: BTreeMap<&'static str, Vec<(f64, f64)>> = BTreeMap::new();
        for (load, ns) in nodes {
            speeds(load, *ns).into_iter().flatten().for_each(|(class, speed)| seen.entry(class).or_default().push((speed, *ns)));
        }
        for (class, mut nodes) in seen {
            nodes.sort_by(|a, b| b.0.total_cmp(&a.0));
            let least = SEEN * nodes.iter().map(|(_, ns)| ns).sum::<f64>();
            let mut so_far = 0.0;
            let best = nodes.iter().find(|(_, ns)| {
                so_far += ns;
                so_far >= least
            });
            best.into_iter().for_each(|(speed, _)| self.raise(class, *speed));
        }
    }

    /// A machine as fast as the best speeds seen; defaults where there are none.
    pub fn machine(&self) -> Machine {
        let plain = Machine::default();
        let fit = |class: &str, default: f64| {
            self.get(class).map_or(default, |speed| speed.clamp(default / MAX_DEVIATION, default * MAX_DEVIATION))
        };
        Machine {
            dense: fit("dense", plain.dense),
            thin: fit("thin", plain.thin),
            elementwise: fit("elementwise", plain.elementwise),
            transcendental: fit("transcendental", plain.transcendental),
            window: fit("window", plain.window),
            bandwidth: fit("bandwidth", plain.bandwidth),
            // The shortest times are shares of fused kernels, and say nothing of a launch.
            launch: plain.launch,
        }
    }
}

/// The speeds, by class, of a node that took so long.
fn speeds(load: &Workload, ns: f64) -> [Option<(&'static str, f64)>; 2] {
    let class = match load.work.kernel {
        Kernel::Dense => Some("dense"),
        Kernel::Thin => Some("thin"),
        Kernel::Elementwise => Some("elementwise"),
        Kernel::Transcendental => Some("transcendental"),
        Kernel::Window => Some("window"),
        Kernel::Copy | Kernel::Free => None,
    };
    let moves = matches!(load.work.kernel, Kernel::Copy | Kernel::Elementwise) && load.bytes >= MIN_BYTES;
    let computed = class.filter(|_| load.work.flops >= MIN_FLOPS);
    [computed.map(|class| (class, load.work.flops / ns)), moves.then(|| ("bandwidth", load.bytes / ns))]
}

/// Prices by signature.
#[derive(Clone, Debug, Default)]
pub struct Table {
    cores: FxHashMap<String, BTreeMap<Context, Entry>>,
    /// The best speeds seen.
    pub speeds: Speeds,
}

impl Table {
    /// What is known about exactly this signature.
    pub fn get(&self, signature: &Signature) -> Option<&Entry> {
        let context = (signature.producers.clone(), signature.readers.clone());
        self.cores.get(&signature.core)?.get(&context)
    }

    /// The smallest price of this core in the contexts most like this one.
    pub fn nearest(&self, signature: &Signature) -> Option<Ns> {
        self.alike(signature).into_iter().min()
    }

    /// Prices of this core in the contexts most like this one: those with the same producers, else
    /// those with the same readers, else all.
    pub(crate) fn alike(&self, signature: &Signature) -> Vec<Ns> {
        let Some(contexts) = self.cores.get(&signature.core) else { return Vec::new() };
        let prices = |alike: &dyn Fn(&Context) -> bool| -> Vec<Ns> {
            contexts.iter().filter(|(c, _)| alike(c)).map(|(_, entry)| entry.price()).collect()
        };
        let like: [&dyn Fn(&Context) -> bool; 3] = [&|c| c.0 == signature.producers, &|c| c.1 == signature.readers, &|_| true];
        like.into_iter().map(prices).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The largest price of this core in any context.
    pub fn dearest(&self, signature: &Signature) -> Option<Ns> {
        self.cores.get(&signature.core)?.values().map(Entry::price).max()
    }

    /// What is known about a core in every context.
    pub(crate) fn contexts(&self, core: &str) -> Vec<(Signature, &Entry)> {
        let signature =
            |(producers, readers): &Context| Signature { core: core.to_owned(), producers: producers.clone(), readers: readers.clone() };
        self.cores.get(core).into_iter().flatten().map(|(context, entry)| (signature(context), entry)).collect()
    }

    /// All signatures and what is known about them, ordered by their text.
    pub fn entries(&self) -> Vec<(Signature, &Entry)> {
        let mut all: Vec<(Signature, &Entry)> = self
            .cores
            .iter()
            .flat_map(|(core, contexts)| {
                contexts.iter().map(|((producers, readers), entry)| {
                    (Signature { core: core.clone(), producers: producers.clone(), readers: readers.clone() }, entry)
                })
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Number of signatures.
    pub fn len(&self) -> usize {
        self.cores.values().map(BTreeMap::len).sum()
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    /// Records the times of one graph: `times` by node id, ns. A signature at several places gets
    /// their mean, which preserves the sum over the graph.
    pub fn record(&mut self, graph: &Graph, bindings: &Bindings, times: &[f64]) {
        let mut places: BTreeMap<Signature, Vec<f64>> = BTreeMap::new();
        let mut loads = Vec::new();
        for id in graph.ids().filter(|id| is_priced(graph, *id)) {
            let Some(ns) = times.get(id.0 as usize).copied() else { continue };
            places.entry(Signature::of(graph, bindings, id)).or_default().push(ns);
            if ns > 0.0
                && let Some(load) = Workload::of(graph, bindings, id)
            {
                loads.push((load, ns));
            }
        }
        self.speeds.see(&loads);
        for (signature, prices) in places {
            let mean = prices.iter().sum::<f64>() / prices.len() as f64;
            let low = prices.iter().copied().fold(f64::INFINITY, f64::min);
            let high = prices.iter().copied().fold(0.0, f64::max);
            self.entry(signature).observe(mean, high - low);
        }
    }

    /// Restores what was stored.
    pub(crate) fn restore(&mut self, signature: Signature, price: Ns, spread: Ns, count: u32) {
        let weight = (count as usize).clamp(1, KEPT);
        *self.entry(signature) = Entry { observations: vec![price as f64; weight], count, spread: spread as f64, fresh: false };
    }

    pub(crate) fn mark_saved(&mut self) {
        self.cores.values_mut().flat_map(BTreeMap::values_mut).for_each(|entry| entry.fresh = false);
    }

    fn entry(&mut self, signature: Signature) -> &mut Entry {
        self.cores.entry(signature.core).or_default().entry((signature.producers, signature.readers)).or_default()
    }
}

/// Whether a node has a price at all: inputs and constant cones cost nothing.
pub fn is_priced(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    !node.constant && !matches!(node.op, Op::Input(_))
}
