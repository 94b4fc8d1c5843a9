//! Whether what is extracted from the e-graph of one model is that model.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use regraft::exact;
use regraft_certify::{Certificate, GraphPath, Judged, ModelDigest, Replayer, Step, Trail};
use regraft_cost::{CostModel, Roofline};
use regraft_ir::{DType, Graph, NodeId, canonical_key, normal};
use regraft_onnx::FixedSizes;
use regraft_rules::{Anything, Library};
use regraft_runtime::Feeds;
use regraft_saturate::{Alone, Growth, Method, Plan, Priced, Rules};
use regraft_search::{Engine, Matcher, Move, Strategy};

use super::settings::Settings;
use crate::trial::ones;

/// All methods, the better one later.
const METHODS: [Method; 5] = [Method::Tree, Method::Shared, Method::Quick, Method::GreedyDag, Method::Exact];
/// Those of which a later one is never above an earlier one.
const ORDERED: [Method; 3] = [Method::Quick, Method::GreedyDag, Method::Exact];

/// What was tried, and how it went.
#[derive(Default)]
pub struct Tried {
    /// E-graphs.
    pub grown: usize,
    /// Those with a cycle.
    pub cyclic: usize,
    /// Extractions.
    pub extracted: usize,
    /// Those that cost more than the input, each e-node priced alone.
    pub above: usize,
    /// Different graphs that were replayed.
    pub graphs: usize,
    /// Those of them that were compared by value.
    pub compared: usize,
    /// Searches that found something cheaper than their input.
    pub gained: usize,
    /// The certificate's verdict on each step.
    pub judged: Vec<Judged>,
}

impl Tried {
    /// Adds what was tried on another model.
    pub fn join(&mut self, other: Tried) {
        self.grown += other.grown;
        self.cyclic += other.cyclic;
        self.extracted += other.extracted;
        self.above += other.above;
        self.graphs += other.graphs;
        self.compared += other.compared;
        self.gained += other.gained;
        self.judged.extend(other.judged);
    }
}

/// A model, as a graph in normal form.
pub struct Subject<'s> {
    graph: Graph,
    feeds: &'s [Feeds],
    library: &'s Library,
    rules: &'s Rules,
    prices: Roofline,
    /// Whether the reference executor can run it.
    is_defined: bool,
    /// Graphs that were looked at.
    seen: HashSet<u128>,
    tried: Tried,
}

