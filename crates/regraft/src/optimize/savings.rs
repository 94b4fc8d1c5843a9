//! What rules save in networks, at prices measured there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regraft_cost::Pricing;
use regraft_ir::Graph;
use regraft_onnx::{Model, WriteOptions};
use regraft_rules::{Library, Rule};
use regraft_runtime::{Feeds, Fill, ModelSource, Runtime};
use regraft_search::{Greedy, Matcher, Savings, Steps, Testbed, meets};
use serde::Serialize;

use crate::error::Failure;
use crate::optimize::artifact::Artifact;
use crate::optimize::evaluate::{Prices, Profiler};
use crate::optimize::library::{Choice, load_library};
use crate::optimize::load::{InModel, clean};
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::request::Request;
use crate::optimize::tune::propose;
use crate::runtime::RuntimeChoice;
use crate::sizes::Sizes;

/// Budget checks of the search that settles a network: deterministic, so that equal stores give
/// equal rankings.
const STEPS: u64 = 500;
/// Maximum number of sittings that measure the result of a search or a rule to learn its prices.
const ROUNDS: usize = 3;
/// Budget that determines the length of one sitting.
const SITTING: Duration = Duration::from_secs(10);
/// A rule pays if, on top of the library, it saves at least this fraction of a run.
const PAYS: f64 = 0.01;

/// How to rank rules.
#[derive(Clone, Debug)]
pub struct SavingsRequest {
    /// Model files.
    pub models: Vec<PathBuf>,
    /// Wall time for measuring, all models together.
    pub budget: Duration,
    /// Threads per operator in deployment.
    pub threads: usize,
    /// Seed of made-up inputs.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
    /// Path of the measurement store.
    pub cost_store: Option<PathBuf>,
    /// Use the store as is: measure nothing.
    pub frozen: bool,
}

/// What one rule saves in one network.
#[derive(Clone, Debug, Serialize)]
pub struct Paid {
    /// Name of the rule.
    pub rule: String,
    /// Name of the network.
    pub network: String,
    /// Matches in the network as it is.
    pub places: usize,
    /// What the rule saves there by itself, ns of one run.
    pub alone_ns: u64,
    /// Matches in the library's result for the network.
    pub places_beside: usize,
    /// What the rule saves there, ns of one run.
    pub beside_ns: u64,
    /// One run of the library's result, ns.
    pub run_ns: u64,
    /// Whether every price involved was measured.
    pub measured: bool,
}

impl Paid {
    /// Whether the saving is measured and exceeds noise.
    pub fn pays(&self) -> bool {
        self.measured && self.beside_ns > 0 && self.beside_ns as f64 >= PAYS * self.run_ns as f64
    }
}

/// Networks that rules are tried on: each as it is, and as the library leaves it.
pub struct Networks {
    list: Vec<Network>,
    runtime: Arc<dyn Runtime>,
    request: SavingsRequest,
    until: Instant,
}

struct Network {
    name: String,
    path: PathBuf,
    model: Model,
    feeds: Feeds,
    sizes: Sizes,
    /// In normal form.
    plain: Graph,
    /// The result of a search with the library.
    settled: Graph,
}

impl Networks {
    /// Reads the models, measures them and the library's results for them, unless the store knows
    /// both. The measuring time starts here.
    pub fn open(request: &SavingsRequest, observer: &mut dyn Observer) -> Result<Networks, Failure> {
        let runtime = request.runtime.load()?;
        let library = load_library(&Choice::default(), runtime.name())?.library;
        let mut networks = Networks { list: Vec::new(), runtime, request: request.clone(), until: Instant::now() + request.budget };
        for path in &request.models {
            if observer.interrupted() {
                break;
            }
            let network = networks.read(path, observer)?;
            let network = networks.settled(network, &library, observer)?;
            networks.list.push(network);
        }
        Ok(networks)
    }

    /// Whether a rule's source matches in one of them.
    pub fn meets(&self, rule: &Rule) -> bool {
        self.list.iter().flat_map(|network| [&network.plain, &network.settled]).any(|graph| meets(graph, rule))
    }

    /// What the rules save, network by network; only rules that match. Measures what the store does
    /// not know, while time is left.
    pub fn rank(&self, rules: &[Rule], observer: &mut dyn Observer) -> Result<Vec<Paid>, Failure> {
        let mut paid = Vec::new();
        for network in &self.list {
            observer.phase(Phase::Measure, &format!("{} rules in {}", rules.len(), network.name));
            let mut lab = self.lab(network)?;
            for rule in rules {
                if observer.interrupted() {
                    return Ok(paid);
                }
                let (alone, known_alone) = self.tried(network, &mut lab, &network.plain, rule)?;
                let (beside, known_beside) = self.tried(network, &mut lab, &network.settled, rule)?;
                if alone.places + beside.places > 0 {
                    paid.push(Paid {
                        rule: rule.name.to_string(),
                        network: network.name.clone(),
                        places: alone.places,
                        alone_ns: alone.saved,
                        places_beside: beside.places,
                        beside_ns: beside.saved,
                        run_ns: beside.before,
                        measured: known_alone && known_beside,
                    });
                }
            }
            lab.prices.save()?;
        }
        Ok(paid)
    }

