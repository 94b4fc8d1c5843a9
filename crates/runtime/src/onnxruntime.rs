//! ONNX Runtime, called in this process through its C interface.

use std::any::Any;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::memory::{Allocator, MemoryInfo};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{IoBinding, Session as OrtSession, SessionInputValue};
use ort::value::{DynTensor, DynTensorValueType, DynValue, Outlet, Shape, TensorElementType, ValueType};
use prost::Message;
use regraft_onnx::proto::ModelProto;
use tempfile::TempDir;

use crate::error::one_line;
use crate::inputs;
use crate::library::{self, Product};
use crate::machine::physical_cores;
use crate::staging;
use crate::{
    Backend, Candidate, Clock, DType, Feeds, HostTensor, LibraryError, ModelSource, OptLevel, OptimizedGraph, Origin, Provider, RawProfile,
    Runtime, RuntimeError, Session, SessionOptions, Starter, Startup, TensorError, ValueInfo,
};

/// How it is found.
pub(crate) static ONNX_RUNTIME: Product = Product {
    title: "ONNX Runtime",
    package: "onnxruntime",
    folder: "capi",
    stem: "onnxruntime",
    variables: &["REGRAFT_ONNXRUNTIME", "ORT_DYLIB_PATH"],
};

/// Oldest supported version, as the `N` of `1.N`.
const OLDEST_MINOR: u32 = 17;
/// Setting that locates the external data of an in-memory model, and the minor version that
/// introduced it.
const MINOR_EXTERNAL_DIR: u32 = 21;
const KEY_EXTERNAL_DIR: &str = "session.model_external_initializers_file_folder_path";

/// The file of the optimized model, in a session's folder of records.
const GRAPH: &str = "optimized.onnx";

/// Setting that ends the waiting of a session's threads with each run.
const KEY_STOP_SPINNING: &str = "session.force_spinning_stop";

/// ONNX Runtime. A process loads one library, once; copies share it.
#[derive(Clone, Debug)]
pub struct OnnxRuntime {
    inner: Arc<Loaded>,
    provider: Provider,
    starter: Option<Starter>,
}

#[derive(Debug)]
struct Loaded {
    candidate: Candidate,
    version: String,
    environment: Environment,
}

/// The library that this process has loaded.
static LOADED: Mutex<Option<OnnxRuntime>> = Mutex::new(None);

