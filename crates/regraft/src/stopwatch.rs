//! Times of the graphs that a model is rewritten to, one after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regraft_ir::{Bindings, Graph};
use regraft_onnx::{Model, WriteOptions};
use regraft_runtime::{
    Fill, FillOptions, InputSpec, ModelSource, Runtime, SessionOptions, TimingOptions, fill_inputs, median, time_interleaved,
};

use crate::error::Failure;
use crate::runtime::RuntimeChoice;

/// Writes graphs as models, and times them on a runtime: for searches that ask what a state takes
/// in earnest. Each is timed by itself, so that drift of the machine is not taken out: what is
/// decided is decided by [`crate::bench`].
pub struct Stopwatch<'m> {
    model: &'m Model,
    symbols: Bindings,
    runtime: Arc<dyn Runtime>,
}

/// Time that is given to a graph, once it has run a few times.
const TIME: Duration = Duration::from_millis(200);

impl<'m> Stopwatch<'m> {
    /// Of rewritten forms of a model at these sizes, on ONNX Runtime: in this library, or where it
    /// is found.
    ///
    /// # Errors
    ///
    /// If there is no runtime.
    pub fn new(model: &'m Model, symbols: Bindings, library: Option<PathBuf>) -> Result<Stopwatch<'m>, Failure> {
        Ok(Stopwatch { model, symbols, runtime: RuntimeChoice { library, ..RuntimeChoice::default() }.load()? })
    }

    /// What a run takes, ns: the median of some.
    ///
    /// # Errors
    ///
    /// If the graph cannot be written, or the runtime does not run it.
    pub fn time(&self, graph: &Graph) -> Result<f64, Failure> {
        let bytes = self.model.write(graph, &WriteOptions::default())?.to_bytes()?;
        let mut session = self.runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default())?;
        let specs = InputSpec::from_values(session.inputs(), |value, axis| {
            let symbol = value.symbols.get(axis)?;
            self.symbols.get(symbol.as_str()).and_then(|size| usize::try_from(*size).ok())
        })?;
        session.bind(&fill_inputs(Fill::Normal, &specs, &FillOptions::default())?)?;
        let until = Instant::now() + TIME;
        let samples = time_interleaved(&mut [session.as_mut()], &TimingOptions::default(), &mut || Instant::now() < until)?;
        median(&samples.sessions[0]).ok_or_else(|| Failure::new("the model did not run"))
    }
}
