//! Prices of another machine, as far as they were recorded there, and those of this one carried
//! over.

use std::collections::BTreeMap;

use regraft_ir::{Bindings, Graph, Kernel, NodeId};
use rustc_hash::FxHashMap;

use crate::measured::{Measured, Pricing};
use crate::model::Ns;
use crate::recording::{Recording, word};
use crate::signature::Signature;
use crate::table::{Entry, NOISE, is_priced};
use crate::workload::Workload;

/// Smallest price that tells of a class of kernels, ns: smaller ones are shares of fused kernels,
/// or the clock's.
const TELLING: f64 = 500.0;
/// Fewest signatures that both sides know for a class of kernels to have a ratio of its own.
const FEWEST: usize = 3;
/// A price is the median of no more observations than this, whatever their number.
const KEPT: u32 = 5;
/// Smallest standard deviation of the logarithm of a ratio: two machines never differ by one
/// factor.
const LEAST_DOUBT: f64 = 0.1;
/// That of a ratio that other classes lend.
const LENT_DOUBT: f64 = 0.4;
/// That where nothing is known on both sides.
const BLIND_DOUBT: f64 = 0.8;
/// Standard deviations of normally distributed values in their median absolute deviation.
const NORMAL: f64 = 1.4826;
/// Standard deviation of a price that was recorded in other contexts, relative, beside what those
/// differ by.
const ELSEWHERE: f64 = 0.1;
/// A price is not taken for less than this share of what it is estimated as.
const LEAST_SHARE: f64 = 0.4;
/// Standard deviations in an interval of 95 %.
const DEVIATIONS: f64 = 2.0;

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing runs.
    Free,
    /// Recorded in this context.
    Recorded,
    /// Recorded in other contexts.
    Elsewhere,
    /// The price of this machine, times what the other one takes relative to it.
    Carried,
}

/// What a node takes on the other machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Expected time, ns.
    pub ns: f64,
    /// Standard deviation of that, ns.
    pub doubt: f64,
    /// Where it comes from.
    pub origin: Origin,
}

/// How two graphs differ on the other machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// What the first one takes, ns.
    pub before: f64,
    /// What the second one takes, ns.
    pub after: f64,
    /// Half the interval of 95 % of what the second one takes, given what the first one takes, ns.
    pub doubt: f64,
    /// Standard deviation of the logarithm of such predictions, where they could be compared with
    /// what was measured.
    pub error: f64,
    /// Part of the second one's time that was not recorded in its context.
    pub carried: f64,
}

impl Prediction {
    /// How many times faster the second one is, and the interval of that.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let over = |after: f64| self.before.max(1.0) / after.max(1.0);
        let (slow, fast) = (self.after + self.doubt, (self.after - self.doubt).max(LEAST_SHARE * self.after));
        let error = (DEVIATIONS * self.error).exp();
        (over(self.after), over(slow) / error, over(fast) * error)
    }
}

/// A factor between machines.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    factor: f64,
    /// Standard deviation of its logarithm.
    doubt: f64,
}

/// Factors by class of kernel, between prices that were measured here and recorded ones.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ratios(BTreeMap<&'static str, Vec<f64>>);

impl Ratios {
    fn add(&mut self, kernel: Kernel, recorded: f64, local: f64) {
        if recorded >= TELLING && local >= TELLING {
            self.0.entry(word(kernel)).or_default().push((recorded / local).ln());
        }
    }

    fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The factor of a class, or that of all together.
    fn of(&self, kernel: Kernel) -> Ratio {
        if let Some(own) = self.0.get(word(kernel)).filter(|own| own.len() >= FEWEST) {
            return robust(own, LEAST_DOUBT);
        }
        let all: Vec<f64> = self.0.values().flatten().copied().collect();
        if all.is_empty() { Ratio { factor: 1.0, doubt: BLIND_DOUBT } } else { robust(&all, LENT_DOUBT) }
    }
}

/// The median of logarithms, and their spread about it.
fn robust(logarithms: &[f64], least: f64) -> Ratio {
    let center = median(logarithms.to_vec());
    let about: Vec<f64> = logarithms.iter().map(|x| x - center).collect();
    Ratio { factor: center.exp(), doubt: deviation(&about).max(least) }
}

