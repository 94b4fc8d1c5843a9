//! OpenVINO, called in this process through its C interface.

mod cache;
mod counters;
mod exported;
mod native;
mod session;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use regraft_onnx::Interface;
use regraft_onnx::proto::{ValueInfoProto, tensor_shape_proto::dimension::Value as Size, type_proto::Value as Kind};

use self::cache::Cache;
use self::native::{Compiled, Core, Port, Uncompiled};
use self::session::{Opened, Opening, legible, spied, spy};
use crate::error::one_line;
use crate::library::{self, Product};
use crate::machine::physical_cores;
use crate::{
    Backend, Candidate, Feeds, LibraryError, ModelSource, Origin, Runtime, RuntimeError, Session, SessionOptions, Starter, Startup,
    ValueInfo, staging,
};

const NAME: &str = "openvino";
const DEVICE: &str = "CPU";

/// How it is found.
static OPENVINO: Product =
    Product { title: "OpenVINO", package: "openvino", folder: "libs", stem: "openvino_c", variables: &["REGRAFT_OPENVINO"] };

/// A function that the oldest supported version, 2026.4, was the first to have.
const NEWEST_FUNCTION: &[u8] = b"ov_core_compile_model_props";

/// OpenVINO, with its plugin for processors. A process loads one library, once; copies share it.
#[derive(Clone)]
pub struct OpenVino {
    inner: Arc<Loaded>,
    starter: Option<Starter>,
    cache: Option<Arc<Cache>>,
}

struct Loaded {
    candidate: Candidate,
    version: String,
    core: Core,
}

/// The library that this process has loaded.
static LOADED: Mutex<Option<Arc<Loaded>>> = Mutex::new(None);

impl OpenVino {
    /// Finds and loads the library; see the crate's documentation for the places searched. With
    /// `explicit`, only that file or directory is tried. A second call returns the library already
    /// loaded, or an error when `explicit` names another one.
    ///
    /// # Errors
    ///
    /// There is no library, or none that can be used.
    pub fn load(explicit: Option<&Path>) -> Result<Self, LibraryError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = if let Some(inner) = &*loaded {
            library::same(&OPENVINO, &inner.candidate.path, explicit)?;
            inner.clone()
        } else {
            loaded.insert(Arc::new(library::search(&OPENVINO, explicit, load)?)).clone()
        };
        Ok(OpenVino { inner, starter: None, cache: Cache::new().map(Arc::new) })
    }

    /// The same library, which starts processes of their own by this program.
    #[must_use]
    pub fn started_by(mut self, starter: Option<Starter>) -> Self {
        self.starter = starter;
        self
    }

    /// The library file.
    pub fn library(&self) -> &Path {
        &self.inner.candidate.path
    }

    /// Where the library file came from.
    pub fn origin(&self) -> Origin {
        self.inner.candidate.origin
    }

    fn build(&self, model: ModelSource<'_>, options: &SessionOptions) -> native::Result<Opened> {
        let core = &self.inner.core;
        let threads = options.threads.max(1);
        let mut properties = vec![
            ("NUM_STREAMS", "1".to_owned()),
            ("INFERENCE_NUM_THREADS", threads.to_string()),
            // Where a processor has instructions for them, it would compute in 16 bits.
            ("INFERENCE_PRECISION_HINT", "f32".to_owned()),
            // Pinned threads wait for others that run on their core, even where another one is
            // free.
            ("ENABLE_CPU_PINNING", "NO".to_owned()),
        ];
        if options.profile || options.graph {
            properties.push(("PERF_COUNT", "YES".to_owned()));
        }
        let cache = self.cache.as_ref().filter(|_| !options.fresh);
        let place = cache.map(|cache| cache.place(model));
        let stored = |subject: Uncompiled<'_>| match place.as_deref() {
            Some(place) => compile(core, subject, &properties, Some(place), options.graph),
            None => Err("nothing is kept".to_owned()),
        };
        let unstored = |subject: Uncompiled<'_>| compile(core, subject, &properties, None, options.graph);
        // What cannot be stored can be run all the same; what cannot be run is compiled twice at
        // most.
        let ((compiled, text), interface) = match model {
            ModelSource::Path(path) => {
                let file = Uncompiled::File(path);
                (stored(file).or_else(|_| unstored(file))?, Interface::read(path).map_err(|e| e.to_string())?)
            }
            ModelSource::Bytes { bytes, base: None } => {
                let file = place.as_deref().and_then(|place| cache::file(place, bytes).ok());
                let from_file = file.and_then(|file| stored(Uncompiled::File(&file)).ok());
                // Errors shall not name a file that nobody knows.
                let from_memory = || unstored(Uncompiled::Network(&core.read_bytes(bytes)?));
                (from_file.map_or_else(from_memory, Ok)?, Interface::of(bytes).map_err(|e| e.to_string())?)
            }
            ModelSource::Bytes { bytes, base: Some(base) } => {
                let base = std::path::absolute(base).map_err(|e| format!("{}: {e}", base.display()))?;
                let (_folder, file) = staging::stage(bytes, &base)?;
                let network = core.read(&file)?;
                let network = Uncompiled::Network(&network);
                (stored(network).or_else(|_| unstored(network))?, Interface::of(bytes).map_err(|e| e.to_string())?)
            }
        };
        if let (Some(cache), Some(place)) = (cache, place) {
            cache.used(place);
        }
        let infos = |ports: Vec<Port>, declared: &[ValueInfoProto]| -> native::Result<Vec<ValueInfo>> {
            ports.iter().enumerate().map(|(at, port)| value_info(port, declared.get(at))).collect()
        };
        Opened::new(Opening {
            inputs: infos(compiled.inputs()?, &interface.inputs)?,
            outputs: infos(compiled.outputs()?, &interface.outputs)?,
            compiled,
            threads,
            profile: options.profile,
            graph: options.graph,
            text,
            runtime: self.title(),
            model: model.to_string(),
        })
    }

    fn title(&self) -> String {
        format!("{NAME} {}", self.inner.version)
    }
}