impl OnnxRuntime {
    /// Finds and loads the library; see the crate's documentation for the places searched. With
    /// `explicit`, only that file or directory is tried. A second call returns the library already
    /// loaded, or an error when `explicit` names another one.
    pub fn load(explicit: Option<&Path>) -> Result<Self, LibraryError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*loaded {
            return library::same(&ONNX_RUNTIME, runtime.library(), explicit).map(|()| runtime.clone());
        }
        let runtime = library::search(&ONNX_RUNTIME, explicit, |candidate| {
            catch_unwind(|| load(candidate)).unwrap_or_else(|panic| Err(panic_text(&*panic)))
        })?;
        *loaded = Some(runtime.clone());
        Ok(runtime)
    }

    /// The same library, which starts processes of their own by this program.
    #[must_use]
    pub fn started_by(mut self, starter: Option<Starter>) -> Self {
        self.starter = starter;
        self
    }

    /// The same library, which runs models on this provider.
    ///
    /// # Errors
    ///
    /// The library was built without it.
    pub fn on(mut self, provider: Provider) -> Result<Self, LibraryError> {
        if !provider.is_available() {
            return Err(LibraryError::NoProvider { provider, library: self.library().to_path_buf(), has: self.providers() });
        }
        self.provider = provider;
        Ok(self)
    }

    /// The providers that the library was built with.
    pub fn providers(&self) -> Vec<Provider> {
        Provider::ALL.into_iter().filter(|provider| provider.is_available()).collect()
    }

    /// The library file.
    pub fn library(&self) -> &Path {
        &self.inner.candidate.path
    }

    /// Where the library file came from.
    pub fn origin(&self) -> Origin {
        self.inner.candidate.origin
    }

    fn build(&self, model: ModelSource<'_>, options: &SessionOptions, records: Option<&TempDir>) -> Result<OrtSession, String> {
        let mut builder = self.builder(options, records).map_err(|e| e.to_string())?;
        match model {
            ModelSource::Path(path) => builder.commit_from_file(path).map_err(|e| e.to_string()),
            ModelSource::Bytes { bytes, base } => {
                if let Some(base) = base {
                    let base = std::path::absolute(base).map_err(|e| format!("{}: {e}", base.display()))?;
                    if minor(&self.inner.version).is_none_or(|minor| minor < MINOR_EXTERNAL_DIR) {
                        let (_folder, file) = staging::stage(bytes, &base)?;
                        return builder.commit_from_file(file).map_err(|e| e.to_string());
                    }
                    let base = base.to_str().ok_or_else(|| format!("{}: not valid UTF-8", base.display()))?;
                    builder = builder.with_config_entry(KEY_EXTERNAL_DIR, base).map_err(|e| e.to_string())?;
                }
                builder.commit_from_memory(bytes).map_err(|e| e.to_string())
            }
        }
    }

    fn builder(&self, options: &SessionOptions, records: Option<&TempDir>) -> ort::Result<SessionBuilder> {
        let level = match options.level {
            OptLevel::Disabled => GraphOptimizationLevel::Disable,
            OptLevel::Basic => GraphOptimizationLevel::Level1,
            OptLevel::Extended => GraphOptimizationLevel::Level2,
            OptLevel::All => GraphOptimizationLevel::All,
        };
        // Within a run, threads that wait for work spin, as they do where a model is deployed: without
        // that, models of many small operators take half as long again. After a run they would spin
        // on, and take processors from the session whose turn is next.
        let spins = options.threads > 1;
        let mut builder = OrtSession::builder(&self.inner.environment)?
            .with_log_level(LogLevel::Error)?
            .with_optimization_level(level)?
            .with_intra_threads(options.threads.max(1))?
            .with_inter_threads(1)?
            .with_parallel_execution(false)?
            .with_intra_op_spinning(spins)?
            .with_inter_op_spinning(false)?;
        if spins {
            builder = builder.with_config_entry(KEY_STOP_SPINNING, "1")?;
        }
        if let Some(provider) = self.provider.dispatch(options.threads) {
            builder = builder.with_execution_providers([provider])?;
        }
        if let Some(records) = records {
            if options.profile {
                builder = builder.with_profiling(records.path().join("profile"))?;
            }
            if options.graph {
                builder = builder.with_optimized_model_path(records.path().join(GRAPH))?;
                for (key, value) in weights_left_out(records.path()) {
                    builder = builder.with_config_entry(key, value)?;
                }
            }
        }
        for (key, value) in &options.config {
            builder = builder.with_config_entry(key, value)?;
        }
        Ok(builder)
    }
}

impl Runtime for OnnxRuntime {
    fn name(&self) -> &str {
        Backend::OnnxRuntime(self.provider).name()
    }

    fn version(&self) -> &str {
        &self.inner.version
    }

    fn lacks_kernel(&self, op_type: &str, dtype: DType, opset: i64) -> bool {
        crate::kernels::lacks_kernel(op_type, dtype, opset)
    }

    /// The number of physical cores, also where the process may use fewer.
    fn default_threads(&self) -> usize {
        physical_cores()
    }

    fn clock(&self, threads: usize) -> Clock {
        self.provider.clock(threads)
    }

    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let memory = self.provider.memory().transpose().map_err(|e| RuntimeError::Load {
            runtime: format!("{} {}", self.name(), self.inner.version),
            model: model.to_string(),
            cause: one_line(&e.to_string()),
        })?;
        Ok(Box::new(self.open_in(memory, model, options)?))
    }

    fn start_up(&self, model: &Path, feeds: &Feeds, options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
        self.starter
            .as_ref()
            .map(|starter| starter.start((Backend::OnnxRuntime(self.provider), self.library()), model, feeds, options))
            .transpose()
    }
}