/// The standard deviation of errors, unmoved by outliers.
pub fn deviation(errors: &[f64]) -> f64 {
    NORMAL * median(errors.iter().map(|error| error.abs()).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    0.5 * (values[last / 2] + values[last.div_ceil(2)])
}

/// A recording, and what this machine's prices say about the rest.
///
/// Of a signature that was recorded, the recorded price is taken. Of one that was recorded in other
/// contexts only, those prices are, corrected by how the contexts differ here if that is known. All
/// others have the price of this machine, measured or guessed, times the median factor of
/// signatures of the same class of kernels that both sides know.
#[derive(Clone, Debug)]
pub struct Carried {
    recorded: Measured,
    kernels: FxHashMap<String, Kernel>,
    /// Standard deviation of a recorded observation, relative.
    noise: f64,
    /// How far recorded prices were off about whole models.
    error: f64,
    /// Of prices that were measured here.
    measured: Ratios,
    /// Of guesses.
    guessed: Ratios,
}

impl Carried {
    /// The recording, for a model whose symbols have these values; this is its graph.
    pub fn new(recording: &Recording, bindings: Bindings, graph: &Graph, local: &Measured) -> Carried {
        let (kernels, mut recorded) = (recording.kernels(), recording.measured(bindings));
        recorded.expect_model(graph);
        let (noise, error) = (NOISE.max(0.5 * recording.spread()), recording.error());
        let mut carried = Carried { recorded, kernels, noise, error, measured: Ratios::default(), guessed: Ratios::default() };
        for id in graph.ids().filter(|id| is_priced(graph, *id)) {
            let known = carried.recorded.table.get(&Signature::of(graph, &carried.recorded.bindings, id));
            if let (Some(entry), Some(load)) = (known, Workload::of(graph, &carried.recorded.bindings, id)) {
                carried.guessed.add(load.work.kernel, entry.price() as f64, local.guess(graph, id));
            }
        }
        carried.learn(local);
        carried
    }

    /// The same at other sizes.
    pub fn lent(&self, bindings: Bindings) -> Carried {
        Carried { recorded: self.recorded.lent(bindings), ..self.clone() }
    }

    /// Takes over what this machine measured since.
    pub fn learn(&mut self, local: &Measured) {
        let mut ratios = Ratios::default();
        for (signature, entry) in self.recorded.table.entries() {
            if let (Some(own), Some(kernel)) = (local.table.get(&signature), self.kernels.get(&signature.core)) {
                ratios.add(*kernel, entry.price() as f64, own.price() as f64);
            }
        }
        self.measured = ratios;
    }

    /// What a run takes besides its nodes, ns.
    pub fn overhead(&self) -> f64 {
        self.recorded.overhead
    }

    /// Signatures that both sides know.
    pub fn shared(&self) -> usize {
        self.measured.len()
    }

    /// What a node takes in its context.
    pub fn estimate(&self, local: &Measured, graph: &Graph, id: NodeId) -> Estimate {
        if !is_priced(graph, id) {
            return Estimate { ns: 0.0, doubt: 0.0, origin: Origin::Free };
        }
        let signature = Signature::of(graph, &self.recorded.bindings, id);
        if let Some(entry) = self.recorded.table.get(&signature) {
            return observed(entry, self.noise);
        }
        let own = known(local, &signature, NOISE);
        self.elsewhere(local, &signature, own).unwrap_or_else(|| {
            let kernel = Workload::of(graph, &self.recorded.bindings, id).map_or(Kernel::Copy, |load| load.work.kernel);
            let (ns, doubt, ratio) = match own {
                Some((ns, doubt)) if self.measured.len() > 0 => (ns, doubt, self.measured.of(kernel)),
                Some((ns, doubt)) => (ns, doubt, self.guessed.of(kernel)),
                None => (local.guess(graph, id), 0.0, self.guessed.of(kernel)),
            };
            let ns = ns * ratio.factor;
            Estimate { ns, doubt: ns * ratio.doubt + doubt * ratio.factor, origin: Origin::Carried }
        })
    }

    /// From what was recorded of the same operator in other contexts.
    fn elsewhere(&self, local: &Measured, signature: &Signature, own: Option<(f64, f64)>) -> Option<Estimate> {
        let there = self.recorded.table.contexts(&signature.core);
        if let Some((ns, doubt)) = own.filter(|_| local.table.get(signature).is_some()) {
            let both = there.iter().filter_map(|(context, entry)| Some((entry.price() as f64, local.table.get(context)?.price() as f64)));
            let factors: Vec<f64> = both.filter(|(a, b)| *a >= TELLING && *b >= TELLING).map(|(a, b)| (a / b).ln()).collect();
            if !factors.is_empty() && ns >= TELLING {
                let ratio = robust(&factors, ELSEWHERE);
                let ns = ns * ratio.factor;
                return Some(Estimate { ns, doubt: ns * ratio.doubt + doubt * ratio.factor, origin: Origin::Elsewhere });
            }
        }
        let (ns, doubt) = known(&self.recorded, signature, self.noise)?;
        Some(Estimate { ns, doubt: doubt + ELSEWHERE * ns, origin: Origin::Elsewhere })
    }

    /// The price of a node for a search.
    pub fn price(&self, local: &Measured, graph: &Graph, id: NodeId) -> Ns {
        let Estimate { ns, doubt, origin } = self.estimate(local, graph, id);
        let price = match local.pricing {
            _ if matches!(origin, Origin::Free | Origin::Recorded) => ns,
            Pricing::Optimistic => (ns - doubt).max(LEAST_SHARE * ns),
            Pricing::Pessimistic => ns + doubt,
        };
        price.round() as Ns
    }

    /// The part of a graph's price that was not recorded in its context, ns.
    pub fn carried(&self, local: &Measured, graph: &Graph) -> f64 {
        let carried = |id: NodeId| {
            let estimate = self.estimate(local, graph, id);
            if matches!(estimate.origin, Origin::Elsewhere | Origin::Carried) { estimate.ns } else { 0.0 }
        };
        graph.ids().map(carried).sum()
    }

    /// What a graph takes instead of another one. Nodes that they have in common cancel out; of the
    /// others, errors of recorded prices are independent, and those of carried ones are not.
    pub fn predict(&self, local: &Measured, before: &Graph, after: &Graph) -> Prediction {
        let mut nodes: BTreeMap<Signature, (i64, Estimate)> = BTreeMap::new();
        for (graph, sign) in [(before, -1), (after, 1)] {
            for id in graph.ids().filter(|id| is_priced(graph, *id)) {
                let estimate = self.estimate(local, graph, id);
                nodes.entry(Signature::of(graph, &self.recorded.bindings, id)).or_insert((0, estimate)).0 += sign;
            }
        }
        let total = |graph: &Graph| self.overhead() + graph.ids().map(|id| self.estimate(local, graph, id).ns).sum::<f64>();
        let (mut squares, mut sum) = (0.0, 0.0);
        for (count, estimate) in nodes.into_values() {
            let doubt = count.unsigned_abs() as f64 * estimate.doubt;
            if estimate.origin == Origin::Recorded { squares += doubt * doubt } else { sum += doubt }
        }
        let (before, after_ns) = (total(before), total(after));
        let carried = self.carried(local, after) / after_ns.max(1.0);
        Prediction { before, after: after_ns, doubt: DEVIATIONS * (squares.sqrt() + sum), error: self.error, carried }
    }
}

/// A price in its context: sessions of one model differ by so much, and so do its observations.
fn observed(entry: &Entry, noise: f64) -> Estimate {
    let ns = entry.price() as f64;
    let doubt = (noise * ns).max(0.25 * entry.spread) / f64::from(entry.count.clamp(1, KEPT)).sqrt();
    Estimate { ns, doubt, origin: Origin::Recorded }
}

/// What a price list knows of a signature, measured in this context or in others, and how sure it
/// is.
fn known(list: &Measured, signature: &Signature, noise: f64) -> Option<(f64, f64)> {
    if let Some(entry) = list.table.get(signature) {
        let Estimate { ns, doubt, .. } = observed(entry, noise);
        return Some((ns, doubt));
    }
    let alike = list.table.alike(signature);
    let (low, high) = (*alike.iter().min()? as f64, *alike.iter().max()? as f64);
    Some((0.5 * (low + high), 0.5 * (high - low)))
}

#[cfg(test)]
mod tests {
    use regraft_ir::text::parse;

    use super::*;
    use crate::recording::tests::recording;

    /// A chain of operators on tensors of this many numbers, the last being the output.
    fn chain(kinds: &[&str], elements: usize) -> Graph {
        let nodes: String = kinds.iter().enumerate().map(|(at, kind)| format!("v{} = {kind}(v{at}) ", at + 1)).collect();
        parse(&format!("graph (v0: f32[{elements}]) {{ {nodes} output v{} }}", kinds.len())).expect("a graph")
    }

    /// The prices of a graph's nodes, as this machine measured them.
    fn local(graph: &Graph, ns: impl Fn(&str) -> f64) -> Measured {
        let mut measured = Measured::new(Bindings::new());
        let times: Vec<f64> = (0..graph.capacity()).map(|at| ns(graph.node(NodeId(at as u32)).op.kind().name())).collect();
        measured.table.record(graph, &Bindings::new(), &times);
        measured
    }

    fn carried(prices: &[(&str, &str, u64)], graph: &Graph, local: &Measured) -> Carried {
        Carried::new(&recording(prices), Bindings::new(), graph, local)
    }

    fn find(graph: &Graph, kind: &str) -> NodeId {
        graph.ids().find(|id| graph.node(*id).op.kind().name() == kind).expect("a node")
    }

    fn signature(graph: &Graph, kind: &str) -> String {
        Signature::of(graph, &Bindings::new(), find(graph, kind)).to_string()
    }

    #[test]
    fn what_was_recorded_is_taken_as_it_is() {
        let graph = chain(&["Relu"], 1_000);
        let local = local(&graph, |_| 5_000.0);
        let carried = carried(&[(&signature(&graph, "Relu"), "elementwise", 20_000)], &graph, &local);
        let estimate = carried.estimate(&local, &graph, find(&graph, "Relu"));
        assert_eq!((estimate.ns, estimate.origin), (20_000.0, Origin::Recorded));
        assert!((estimate.doubt - NOISE * 20_000.0).abs() < 1.0, "{estimate:?}");
        let cautious = Measured { pricing: Pricing::Pessimistic, ..local.clone() };
        assert_eq!(carried.price(&cautious, &graph, find(&graph, "Relu")), 20_000);
    }

    #[test]
    fn a_recording_from_a_busy_machine_is_less_sure() {
        let graph = chain(&["Relu"], 1_000);
        let mut busy = recording(&[(&signature(&graph, "Relu"), "elementwise", 20_000)]);
        (busy.models[0].run_ns, busy.models[0].spread_ns) = (10.0, 4.0);
        let local = Measured::new(Bindings::new());
        let estimate = Carried::new(&busy, Bindings::new(), &graph, &local).estimate(&local, &graph, find(&graph, "Relu"));
        assert!((estimate.doubt - 0.2 * 20_000.0).abs() < 1.0, "{estimate:?}");
    }

    #[test]
    fn the_rest_is_carried_over_by_its_class() {
        // Element-wise operators take three times as long there, transcendental ones ten times.
        let known = chain(&["Relu", "Neg", "Abs", "Exp", "Tanh", "Erf"], 1_000);
        let class = |kind: &str| if ["Exp", "Tanh", "Erf", "Sin"].contains(&kind) { ("transcendental", 10) } else { ("elementwise", 3) };
        let (kinds, more) = (["Relu", "Neg", "Abs", "Exp", "Tanh", "Erf"], chain(&["Sqrt", "Sin"], 1_000));
        let mut own = local(&known, |_| 4_000.0);
        own.table.record(&more, &Bindings::new(), &[2_000.0; 8]);
        let signatures: Vec<String> = kinds.iter().map(|kind| signature(&known, kind)).collect();
        let prices: Vec<(&str, &str, u64)> =
            signatures.iter().zip(kinds).map(|(text, kind)| (text.as_str(), class(kind).0, 4_000 * class(kind).1)).collect();
        let carried = carried(&prices, &known, &own);
        assert_eq!(carried.shared(), 6);
        for kind in ["Sqrt", "Sin"] {
            let node = find(&more, kind);
            let kernel = Workload::of(&more, &Bindings::new(), node).expect("known sizes").work.kernel;
            let factor = match word(kernel) {
                "transcendental" => 10.0,
                "elementwise" => 3.0,
                other => panic!("{kind} is {other}"),
            };
            let Estimate { ns, doubt, origin } = carried.estimate(&own, &more, node);
            assert_eq!(origin, Origin::Carried);
            assert!((ns / (factor * 2_000.0) - 1.0).abs() < 1e-9, "{kind}: {ns}");
            assert!(doubt >= LEAST_DOUBT * ns, "what is carried over is less sure than what was recorded: {doubt}");
        }
    }

    #[test]
    fn one_outlier_does_not_move_a_class() {
        let mut ratios = Ratios::default();
        [2.0, 2.1, 1.9, 2.0, 40.0].iter().for_each(|factor| ratios.add(Kernel::Copy, 1e4 * factor, 1e4));
        let ratio = ratios.of(Kernel::Copy);
        assert!((ratio.factor - 2.0).abs() < 1e-9 && ratio.doubt < 0.2, "{ratio:?}");
        let lent = ratios.of(Kernel::Window);
        assert!((lent.factor - 2.0).abs() < 1e-9 && lent.doubt >= LENT_DOUBT, "{lent:?}");
        assert_eq!(Ratios::default().of(Kernel::Window), Ratio { factor: 1.0, doubt: BLIND_DOUBT });
    }

    #[test]
    fn guesses_have_factors_of_their_own() {
        // Nothing was measured here: what the roofline says of the recorded nodes is the measure.
        let (graph, other) = (chain(&["Relu", "Neg", "Abs"], 1_000_000), chain(&["Floor"], 2_000_000));
        let local = Measured::new(Bindings::new());
        let kinds = ["Relu", "Neg", "Abs"];
        let guess = |graph: &Graph, kind: &str| local.guess(graph, find(graph, kind));
        let rows: Vec<(String, u64)> =
            kinds.iter().map(|kind| (signature(&graph, kind), (7.0 * guess(&graph, kind)).round() as u64)).collect();
        let prices: Vec<(&str, &str, u64)> = rows.iter().map(|(text, ns)| (text.as_str(), "elementwise", *ns)).collect();
        let carried = carried(&prices, &graph, &local);
        let estimate = carried.estimate(&local, &other, find(&other, "Floor"));
        let ratio = estimate.ns / guess(&other, "Floor");
        assert!((ratio - 7.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn common_nodes_add_no_doubt() {
        let (before, after) = (chain(&["Relu", "Identity", "Tanh"], 1_000), chain(&["Relu", "Tanh"], 1_000));
        let local = Measured::new(Bindings::new());
        let rows: Vec<(String, u64)> = [(&before, "Relu"), (&before, "Identity"), (&before, "Tanh"), (&after, "Relu"), (&after, "Tanh")]
            .map(|(graph, kind)| (signature(graph, kind), if kind == "Identity" { 30_000 } else { 100_000 }))
            .to_vec();
        let mut prices: Vec<(&str, &str, u64)> = rows.iter().map(|(text, ns)| (text.as_str(), "elementwise", *ns)).collect();
        let carried_over = carried(&prices, &before, &local);
        let prediction = carried_over.predict(&local, &before, &after);
        assert_eq!((prediction.before, prediction.after, prediction.carried), (230_000.0, 200_000.0, 0.0));
        let (ratio, low, high) = prediction.ratio();
        assert!((ratio - 1.15).abs() < 1e-9 && low < ratio && ratio < high, "{low} {ratio} {high}");
        assert_eq!(carried_over.predict(&local, &before, &before).doubt, 0.0);
        // So does a list that was off about whole models.
        let unsure = Prediction { error: 0.1, ..prediction };
        assert!(unsure.ratio().1 < 1.0 && (unsure.ratio().0 - ratio).abs() < 1e-12, "{:?}", unsure.ratio());
        // What was not recorded widens the interval.
        prices.truncate(3);
        let wider = carried(&prices, &before, &local).predict(&local, &before, &after);
        assert!(wider.doubt > 2.0 * prediction.doubt && wider.carried > 0.9, "{wider:?}");
    }
}
