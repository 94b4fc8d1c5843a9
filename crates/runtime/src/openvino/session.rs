//! A model that OpenVINO has compiled.

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::counters::{Reading, profile};
use super::exported::Exported;
use super::native::{self, Compiled, Request, Tensor};
use crate::error::one_line;
use crate::{DType, Feeds, HostTensor, OptimizedGraph, RawProfile, RuntimeError, Session, ValueInfo, inputs};

/// A model, ready to run.
pub(super) struct Opened {
    request: Request,
    // Dropped after the request.
    _compiled: Compiled,
    pub inputs: Vec<ValueInfo>,
    pub outputs: Vec<ValueInfo>,
    threads: usize,
    bound: bool,
    graph: Option<OptimizedGraph>,
    /// Its nodes' operators, for the profile.
    operators: Option<OptimizedGraph>,
    readings: Option<Vec<Reading>>,
    runtime: String,
    model: String,
}

/// What [`Opened::new`] needs to know.
pub(super) struct Opening {
    pub compiled: Compiled,
    pub inputs: Vec<ValueInfo>,
    pub outputs: Vec<ValueInfo>,
    pub threads: usize,
    pub profile: bool,
    /// Whether to keep the graph.
    pub graph: bool,
    /// The text of the compiled model, if it passed through when the model was compiled.
    pub text: String,
    pub runtime: String,
    pub model: String,
}

impl Opened {
    pub fn new(opening: Opening) -> native::Result<Opened> {
        let Opening { compiled, inputs, outputs, threads, profile, graph, text, runtime, model } = opening;
        let request = compiled.request()?;
        let graph = if graph {
            let text = if text.is_empty() { exported(&compiled)? } else { text };
            let layers = Exported::parse(&text).map_err(|cause| format!("the compiled model cannot be read: {cause}"))?;
            Some(layers.graph(&request.counters()?))
        } else {
            None
        };
        let readings = profile.then(Vec::new);
        let operators = graph.clone().filter(|_| profile);
        Ok(Opened { request, _compiled: compiled, inputs, outputs, threads, bound: false, graph, operators, readings, runtime, model })
    }

    fn run_error(&self, cause: &str) -> RuntimeError {
        RuntimeError::Run { runtime: self.runtime.clone(), model: self.model.clone(), cause: one_line(cause) }
    }

    fn infer(&mut self) -> Result<(), RuntimeError> {
        let start = Instant::now();
        self.request.infer().map_err(|cause| self.run_error(&cause))?;
        if let Some(readings) = &mut self.readings {
            let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let counters = self.request.counters();
            let counters =
                counters.map_err(|cause| RuntimeError::Run { runtime: self.runtime.clone(), model: self.model.clone(), cause })?;
            readings.push(Reading { ns, counters });
        }
        Ok(())
    }

    fn output(&self, at: usize) -> Result<HostTensor, RuntimeError> {
        let info = &self.outputs[at];
        let failed = |cause: String| self.run_error(&format!("output `{}`: {cause}", info.name));
        let tensor = self.request.output(at).map_err(failed)?;
        let dtype = tensor.dtype().map_err(failed)?;
        if dtype.size().is_none() {
            let (model, name) = (self.model.clone(), info.name.clone());
            return Err(RuntimeError::UnsupportedValue { model, role: "output", name, kind: dtype.to_string() });
        }
        let place = || format!("output `{}` of {}", info.name, self.model);
        let (shape, bytes) = (tensor.shape().map_err(failed)?, tensor.bytes().map_err(failed)?);
        let mut value = HostTensor::from_bytes(dtype, shape, bytes).map_err(|source| RuntimeError::Tensor { place: place(), source })?;
        if dtype == DType::Bool {
            value.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(value)
    }
}

impl Session for Opened {
    fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&mut self, feeds: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
        self.bind(feeds)?;
        self.infer()?;
        (0..self.outputs.len()).map(|at| self.output(at)).collect()
    }

    fn bind(&mut self, feeds: &Feeds) -> Result<(), RuntimeError> {
        self.bound = false;
        for (at, value) in inputs::ordered(&self.model, &self.inputs, feeds)?.into_iter().enumerate() {
            Tensor::new(value.dtype(), value.shape(), value.bytes())
                .and_then(|tensor| self.request.set_input(at, &tensor))
                .map_err(|cause| self.run_error(&format!("input `{}`: {cause}", self.inputs[at].name)))?;
        }
        self.bound = true;
        Ok(())
    }

    fn run_bound(&mut self) -> Result<(), RuntimeError> {
        if !self.bound {
            return Err(RuntimeError::NotBound { model: self.model.clone() });
        }
        self.infer()
    }

    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
        let readings = self.readings.take().ok_or_else(|| RuntimeError::NotProfiling { model: self.model.clone() })?;
        Ok(profile(&readings, self.operators.take().as_ref()))
    }

    fn take_graph(&mut self) -> Option<OptimizedGraph> {
        self.graph.take()
    }
}

/// Held while a text passes through: the function that receives it has no context.
static SPYING: Mutex<()> = Mutex::new(());

/// The text that passed through.
static SPIED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// What `run` gives, and the text of the model that OpenVINO stored, loaded or exported with
/// [`spy`] meanwhile; empty if it did nothing of the kind.
pub(super) fn spied<T>(run: impl FnOnce() -> native::Result<T>) -> native::Result<(T, String)> {
    let _alone = SPYING.lock().unwrap_or_else(PoisonError::into_inner);
    let take = || std::mem::take(&mut *SPIED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(take());
    let result = run()?;
    Ok((result, String::from_utf8(take()).map_err(|e| e.to_string())?))
}

/// Leaves the text of a model as it is: OpenVINO gives what it stores to a function of the user's
/// to encrypt it, and what it loads, to decrypt it. Without one, it stores something illegible.
pub(super) unsafe extern "C" fn legible(input: *const c_char, length: usize, output: *mut c_char, written: *mut usize) {
    if !output.is_null() && !input.is_null() {
        // SAFETY: the library passes bytes and their number, and a place for as many as the call
        // before this one said.
        unsafe { std::ptr::copy_nonoverlapping(input, output, length) };
    }
    if !written.is_null() {
        // SAFETY: the library passes a place to write to.
        unsafe { *written = length };
    }
}

/// The same, and keeps the text.
pub(super) unsafe extern "C" fn spy(input: *const c_char, length: usize, output: *mut c_char, written: *mut usize) {
    // SAFETY: the arguments are the library's.
    unsafe { legible(input, length, output, written) };
    if output.is_null() || input.is_null() {
        return;
    }
    // SAFETY: the library passes bytes and their number.
    let text = unsafe { std::slice::from_raw_parts(input.cast::<u8>(), length) };
    let mut spied = SPIED.lock().unwrap_or_else(PoisonError::into_inner);
    // The model is the longest of the texts.
    if text.len() > spied.len() {
        spied.clear();
        spied.extend_from_slice(text);
    }
}

/// The text of a model as it was compiled, which goes nowhere.
fn exported(compiled: &Compiled) -> native::Result<String> {
    let (_, text) = spied(|| {
        if cfg!(unix) {
            return compiled.export(Path::new("/dev/null"));
        }
        let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        compiled.export(file.path())
    })?;
    Ok(text)
}