impl OnnxRuntime {
    /// Loads a model whose bound values are in the memory of a device, if there is one.
    fn open_in(
        &self,
        memory: Option<MemoryInfo<'static>>,
        model: ModelSource<'_>,
        options: &SessionOptions,
    ) -> Result<Opened, RuntimeError> {
        let runtime = format!("{} {}", self.name(), self.inner.version);
        let place = model.to_string();
        let records = if options.profile || options.graph {
            let folder = tempfile::Builder::new().prefix("regraft-").tempdir();
            Some(folder.map_err(|source| RuntimeError::Io { path: std::env::temp_dir(), source })?)
        } else {
            None
        };
        let session = guard(|| self.build(model, options, records.as_ref())).map_err(|cause| RuntimeError::Load {
            runtime: runtime.clone(),
            model: place.clone(),
            cause: one_line(&cause),
        })?;
        let graph = match &records {
            Some(records) if options.graph => Some(read_graph(&records.path().join(GRAPH), &place)?),
            _ => None,
        };
        Ok(Opened {
            inputs: session.inputs().iter().map(value_info).collect(),
            outputs: session.outputs().iter().map(value_info).collect(),
            session,
            bound: None,
            memory,
            clock: self.clock(options.threads),
            threads: options.threads.max(1),
            profiling: options.profile,
            graph,
            _records: records,
            runtime,
            model: place,
        })
    }
}

/// Values that runs are timed on.
enum Bound {
    /// In the memory of the process.
    Host(Vec<SessionInputValue<'static>>),
    /// In that of a device, where the outputs stay, too.
    Device(Box<IoBinding>),
}

/// A model that ONNX Runtime has loaded.
struct Opened {
    // Bound values first: they are dropped before the session.
    bound: Option<Bound>,
    session: OrtSession,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
    /// The memory of its device, if it has one.
    memory: Option<MemoryInfo<'static>>,
    clock: Clock,
    threads: usize,
    profiling: bool,
    graph: Option<OptimizedGraph>,
    runtime: String,
    model: String,
    /// Where the runtime writes the profile.
    _records: Option<TempDir>,
}

impl Opened {
    fn run_error(&self, cause: &str) -> RuntimeError {
        RuntimeError::Run { runtime: self.runtime.clone(), model: self.model.clone(), cause: one_line(cause) }
    }

    /// The feeds as the runtime's values, in the order of the model's inputs.
    fn values(&self, feeds: &Feeds) -> Result<Vec<SessionInputValue<'static>>, RuntimeError> {
        // The runtime crashes when it is asked for the type of an optional output that is absent.
        if let Some(outlet) = self.session.outputs().iter().find(|outlet| matches!(outlet.dtype(), ValueType::Optional(_))) {
            return Err(self.unsupported("output", outlet.name(), "optional".to_owned()));
        }
        let ordered = inputs::ordered(&self.model, &self.inputs, feeds)?;
        let value = |(info, tensor): (&ValueInfo, &HostTensor)| {
            guard(|| to_ort(tensor).map_err(|e| e.to_string()))
                .map(SessionInputValue::Owned)
                .map_err(|cause| self.run_error(&format!("input `{}`: {cause}", info.name)))
        };
        self.inputs.iter().zip(ordered).map(value).collect()
    }

