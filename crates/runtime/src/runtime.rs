//! The traits that a target runtime implements.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Clock, DType, Feeds, HostTensor, ModelSource, OptimizedGraph, RawProfile, RuntimeError, Startup};

/// How much a runtime may rewrite a model when it loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum OptLevel {
    /// Nothing: the graph runs as written.
    Disabled,
    /// Rewrites valid on every machine (constant folding, redundant nodes).
    Basic,
    /// Also fusions into the runtime's own operators.
    Extended,
    /// Also changes of memory layout: what users deploy.
    #[default]
    All,
}

impl OptLevel {
    /// The levels below this one, from the highest.
    pub fn lower(self) -> impl Iterator<Item = OptLevel> {
        [OptLevel::Extended, OptLevel::Basic, OptLevel::Disabled].into_iter().filter(move |level| *level < self)
    }
}

impl fmt::Display for OptLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OptLevel::Disabled => "disabled",
            OptLevel::Basic => "basic",
            OptLevel::Extended => "extended",
            OptLevel::All => "all",
        })
    }
}

/// How to open a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// How much the runtime may rewrite the model. Default: [`OptLevel::All`].
    pub level: OptLevel,
    /// Threads within one operator, at least 1. Default: 1. Operators always run one after another.
    pub threads: usize,
    /// Record a profile, for [`Session::end_profile`].
    pub profile: bool,
    /// Keep the graph as the runtime will run it, for [`Session::take_graph`].
    pub graph: bool,
    /// Open it as a new process would: nothing that was kept of earlier sessions is used.
    pub fresh: bool,
    /// Further settings, under the runtime's own names.
    pub config: Vec<(String, String)>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { level: OptLevel::All, threads: 1, profile: false, graph: false, fresh: false, config: Vec::new() }
    }
}

impl SessionOptions {
    /// The same for a session that runs a few times at most: weights stay as the model has them. It
    /// opens sooner and takes less memory, and its runs take longer. Runtimes that do not know the
    /// setting ignore it.
    #[must_use]
    pub fn unpacked(mut self) -> Self {
        self.config.push(("session.disable_prepacking".to_owned(), "1".to_owned()));
        self
    }
}

/// A declared input or output of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueInfo {
    /// Name in the model.
    pub name: String,
    /// Element type; `None` when the value is not a tensor (a sequence, a map, an optional).
    pub dtype: Option<DType>,
    /// Declared sizes, `None` where not fixed. Empty for scalars, for unknown ranks and for values
    /// that are not tensors.
    pub dims: Vec<Option<usize>>,
    /// Names of the dimensions that are not fixed, empty for unnamed ones; as long as `dims`.
    pub symbols: Vec<String>,
}

/// A library that runs ONNX models.
pub trait Runtime: Send + Sync {
    /// Short name, such as `onnxruntime`.
    fn name(&self) -> &str;

    /// Version of the library, such as `1.31.1`.
    fn version(&self) -> &str;

    /// Whether it cannot run an operator of the standard domain on elements of this type at this
    /// opset, although the standard allows it.
    ///
    /// A model that uses such operators does not run in the first place; a rewrite must not
    /// introduce them.
    fn lacks_kernel(&self, _op_type: &str, _dtype: DType, _opset: i64) -> bool {
        false
    }

    /// Threads within one operator that it uses unless told otherwise: as many as most people
    /// deploy on.
    fn default_threads(&self) -> usize {
        1
    }

    /// What times runs with so many threads within one operator.
    fn clock(&self, threads: usize) -> Clock {
        Clock::for_threads(threads)
    }

    /// Loads a model. The session keeps no reference to the source's memory.
    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError>;

    /// What a process of its own takes that loads a model file and runs it once; `None` if there is
    /// no way to start one.
    fn start_up(&self, _model: &Path, _feeds: &Feeds, _options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
        Ok(None)
    }
}

/// A loaded model, ready to run. May move between threads; runs on the calling thread.
pub trait Session: Send {
    /// Declared inputs, in the model's order, without initializers.
    fn inputs(&self) -> &[ValueInfo];

    /// Declared outputs, in the model's order.
    fn outputs(&self) -> &[ValueInfo];

    /// Threads within one operator.
    fn threads(&self) -> usize;

    /// What times its runs.
    fn clock(&self) -> Clock {
        Clock::for_threads(self.threads())
    }

    /// Runs once. `feeds` must hold a value for each input and no others. Outputs come in the
    /// model's order.
    fn run(&mut self, feeds: &Feeds) -> Result<Vec<HostTensor>, RuntimeError>;

    /// Copies input values into the runtime once, for [`run_bound`](Self::run_bound). Replaces
    /// earlier ones.
    fn bind(&mut self, feeds: &Feeds) -> Result<(), RuntimeError>;

    /// Runs once on the bound values and drops the outputs without copying them: the call to time.
    /// A device has done all of it when this returns.
    fn run_bound(&mut self) -> Result<(), RuntimeError>;

    /// Runs once on the bound values; returns the time by the clock, ns.
    fn time_bound(&mut self, clock: Clock) -> Result<u64, RuntimeError> {
        let start = clock.now_ns();
        self.run_bound()?;
        Ok(clock.now_ns().saturating_sub(start))
    }

    /// Stops profiling and returns what was recorded since the session was opened; requires
    /// [`SessionOptions::profile`], and works once.
    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError>;

    /// The graph that runs; requires [`SessionOptions::graph`], and works once.
    fn take_graph(&mut self) -> Option<OptimizedGraph> {
        None
    }
}
