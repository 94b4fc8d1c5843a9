//! What a caller requests from `optimize`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use regraft_policy::{Learned, Method};
use regraft_rules::Numeric;
use regraft_runtime::Starter;
use regraft_saturate::{Mcts, Saturate};
use regraft_search::{
    Backtrack, Descents, Dpp, Enumerate, Exact, Greedy, MetaFlow, Order, Portfolio, Prune, Sample, SleepSets, Strategy, Table,
};
use regraft_xrlflow::{Random, XRLflow};

use crate::error::Failure;
use crate::limits::Limits;
use crate::optimize::Choice;
use crate::recording::Recorded;
use crate::runtime::RuntimeChoice;
use crate::units::{FreezeArg, ShapeArg};

/// Which strategy searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// The best of [`SearchKind::Descents`], [`SearchKind::Exact`], and [`SearchKind::Saturate`]
    /// with small e-graphs.
    Auto,
    /// The best of three fast searches.
    Descents,
    /// Steepest descent with a short look-ahead.
    Greedy,
    /// Cost-based backtracking from the input.
    Backtrack,
    /// The same in parts of the graph, and then across their borders.
    MetaFlow,
    /// All sequences of rewrites.
    Enumerate,
    /// Of their permutations, those in one order.
    Prune,
    /// The same, where a state takes over the rewrites of the one before.
    Dpp,
    /// All sequences, of the orders of independent rewrites one.
    SleepSets,
    /// All graphs that rewrites lead to, each explored once.
    Table,
    /// Region by region, each exactly as far as its states can be visited.
    Exact,
    /// A beam, half of it for rewrites that cost something before they pay.
    Sample,
    /// All rewrites at once in an e-graph, and what is cheapest in it.
    Saturate,
    /// One rule after the other in an e-graph, chosen by looking ahead at random.
    Mcts,
    /// What a policy finds most promising first, which was trained on other networks.
    Prior,
    /// Move after move, each decided by simulations that this policy guides.
    Gumbel,
    /// [`SearchKind::Exact`], where this policy decides between moves to equally cheap states.
    GuidedExact,
    /// Episodes of random rewrites.
    Random,
    /// Rollouts of an agent that was trained on this very network.
    XRLflow(Agent),
}

/// A trained agent of X-RLflow. It is read once, and stays for as long as the program runs.
#[derive(Clone, Copy)]
pub struct Agent(&'static regraft_xrlflow::Weights);

impl Agent {
    /// From a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Agent, Failure> {
        let unreadable = |e: &dyn fmt::Display| {
            Failure::new(format!("{}: {e}", path.display())).hint("`regraft policy xrlflow MODEL -o FILE` trains an agent on a model")
        };
        let bytes = std::fs::read(path).map_err(|e| unreadable(&e))?;
        let weights = regraft_xrlflow::Weights::from_bytes(&bytes).map_err(|e| unreadable(&e))?;
        Ok(Agent(Box::leak(Box::new(weights))))
    }

    /// What it was trained by, and for.
    pub fn about(self) -> &'static regraft_xrlflow::About {
        &self.0.about
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Agent) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Agent {}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(self.about()).finish()
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The strategy.
    pub kind: SearchKind,
    /// Longest sequence of rewrites; if `None`, any, but [`STEPS`] for strategies that try all
    /// sequences.
    pub steps: Option<usize>,
}

/// Longest sequence of an exhaustive search unless a request says otherwise, as in the paper on
/// OCGGS.
pub const STEPS: usize = 10;

/// Time that an optimization may take unless a request says otherwise.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(60);

impl From<SearchKind> for Search {
    fn from(kind: SearchKind) -> Search {
        Search { kind, steps: None }
    }
}

impl Search {
    /// The strategies of which it is made up, the fastest first: a single descent, if what it finds
    /// is only to be learned from; and then, in a `hurry`, no exact search of regions.
    pub(crate) fn members(self, learns: bool, hurry: bool) -> Vec<Box<dyn Strategy>> {
        if self.kind != SearchKind::Auto {
            return vec![self.strategy()];
        }
        let fastest = if learns { SearchKind::Greedy } else { SearchKind::Descents };
        let mut members = vec![Search { kind: fastest, ..self }.strategy()];
        // A step of equality saturation may be several rewrites.
        if self.steps.is_none() {
            members.push(Box::new(Saturate::small()));
        }
        // What the others found is taken apart by regions.
        if !(learns && hurry) {
            members.push(Search { kind: SearchKind::Exact, ..self }.strategy());
        }
        members
    }

    /// What a user should know before such a search of a model: that the policy which comes with
    /// the program cannot be used, and why; or that an agent was trained on another model.
    pub fn warning(self, model: &Path) -> Option<String> {
        if let SearchKind::XRLflow(agent) = self.kind {
            let trained_on = &agent.about().model;
            let is_other = Path::new(trained_on).file_stem() != model.file_stem();
            return is_other
                .then(|| format!("the agent was trained on {trained_on}: on another model it finds what chance finds, or less"));
        }
        let is_learned = matches!(self.kind, SearchKind::Prior | SearchKind::Gumbel | SearchKind::GuidedExact);
        let why = is_learned.then(regraft_policy::shipped)?.err()?;
        Some(format!("the search goes by prices alone, for the policy that comes with this program cannot be used: {why}"))
    }