    /// Inputs that are copied to the memory of a device, and outputs that stay there.
    fn on_device(&self, values: &[SessionInputValue<'static>], memory: &MemoryInfo<'_>) -> ort::Result<IoBinding> {
        let mut binding = self.session.create_binding()?;
        for (info, value) in self.inputs.iter().zip(values) {
            if let SessionInputValue::Owned(value) = value {
                binding.bind_input(&info.name, value)?;
            }
        }
        for info in &self.outputs {
            binding.bind_output_to_device(&info.name, memory)?;
        }
        binding.synchronize_inputs()?;
        Ok(binding)
    }

    fn unsupported(&self, role: &'static str, name: &str, kind: String) -> RuntimeError {
        RuntimeError::UnsupportedValue { model: self.model.clone(), role, name: name.to_owned(), kind }
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

    fn clock(&self) -> Clock {
        self.clock
    }

    fn run(&mut self, feeds: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
        let values = self.values(feeds)?;
        let session = &mut self.session;
        let outputs = guard(|| {
            let outputs = session.run(&values[..]).map_err(|e| e.to_string())?;
            Ok(outputs.values().map(|value| from_ort(&value)).collect::<Vec<_>>())
        })
        .map_err(|cause| self.run_error(&cause))?;
        self.outputs
            .iter()
            .zip(outputs)
            .map(|(info, output)| match output {
                Ok(tensor) => Ok(tensor),
                Err(Conversion::Kind(kind)) => Err(self.unsupported("output", &info.name, kind)),
                Err(Conversion::Tensor(source)) => {
                    Err(RuntimeError::Tensor { place: format!("output `{}` of {}", info.name, self.model), source })
                }
            })
            .collect()
    }

    fn bind(&mut self, feeds: &Feeds) -> Result<(), RuntimeError> {
        let values = self.values(feeds)?;
        self.bound = Some(match &self.memory {
            None => Bound::Host(values),
            Some(memory) => {
                let binding = guard(|| self.on_device(&values, memory).map_err(|e| e.to_string()));
                Bound::Device(Box::new(binding.map_err(|cause| self.run_error(&cause))?))
            }
        });
        Ok(())
    }

    fn run_bound(&mut self) -> Result<(), RuntimeError> {
        let Some(bound) = &self.bound else {
            return Err(RuntimeError::NotBound { model: self.model.clone() });
        };
        let session = &mut self.session;
        let mut run = || match bound {
            Bound::Host(values) => session.run(&values[..]).map(drop),
            Bound::Device(binding) => session.run_binding(binding).map(drop).and_then(|()| binding.synchronize_outputs()),
        };
        guard(|| run().map_err(|e| e.to_string())).map_err(|cause| self.run_error(&cause))
    }

    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
        if !self.profiling {
            return Err(RuntimeError::NotProfiling { model: self.model.clone() });
        }
        self.profiling = false;
        let session = &mut self.session;
        let file = guard(|| session.end_profiling().map_err(|e| e.to_string())).map_err(|cause| self.run_error(&cause))?;
        let file = PathBuf::from(file);
        let text = std::fs::read(&file).map_err(|source| RuntimeError::Io { path: file.clone(), source })?;
        RawProfile::from_onnxruntime_json(&text).map_err(|cause| RuntimeError::Profile { runtime: self.runtime.clone(), file, cause })
    }

    fn take_graph(&mut self) -> Option<OptimizedGraph> {
        self.graph.take()
    }
}

/// The optimized model that the runtime wrote.
fn read_graph(file: &Path, model: &str) -> Result<OptimizedGraph, RuntimeError> {
    let bytes = std::fs::read(file).map_err(|source| RuntimeError::Io { path: file.to_path_buf(), source })?;
    let unreadable = |cause: String| RuntimeError::OptimizedGraph { model: model.to_owned(), cause };
    let proto = ModelProto::decode(bytes.as_slice()).map_err(|e| unreadable(e.to_string()))?;
    let graph = proto.graph.ok_or_else(|| unreadable("it holds no graph".to_owned()))?;
    Ok(OptimizedGraph::of_onnx(&graph))
}

/// Settings by which an optimized model is written without its weights, which may be gigabytes: they
/// go to a second file, and here that file leads nowhere. Versions that do not know the settings
/// ignore them.
#[cfg(unix)]
fn weights_left_out(folder: &Path) -> Vec<(String, String)> {
    const WEIGHTS: &str = "weights.bin";
    if std::os::unix::fs::symlink("/dev/null", folder.join(WEIGHTS)).is_err() {
        return Vec::new();
    }
    let set = |key: &str, value: &str| (format!("session.optimized_model_external_initializers_{key}"), value.to_owned());
    vec![set("file_name", WEIGHTS), set("min_size_in_bytes", "1024")]
}

#[cfg(not(unix))]
fn weights_left_out(_: &Path) -> Vec<(String, String)> {
    Vec::new()
}

/// Loads one library and starts its process-wide environment.
fn load(candidate: &Candidate) -> Result<OnnxRuntime, String> {
    let version = library_version(&candidate.path)?;
    if minor(&version).is_none_or(|minor| minor < OLDEST_MINOR) {
        return Err(format!("version {version} is not supported; 1.{OLDEST_MINOR} or a later 1.x is needed"));
    }
    // Once in some thousands of starts on busy machines, version 1.31 ends with an exception of its own
    // ("basic_string::_M_create") and starts when it is asked again.
    let environment = start(&candidate.path).or_else(|_| start(&candidate.path))?;
    environment.set_log_level(LogLevel::Error);
    let inner = Arc::new(Loaded { candidate: candidate.clone(), version, environment });
    Ok(OnnxRuntime { inner, provider: Provider::default(), starter: None })
}

/// The environment of a process.
fn start(library: &Path) -> Result<Environment, String> {
    ort::init_from(library)
        .map_err(|e| one_line(&e.to_string()))?
        .with_name("regraft")
        .with_telemetry(false)
        // All errors come back from calls; the library's own log lines would break up the program's
        // output.
        .with_logger(Arc::new(|_, _, _, _, _| {}))
        .build()
        .map_err(|e| one_line(&e.to_string()))
}

/// The `N` of version `1.N.x`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

/// The version that a library reports.
fn library_version(path: &Path) -> Result<String, String> {
    // SAFETY: loading runs the library's initializers. The user, or the Python environment that the user set up, names the file.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| library::loader_message(&e))?;
    // SAFETY: `OrtGetApiBase` has had this signature in every version of the library.
    let get_base = unsafe { library.get::<unsafe extern "C" fn() -> *const ort::sys::OrtApiBase>(b"OrtGetApiBase") }
        .map_err(|_| "not an ONNX Runtime library (it does not export OrtGetApiBase)".to_owned())?;
    // SAFETY: the function takes nothing and returns a pointer to a static table, or null.
    let base = unsafe { get_base() };
    if base.is_null() {
        return Err("OrtGetApiBase returned nothing".to_owned());
    }
    // SAFETY: `base` is the library's static table, and the version is a static null-terminated string.
    let version = unsafe { CStr::from_ptr(((*base).GetVersionString)()) };
    Ok(version.to_string_lossy().into_owned())
}

/// Runs `f`; a panic inside the binding becomes an error like any other.
fn guard<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(panic_text(&*panic)))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("internal failure of the binding: {}", text.unwrap_or("unknown"))
}

