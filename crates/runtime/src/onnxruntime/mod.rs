//! ONNX Runtime, called in this process through its C interface.

mod conversion;
mod session;

use std::any::Any;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::{Environment, EnvironmentBuilder};
use ort::logging::LogLevel;
use ort::memory::MemoryInfo;
use ort::session::Session as OrtSession;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use prost::Message;
use regraft_onnx::proto::ModelProto;
use tempfile::TempDir;

use self::conversion::value_info;
use self::session::Opened;
use crate::error::one_line;
use crate::library::{self, Product};
use crate::machine::physical_cores;
use crate::staging;
use crate::{
    Backend, Candidate, Clock, DType, Feeds, LibraryError, ModelSource, OptLevel, OptimizedGraph, Origin, Provider, Runtime, RuntimeError,
    Session, SessionOptions, Starter, Startup,
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

/// Environment variable that keeps ONNX Runtime (since 1.29, on Linux and macOS) from starting a
/// thread that collects and sends what a process does, and from keeping files for it. It must be
/// set before the library is loaded: what its interface offers takes effect after the start.
/// Programs set it before they have threads; so does the Python package, for its process, when it
/// is imported.
pub const NO_TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

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
        let library = library::search(&ONNX_RUNTIME, explicit, |candidate| {
            catch_unwind(|| open(candidate)).unwrap_or_else(|panic| Err(panic_text(&*panic)))
        })?;
        let path = library.candidate.path.clone();
        let inner = guard(|| start(library)).map_err(|cause| LibraryError::NotStarted { library: path, cause })?;
        let runtime = OnnxRuntime { inner: Arc::new(inner), provider: Provider::default(), starter: None };
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
        // Within a run, threads that wait for work spin, as they do where a model is deployed:
        // without that, models of many small operators take half as long again. After a run they
        // would spin on, and take processors from the session whose turn is next.
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

/// The optimized model that the runtime wrote.
fn read_graph(file: &Path, model: &str) -> Result<OptimizedGraph, RuntimeError> {
    let bytes = std::fs::read(file).map_err(|source| RuntimeError::Io { path: file.to_path_buf(), source })?;
    let unreadable = |cause: String| RuntimeError::OptimizedGraph { model: model.to_owned(), cause };
    let proto = ModelProto::decode(bytes.as_slice()).map_err(|e| unreadable(e.to_string()))?;
    let graph = proto.graph.ok_or_else(|| unreadable("it holds no graph".to_owned()))?;
    Ok(OptimizedGraph::of_onnx(&graph))
}

/// Settings by which an optimized model is written without its weights, which may be gigabytes:
/// they go to a second file, and here that file leads nowhere. Versions that do not know the
/// settings ignore them.
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

/// A library that this process has opened, and what starts it.
struct Library {
    candidate: Candidate,
    version: String,
    builder: EnvironmentBuilder,
}

/// Opens a library.
fn open(candidate: &Candidate) -> Result<Library, String> {
    // SAFETY: loading runs the library's initializers. The user, or the Python environment that the
    // user set up, names the file.
    let library = unsafe { libloading::Library::new(&candidate.path) }.map_err(|e| library::loader_message(&e))?;
    let version = version_of(&library)?;
    if minor(&version).is_none_or(|minor| minor < OLDEST_MINOR) {
        return Err(format!("version {version} is not supported; 1.{OLDEST_MINOR} or a later 1.x is needed"));
    }
    // Unloaded, it would be initialized twice.
    std::mem::forget(library);
    let builder = ort::init_from(&candidate.path).map_err(|e| one_line(&e.to_string()))?;
    Ok(Library { candidate: candidate.clone(), version, builder })
}

/// Starts a library: the environment of this process.
///
/// Once in some thousands of starts on busy machines, version 1.31 fails while it registers its
/// operators, with "basic_string::_M_create". Asked again, it fails because some are registered.
fn start(Library { candidate, version, builder }: Library) -> Result<Loaded, String> {
    let environment = builder
        .with_name("regraft")
        .with_telemetry(false)
        // All errors come back from calls; the library's own log lines would break up the program's
        // output.
        .with_logger(Arc::new(|_, _, _, _, _| {}))
        .build()
        .map_err(|e| one_line(&e.to_string()))?;
    environment.set_log_level(LogLevel::Error);
    Ok(Loaded { candidate, version, environment })
}

/// The `N` of version `1.N.x`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

/// The version that a library reports.
fn version_of(library: &libloading::Library) -> Result<String, String> {
    // SAFETY: `OrtGetApiBase` has had this signature in every version of the library.
    let get_base = unsafe { library.get::<unsafe extern "C" fn() -> *const ort::sys::OrtApiBase>(b"OrtGetApiBase") }
        .map_err(|_| "not an ONNX Runtime library (it does not export OrtGetApiBase)".to_owned())?;
    // SAFETY: the function takes nothing and returns a pointer to a static table, or null.
    let base = unsafe { get_base() };
    if base.is_null() {
        return Err("OrtGetApiBase returned nothing".to_owned());
    }
    // SAFETY: `base` is the library's static table, and the version is a static null-terminated
    // string.
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