impl Runtime for OpenVino {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> &str {
        &self.inner.version
    }

    /// The number of physical cores, also where the process may use fewer.
    fn default_threads(&self) -> usize {
        physical_cores()
    }

    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let failed = |cause: String| RuntimeError::Load { runtime: self.title(), model: model.to_string(), cause: one_line(&cause) };
        Ok(Box::new(self.build(model, options).map_err(failed)?))
    }

    fn start_up(&self, model: &Path, feeds: &Feeds, options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
        self.starter.as_ref().map(|starter| starter.start((Backend::OpenVino, self.library()), model, feeds, options)).transpose()
    }
}

/// Compiles a model. With a place, it is stored there, or taken from there if it was. With
/// `spying`, the text of the compiled model comes along if it was stored or taken.
fn compile(
    core: &Core,
    subject: Uncompiled<'_>,
    properties: &[(&str, String)],
    place: Option<&Path>,
    spying: bool,
) -> native::Result<(Compiled, String)> {
    let stored = place.and_then(Path::to_str).map(|place| ("CACHE_DIR", place.to_owned()));
    let properties: Vec<(&str, String)> = properties.iter().cloned().chain(stored).collect();
    let codec = if spying { spy } else { legible as native::Codec };
    let compile = || core.compile(subject, DEVICE, &properties, codec);
    if spying { spied(compile) } else { compile().map(|compiled| (compiled, String::new())) }
}

fn load(candidate: &Candidate) -> Result<Loaded, String> {
    {
        // SAFETY: loading runs the library's initializers. The user, or the Python environment that
        // the user set up, names the file.
        let library = unsafe { libloading::Library::new(&candidate.path) }.map_err(|e| library::loader_message(&e))?;
        // SAFETY: the symbol is only looked for.
        if unsafe { library.get::<unsafe extern "C" fn()>(NEWEST_FUNCTION) }.is_err() {
            return Err("the version is not supported; 2026.4 or a later one is needed".to_owned());
        }
        // Unloaded, it would be initialized twice.
        std::mem::forget(library);
    }
    openvino_sys::library::load_from(&candidate.path)?;
    let version = native::version()?;
    Ok(Loaded { candidate: candidate.clone(), version, core: Core::new()? })
}

/// What a port is, under the name that the model declares for it.
fn value_info(port: &Port, declared: Option<&ValueInfoProto>) -> native::Result<ValueInfo> {
    let name = declared.map_or_else(|| port.name(), |declared| Ok(declared.name().to_owned()))?;
    let dims = port.sizes()?.unwrap_or_default();
    let symbol = |axis: usize| {
        let Some(Kind::TensorType(tensor)) = declared?.r#type.as_ref()?.value.as_ref() else { return None };
        match tensor.shape.as_ref()?.dim.get(axis)?.value.as_ref()? {
            Size::DimParam(symbol) => Some(symbol.clone()),
            Size::DimValue(_) => None,
        }
    };
    let symbols = dims.iter().enumerate().map(|(axis, d)| if d.is_none() { symbol(axis).unwrap_or_default() } else { String::new() });
    Ok(ValueInfo { name, dtype: Some(port.dtype()?), symbols: symbols.collect(), dims })
}