fn value_info(outlet: &Outlet) -> ValueInfo {
    let name = outlet.name().to_owned();
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, dimension_symbols } => ValueInfo {
            name,
            dtype: Some(from_element_type(*ty)),
            dims: shape.iter().map(|d| usize::try_from(*d).ok()).collect(),
            symbols: dimension_symbols.iter().map(|s| s.to_string()).collect(),
        },
        _ => ValueInfo { name, dtype: None, dims: Vec::new(), symbols: Vec::new() },
    }
}

/// Why a runtime's value cannot become a tensor.
enum Conversion {
    Kind(String),
    Tensor(TensorError),
}

fn from_ort(value: &DynValue) -> Result<HostTensor, Conversion> {
    let ValueType::Tensor { ty, shape, .. } = value.dtype() else {
        return Err(Conversion::Kind(value.dtype().to_string()));
    };
    let dtype = from_element_type(*ty);
    if dtype.size().is_none() {
        return Err(Conversion::Kind(ty.to_string()));
    }
    let shape: Vec<usize> = shape.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
    let mut tensor = HostTensor::zeros(dtype, shape).map_err(Conversion::Tensor)?;
    let view = value.view().downcast::<DynTensorValueType>().map_err(|e| Conversion::Kind(e.to_string()))?;
    let bytes = tensor.bytes_mut();
    if !bytes.is_empty() {
        let data = view.data_ptr().cast::<u8>();
        // SAFETY: the tensor is on the CPU and holds as many bytes as its element type and shape
        // say.
        bytes.copy_from_slice(unsafe { std::slice::from_raw_parts(data, bytes.len()) });
    }
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(tensor)
}

