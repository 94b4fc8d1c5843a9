//! What a caller requests from `optimize`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use regraft_rules::Numeric;
use regraft_runtime::Starter;
use regraft_search::{Backtrack, Dpp, Enumerate, Exact, Greedy, Order, Prune, Sample, SleepSets, Strategy, Table};

use crate::limits::Limits;
use crate::optimize::Choice;
use crate::units::{FreezeArg, ShapeArg};

/// Which strategy searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// Steepest descent, then backtracking around its result.
    Auto,
    /// Steepest descent with a short look-ahead.
    Greedy,
    /// Cost-based backtracking from the input.
    Backtrack,
    /// All sequences of rewrites up to a length.
    Enumerate {
        /// The length.
        steps: usize,
    },
    /// Of their permutations, those in one order.
    Prune {
        /// The length.
        steps: usize,
    },
    /// The same, where a state takes over the rewrites of the one before.
    Dpp {
        /// The length.
        steps: usize,
    },
    /// All sequences, of the orders of independent rewrites one.
    SleepSets {
        /// The length.
        steps: usize,
    },
    /// All graphs that so many rewrites lead to, each explored once.
    Table {
        /// The length.
        steps: usize,
    },
    /// Region by region, each exactly as far as its states can be visited.
    Exact {
        /// The longest sequence, if it is limited.
        steps: Option<usize>,
    },
    /// A beam, half of it for rewrites that cost something before they pay.
    Sample {
        /// The longest sequence, if it is limited.
        steps: Option<usize>,
    },
}

impl SearchKind {
    /// The strategy.
    pub(crate) fn strategy(self) -> Box<dyn Strategy> {
        let order = Order::Monotone;
        match self {
            SearchKind::Auto => Box::new(Backtrack::default()),
            SearchKind::Greedy => Box::new(Greedy::default()),
            SearchKind::Backtrack => Box::new(Backtrack { descend_first: false, expansions: 2000, ..Backtrack::default() }),
            SearchKind::Enumerate { steps } => Box::new(Enumerate { steps }),
            SearchKind::Prune { steps } => Box::new(Prune { steps, order }),
            SearchKind::Dpp { steps } => Box::new(Dpp { steps, order }),
            SearchKind::SleepSets { steps } => Box::new(SleepSets { steps }),
            SearchKind::Table { steps } => Box::new(Table { steps }),
            SearchKind::Exact { steps } => Box::new(Exact { steps, ..Exact::default() }),
            SearchKind::Sample { steps } => Box::new(Sample { steps, ..Sample::default() }),
        }
    }
}

/// As on the command line.
impl fmt::Display for SearchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == SearchKind::Auto { "auto" } else { self.strategy().name() })
    }
}

/// Where prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostKind {
    /// Measured on the target runtime, on this machine.
    Measured,
    /// The analytic roofline; nothing is measured before the final comparison.
    Roofline,
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
    /// Strategy.
    pub search: SearchKind,
    /// Prices.
    pub cost: CostKind,
    /// Wall time that the whole run may take.
    pub budget: Duration,
    /// Threads per operator in deployment; by default, what the runtime itself uses.
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
    /// Path of the runtime library.
    pub runtime_library: Option<PathBuf>,
    /// The program that loads models in processes of their own, to measure what that takes; without
    /// one it is not measured, and no rewritten model is within limits.
    pub starter: Option<Starter>,
    /// Path of the measurement store.
    pub cost_store: Option<PathBuf>,
    /// Use the store as is: measure nothing, and decide by its contents.
    pub frozen: bool,
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
            search: SearchKind::Auto,
            cost: CostKind::Measured,
            budget: Duration::from_secs(60),
            threads: None,
            seed: 0,
            rules: Choice::default(),
            min_speedup: None,
            limits: Limits::default(),
            allow_growth: None,
            opset: None,
            memory: None,
            data: Vec::new(),
            runtime_library: None,
            starter: None,
            cost_store: None,
            frozen: false,
            reproduce,
        }
    }
}

/// True if a rule is denied by its name or by its numeric class.
pub fn denied(deny: &[String], rule: &str, numeric: Numeric) -> bool {
    deny.iter().any(|d| d == rule || *d == numeric.to_string())
}