impl<'s> Subject<'s> {
    /// A graph in normal form, values for its inputs, and rules, as searches and e-graphs take
    /// them.
    pub fn new(graph: Graph, feeds: &'s [Feeds], (library, rules): (&'s Library, &'s Rules)) -> Subject<'s> {
        let is_defined = feeds.iter().all(|feeds| exact::agreement(&graph, &graph, feeds).is_ok());
        let prices = Roofline::new(ones(&graph));
        Subject { graph, feeds, library, rules, prices, is_defined, seen: HashSet::new(), tried: Tried::default() }
    }

    /// Grows its e-graph, and checks all that comes of it.
    pub fn held(mut self, settings: Settings) -> Result<Tried> {
        self.grown(settings)?;
        self.searched(&settings.saturate())?;
        if let Some(mcts) = settings.mcts() {
            self.searched(&mcts)?;
        }
        Ok(self.tried)
    }

    /// Every method on one e-graph.
    fn grown(&mut self, settings: Settings) -> Result<()> {
        let growth = Growth::new(self.graph.clone(), self.rules, &Anything, settings.limits);
        let mut growth = growth.scheduled(settings.schedule).with_cycles(settings.cycles);
        growth.saturate(&mut || false)?;
        let (nodes, limit) = (growth.space().len(), settings.limits.nodes.max(self.graph.len()));
        ensure!(nodes * 20 <= limit * 21, "{nodes} e-nodes instead of {limit}");
        self.tried.grown += 1;
        self.tried.cyclic += usize::from(growth.is_cyclic());
        let prices = self.prices.clone();
        let mut alone = Alone::new(&prices);
        let input: f64 = growth.space().graph().topological().into_iter().map(|id| alone.price(growth.space(), id) as f64).sum();
        let mut least = f64::INFINITY;
        for method in METHODS {
            let priced = Priced::of(&growth, &mut |space, id| alone.price(space, id) as f64)?;
            let (chosen, found) = priced.cheapest(method, &mut || false).with_context(|| format!("{method:?}"))?;
            ensure!(found.bound.is_none_or(|bound| bound <= found.cost), "{method:?}: {} is below its bound", found.cost);
            if ORDERED.contains(&method) {
                ensure!(found.cost <= least * (1.0 + 1e-9), "{method:?} costs {} instead of {least}", found.cost);
                least = found.cost;
            }
            self.tried.extracted += 1;
            self.tried.above += usize::from(found.cost > input * (1.0 + 1e-9));
            let mut engine = Engine::new(self.graph.clone(), &prices);
            let plan = Plan::follow(&growth, &chosen, &mut engine);
            let is_acyclic = engine.graph().topological().len() == engine.graph().len();
            ensure!(is_acyclic, "{method:?}: a cycle");
            ensure!(engine.cost() == prices.total(engine.graph()), "{method:?}: the cost is not that of the graph");
            let mut graph = engine.into_graph();
            normal::cse(&mut graph);
            ensure!(growth.space().contains(&graph), "{method:?}: the e-graph does not stand for what was extracted");
            self.followed(&plan.moves).with_context(|| format!("{method:?}"))?;
        }
        Ok(())
    }

    /// What a search finds.
    fn searched(&mut self, strategy: &dyn Strategy) -> Result<()> {
        let prices = self.prices.clone();
        let mut engine = Engine::new(self.graph.clone(), &prices);
        let before = (engine.key(), engine.cost(), engine.depth());
        let outcome = strategy.search(&mut engine, &mut Matcher::new(self.library, &Anything), &mut || false);
        let name = strategy.name();
        ensure!(before == (engine.key(), engine.cost(), engine.depth()), "{name} leaves another state behind");
        let best = outcome.scripts.first().with_context(|| format!("{name} finds not even the input"))?;
        ensure!(best.cost <= before.1, "{name}: {} instead of {}", best.cost, before.1);
        best.moves.iter().for_each(|step| engine.apply(step));
        ensure!((engine.key(), engine.cost()) == (best.key, best.cost), "{name} does not lead where it says");
        self.tried.gained += usize::from(best.cost < before.1);
        self.followed(&best.moves).with_context(|| name.to_string())
    }

    /// Moves, as a certificate says them, and the graph that they lead to, by value.
    fn followed(&mut self, moves: &[Arc<Move>]) -> Result<()> {
        let mut engine = Engine::new(self.graph.clone(), &self.prices);
        let mut steps = Vec::new();
        for step in moves {
            steps.push(Step::of(engine.graph(), &step.nodes, step.patch()).context("a step cannot be said as data")?);
            engine.apply(step);
            ensure!(engine.graph().topological().len() == engine.graph().len(), "a cycle after {}", step.patch().cause);
        }
        if !self.seen.insert(canonical_key(engine.graph())) {
            return Ok(());
        }
        let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&self.graph), steps };
        let (replayed, judged) = replayed(&self.graph, trail)?;
        ensure!(canonical_key(&replayed) == canonical_key(engine.graph()), "the certificate leads to another graph");
        let causes = || moves.iter().map(|step| step.patch().cause.to_string()).collect::<Vec<_>>().join(", ");
        if self.is_defined {
            for feeds in self.feeds {
                self.compared(&replayed, feeds).with_context(|| format!("after {}", causes()))?;
            }
            self.tried.compared += 1;
        }
        self.tried.graphs += 1;
        self.tried.judged.extend(judged);
        Ok(())
    }

    /// What constants that a rule rounds may change: in half precision, attributes that become
    /// constants are rounded to 11 bits instead of 24.
    fn rounding(&self) -> f64 {
        let halves = |id: NodeId| self.graph.node(id).types.iter().flatten().any(|ty| matches!(ty.dtype, DType::F16 | DType::BF16));
        exact::CONFIRMED_ROUNDED * if self.graph.ids().any(halves) { f64::from(1 << 13) } else { 1.0 }
    }

    /// Whether a graph computes what the model does, in double precision, up to constants that a
    /// rule rounds.
    fn compared(&self, graph: &Graph, feeds: &Feeds) -> Result<()> {
        let found = exact::agreement(&self.graph, graph, feeds).map_err(anyhow::Error::msg)?;
        if found.within(self.rounding()) {
            return Ok(());
        }
        let outputs: Vec<_> = self.graph.outputs().iter().map(|output| output.value).collect();
        let names: Vec<String> = self.graph.outputs().iter().map(|output| output.name.to_string()).collect();
        let noise = exact::noise(&names, (&self.graph, &outputs), feeds).map_err(anyhow::Error::msg)?;
        if found.within(noise) {
            return Ok(());
        }
        let wrong = found.broken.iter().chain(&found.lost).next().cloned();
        bail!("{}", wrong.unwrap_or_else(|| format!("`{}` differs by {:.1e}", found.output, found.relative)))
    }
}

/// The graph that a trail leads to when its certificate is written, read and replayed.
fn replayed(graph: &Graph, trail: Trail) -> Result<(Graph, Vec<Judged>)> {
    let digest = ModelDigest(Vec::new());
    let (fixed, trails) = (FixedSizes::default(), vec![trail]);
    let certificate = Certificate { tool: "gauntlet".into(), input: digest.clone(), output: digest, fixed, opset: None, trails };
    let read = Certificate::parse(certificate.to_text().as_bytes())??;
    ensure!(read == certificate, "the certificate reads back as another one");
    let mut replayer = Replayer::default();
    let mut replayed = graph.clone();
    let trail = read.trail(&GraphPath::default()).context("the trail is lost")?;
    replayer.follow(&mut replayed, trail).map_err(|stop| anyhow::anyhow!("the certificate does not replay: {stop:?}"))?;
    Ok((replayed, replayer.judged))
}