fn to_ort(tensor: &HostTensor) -> ort::Result<DynValue> {
    let shape = Shape::new(tensor.shape().iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)));
    let mut value = DynTensor::new(&Allocator::default(), to_element_type(tensor.dtype()), shape)?;
    let bytes = tensor.bytes();
    if !bytes.is_empty() {
        let data = value.data_ptr_mut().cast::<u8>();
        // SAFETY: the value was just allocated on the CPU with the tensor's element type and shape, and nothing else holds it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    }
    Ok(value.into_dyn())
}

fn from_element_type(ty: TensorElementType) -> DType {
    match ty {
        TensorElementType::Float32 => DType::F32,
        TensorElementType::Float64 => DType::F64,
        TensorElementType::Float16 => DType::F16,
        TensorElementType::Bfloat16 => DType::BF16,
        TensorElementType::Int8 => DType::I8,
        TensorElementType::Int16 => DType::I16,
        TensorElementType::Int32 => DType::I32,
        TensorElementType::Int64 => DType::I64,
        TensorElementType::Uint8 => DType::U8,
        TensorElementType::Uint16 => DType::U16,
        TensorElementType::Uint32 => DType::U32,
        TensorElementType::Uint64 => DType::U64,
        TensorElementType::Bool => DType::Bool,
        TensorElementType::String => DType::String,
        _ => DType::Other,
    }
}

fn to_element_type(dtype: DType) -> TensorElementType {
    match dtype {
        DType::F32 => TensorElementType::Float32,
        DType::F64 => TensorElementType::Float64,
        DType::F16 => TensorElementType::Float16,
        DType::BF16 => TensorElementType::Bfloat16,
        DType::I8 => TensorElementType::Int8,
        DType::I16 => TensorElementType::Int16,
        DType::I32 => TensorElementType::Int32,
        DType::I64 => TensorElementType::Int64,
        DType::U8 => TensorElementType::Uint8,
        DType::U16 => TensorElementType::Uint16,
        DType::U32 => TensorElementType::Uint32,
        DType::U64 => TensorElementType::Uint64,
        DType::Bool => TensorElementType::Bool,
        DType::String => TensorElementType::String,
        DType::Other => TensorElementType::Undefined,
    }
}

#[cfg(test)]
#[path = "../tests/models/mod.rs"]
#[allow(dead_code)]
mod models;

#[cfg(test)]
mod tests {
    use ort::memory::{AllocationDevice, AllocatorType, MemoryType};

    use super::models::{feeds_for, products};
    use super::*;

    #[test]
    fn values_in_the_memory_of_a_device_are_run_on() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
        let packages = std::fs::read_dir(checkout).into_iter().flatten().flatten();
        let own = packages.map(|e| e.path().join("site-packages/onnxruntime/capi")).find(|p| p.is_dir());
        let named = ONNX_RUNTIME.variables.iter().any(|v| std::env::var_os(v).is_some());
        let Ok(runtime) = OnnxRuntime::load(own.as_deref().filter(|_| !named)) else {
            println!("skipped: no ONNX Runtime");
            return;
        };
        // Processors are a device, too.
        let memory = || MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::Default).unwrap();
        let bytes = products(16, 2).encode_to_vec();
        let mut session = runtime.open_in(Some(memory()), ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
        assert!(matches!(session.run_bound(), Err(RuntimeError::NotBound { .. })));
        let feeds = feeds_for(&session, 4);
        session.bind(&feeds).unwrap();
        assert!(matches!(session.bound, Some(Bound::Device(_))));
        assert!(session.time_bound(Clock::Device).unwrap() > 0);
        let Some(Bound::Device(binding)) = &session.bound else { return };
        let outputs = session.session.run_binding(binding).unwrap();
        let bound: Vec<HostTensor> = outputs.values().filter_map(|value| from_ort(&value).ok()).collect();
        drop(outputs);
        assert_eq!(bound, session.run(&feeds).unwrap());
    }
}