    /// The strategy.
    pub fn strategy(self) -> Box<dyn Strategy> {
        let (limit, order) = (self.steps, Order::Monotone);
        let steps = limit.unwrap_or(STEPS);
        match self.kind {
            SearchKind::Auto => Box::new(Portfolio::new("auto", self.members(false, false))),
            SearchKind::Descents => Box::new(Descents { steps: limit, threaded: true }),
            SearchKind::Greedy => Box::new(Greedy { steps: limit, ..Greedy::default() }),
            SearchKind::Backtrack => Box::new(Backtrack { steps: limit, descend_first: false, expansions: 2000, ..Backtrack::default() }),
            SearchKind::MetaFlow => Box::new(MetaFlow { steps: limit, ..MetaFlow::default() }),
            SearchKind::Enumerate => Box::new(Enumerate { steps }),
            SearchKind::Prune => Box::new(Prune { steps, order }),
            SearchKind::Dpp => Box::new(Dpp { steps, order }),
            SearchKind::SleepSets => Box::new(SleepSets { steps }),
            SearchKind::Table => Box::new(Table { steps }),
            SearchKind::Exact => Box::new(Exact { steps: limit, ..Exact::default() }),
            SearchKind::Sample => Box::new(Sample { steps: limit, ..Sample::default() }),
            // Its steps are no rewrites: there is no limit on them.
            SearchKind::Saturate => Box::new(Saturate::default()),
            SearchKind::Mcts => Box::new(Mcts::default()),
            SearchKind::Prior => Box::new(Learned { method: Method::Prior, steps: limit }),
            SearchKind::Gumbel => Box::new(Learned { method: Method::Gumbel, steps: limit }),
            SearchKind::GuidedExact => Box::new(Learned { method: Method::GuidedExact, steps: limit }),
            SearchKind::Random => Box::new(Random::default()),
            SearchKind::XRLflow(agent) => Box::new(XRLflow::new(agent.0)),
        }
    }
}

/// The strategy as on the command line.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.strategy().name())
    }
}

/// Where prices come from.
#[derive(Clone, Debug)]
pub enum CostKind {
    /// Measured on the target runtime, on this machine.
    Measured,
    /// The analytic roofline; nothing is measured before the final comparison.
    Roofline,
    /// Every operator alike: the fewest are best.
    Operators,
    /// Recorded on another machine, and carried over from this one where it was not recorded there.
    /// They decide: no whole model is timed.
    Recorded(Arc<Recorded>),
}

impl CostKind {
    /// Name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            CostKind::Measured => "measured",
            CostKind::Roofline => "roofline",
            CostKind::Operators => "operators",
            CostKind::Recorded(_) => "recorded",
        }
    }

    /// The recording, if prices come from one.
    pub fn recorded(&self) -> Option<&Recorded> {
        if let CostKind::Recorded(recorded) = self { Some(recorded) } else { None }
    }
}

/// A request to optimize a model. `Request::new` has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct Request {
    /// Model to read.
    pub input: PathBuf,
    /// Model to write.
    pub output: PathBuf,
    /// Where to write the record of how the result was made.
    pub certificate: Option<PathBuf>,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols. The result is searched for, measured and checked at every combination.
    pub binds: Vec<(String, Vec<i64>)>,
    /// Sizes to write the model for, and no others.
    pub freeze: Vec<FreezeArg>,
    /// How to search.
    pub search: Search,
    /// Prices.
    pub cost: CostKind,
    /// Wall time that the whole run may take.
    pub budget: Duration,
    /// Threads per operator in deployment; by default, what the runtime itself uses. With recorded
    /// prices, those that this machine's own prices are of, by default those of the recording.
    pub threads: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// Rules that may be applied.
    pub rules: Choice,
    /// Minimum speed-up required.
    pub min_speedup: Option<f64>,
    /// Limits on what a process takes that loads the result and runs it once.
    pub limits: Limits,
    /// Bytes that the file may grow by.
    pub allow_growth: Option<u64>,
    /// Version of the standard opset to write the model at, if not its own.
    pub opset: Option<i64>,
    /// Bytes of memory that the run may take; by default, most of what is available. See
    /// [`MemoryBudget`](crate::optimize::MemoryBudget).
    pub memory: Option<u64>,
    /// The user's inputs: a folder, or `input:file`.
    pub data: Vec<String>,
    /// The runtime.
    pub runtime: RuntimeChoice,
    /// The program that loads models in processes of their own, to measure what that takes; without
    /// one it is not measured, and no rewritten model is within limits.
    pub starter: Option<Starter>,
    /// Path of the measurement store.
    pub cost_store: Option<PathBuf>,
    /// Use the store as is: measure nothing, and decide by its contents.
    pub frozen: bool,
    /// Time nothing: make each rewrite that gains under the price list of [`cost`](Self::cost),
    /// which no measurement corrects.
    pub untimed: bool,
    /// The command line, for the report.
    pub reproduce: String,
}

impl Request {
    /// A request with the defaults of the command line.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Request {
        let (input, output) = (input.into(), output.into());
        let reproduce = format!("regraft optimize {} -o {}", input.display(), output.display());
        Request {
            input,
            output,
            certificate: None,
            shapes: Vec::new(),
            binds: Vec::new(),
            freeze: Vec::new(),
            search: SearchKind::Auto.into(),
            cost: CostKind::Measured,
            budget: DEFAULT_BUDGET,
            threads: None,
            seed: 0,
            rules: Choice::default(),
            min_speedup: None,
            limits: Limits::default(),
            allow_growth: None,
            opset: None,
            memory: None,
            data: Vec::new(),
            runtime: RuntimeChoice::default(),
            starter: None,
            cost_store: None,
            frozen: false,
            untimed: false,
            reproduce,
        }
    }
}

/// True if a rule is denied by its name or by its numeric class.
pub fn denied(deny: &[String], rule: &str, numeric: Numeric) -> bool {
    deny.iter().any(|d| d == rule || *d == numeric.to_string())
}