    fn read(&self, path: &Path, observer: &mut dyn Observer) -> Result<Network, Failure> {
        let name = path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned());
        observer.phase(Phase::Load, &name);
        let model = Model::read(path)?;
        let sizes = Sizes::resolve(&model, ModelSource::path(path), &*self.runtime, &[], &[])?;
        let feeds = sizes.feeds(Fill::Normal, self.request.seed)?;
        let plain = clean(model.graph()).0;
        Ok(Network { name, path: path.to_path_buf(), settled: plain.clone(), model, feeds, sizes, plain })
    }

    /// The network with the result of a search under its prices.
    fn settled(&self, network: Network, library: &Library, observer: &mut dyn Observer) -> Result<Network, Failure> {
        let mut lab = self.lab(&network)?;
        self.learn(&network, &mut lab, &network.plain)?;
        let writable = InModel::new(&network.model, &*self.runtime);
        // As in `optimize`: first measure what may be best, then exploit what is known.
        let mut found = |prices: &mut Prices, pricing: Pricing| {
            observer.phase(Phase::Search, &network.name);
            prices.set_pricing(pricing);
            let proposals =
                propose(&network.plain, prices.model(), &mut Matcher::new(library, &writable), &Greedy::default(), &mut Steps(STEPS));
            proposals.best.into_iter().next().map_or_else(|| network.plain.clone(), |best| best.graph)
        };
        for _ in 0..ROUNDS {
            let optimistic = found(&mut lab.prices, Pricing::Optimistic);
            if lab.prices.knows(&optimistic) || !self.learn(&network, &mut lab, &optimistic)? {
                break;
            }
        }
        let settled = found(&mut lab.prices, Pricing::Pessimistic);
        self.learn(&network, &mut lab, &settled)?;
        lab.prices.save()?;
        Ok(Network { settled, ..network })
    }

    fn lab(&self, network: &Network) -> Result<Lab, Failure> {
        let mut request = Request::new(&network.path, "");
        (request.threads, request.seed, request.budget, request.frozen) =
            (Some(self.request.threads), self.request.seed, SITTING, self.request.frozen);
        (request.runtime, request.cost_store) = (self.request.runtime.clone(), self.request.cost_store.clone());
        let mut prices = Prices::open(&request, (&*self.runtime, self.request.threads), &[&network.sizes], &network.plain)?;
        prices.set_pricing(Pricing::Pessimistic);
        Ok(Lab { request, prices })
    }

    /// What a rule saves in a graph, and whether all prices involved are measured. Its most
    /// optimistic result is measured first.
    fn tried(&self, network: &Network, lab: &mut Lab, graph: &Graph, rule: &Rule) -> Result<(Savings, bool), Failure> {
        if !meets(graph, rule) {
            return Ok((Savings { before: lab.prices.total(graph), ..Savings::default() }, true));
        }
        let writable = InModel::new(&network.model, &*self.runtime);
        for _ in 0..ROUNDS {
            lab.prices.set_pricing(Pricing::Optimistic);
            let (_, after) = Testbed::new(graph.clone(), lab.prices.model(), &writable).savings(rule)?;
            let Some(after) = after else { break };
            if lab.prices.knows(&after) || !self.learn(network, lab, &after)? {
                break;
            }
        }
        lab.prices.set_pricing(Pricing::Pessimistic);
        let (savings, after) = Testbed::new(graph.clone(), lab.prices.model(), &writable).savings(rule)?;
        Ok((savings, lab.prices.knows(graph) && after.is_none_or(|after| lab.prices.knows(&after))))
    }

    /// Measures a graph if any of its prices are missing; false if there was nothing to learn, or
    /// no time.
    fn learn(&self, network: &Network, lab: &mut Lab, graph: &Graph) -> Result<bool, Failure> {
        let until = self.until;
        if self.request.frozen || lab.prices.knows(graph) || Instant::now() >= until {
            return Ok(false);
        }
        let Lab { request, prices } = lab;
        let go_on = || Instant::now() < until;
        let profiler =
            Profiler { runtime: &*self.runtime, feeds: vec![&network.feeds], threads: self.request.threads, budget: request.budget };
        if !prices.has_input() {
            let artifact = Artifact::runnable(network.model.write(&network.plain, &WriteOptions::default())?)?;
            prices.observe_input(&profiler, &network.plain, &artifact, &go_on)?;
        }
        if prices.knows(graph) {
            return Ok(true);
        }
        // A graph that cannot be written or run is not measured; its prices stay guesses and are
        // reported as such.
        let Ok(written) = network.model.write(graph, &WriteOptions::default()) else { return Ok(false) };
        Ok(prices.observe(&profiler, graph, &Artifact::runnable(written)?, &go_on).is_ok())
    }
}

/// Prices of one network.
struct Lab {
    request: Request,
    prices: Prices,
}
