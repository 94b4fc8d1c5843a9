//! Finding the library of a runtime.
//!
//! Places, in order: an explicit path, the environment variables of the [`Product`], virtual
//! environments (the active one, `.venv` in the current directory and in the directories above the
//! program), the product's package of `python3`, system libraries. A place named by the user is
//! the only one tried: a typo must not silently select another library.

use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Provider;
use crate::error::one_line;

/// How long `python3` may take to name its package directory.
const PYTHON_LIMIT: Duration = Duration::from_secs(10);

/// A library that runs models, and the names under which it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// What people call it.
    pub title: &'static str,
    /// The Python package that carries the library.
    pub package: &'static str,
    /// The library's folder within the package.
    pub folder: &'static str,
    /// The library's file name without `lib`, version and suffix.
    pub stem: &'static str,
    /// Environment variables with the path of the library, or of a folder that holds it. The first
    /// one that is set counts.
    pub variables: &'static [&'static str],
}

impl Product {
    /// What to do where it is missing.
    fn hint(&self) -> String {
        let (package, stem) = (self.package, self.stem);
        let variable = self.variables.first().map_or(String::new(), |v| format!(" with {v}"));
        format!("install it with `pip install {package}`, or give the path of lib{stem}{variable}")
    }
}

/// Why no library of a runtime could be loaded. The installation's fault.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum LibraryError {
    /// Nothing usable in any of the places.
    #[error("no {} library found; searched {}; {}", .product.title, .searched.join("; "), .product.hint())]
    NotFound {
        product: &'static Product,
        /// Each place with what was found there.
        searched: Vec<String>,
    },
    /// The place that the user named holds no usable library.
    #[error("{origin}: {path}: {cause}; {}", .product.hint(), path = .path.display())]
    Unusable { product: &'static Product, origin: Origin, path: PathBuf, cause: String },
    /// The library was loaded and failed to start. It cannot be asked twice in one process, and in
    /// another it may well start.
    #[error("{library} failed to start: {cause}; start the program again", library = .library.display())]
    NotStarted { library: PathBuf, cause: String },
    /// A process can only ever load one library of a product.
    #[error("{} is already loaded from {loaded}, it cannot be loaded again from {asked}; start another process", .product.title, loaded = .loaded.display(), asked = .asked.display())]
    AlreadyLoaded { product: &'static Product, loaded: PathBuf, asked: PathBuf },
    /// The library was built without an execution provider.
    #[error(
        "{library} was built without the execution provider `{}`; it has {}; install the package that has it",
        .provider.name(), .has.iter().map(|p| p.name()).collect::<Vec<_>>().join(", "), library = .library.display()
    )]
    NoProvider { provider: Provider, library: PathBuf, has: Vec<Provider> },
}

impl LibraryError {
    /// Whether another process may well load it.
    pub fn passes(&self) -> bool {
        matches!(self, Self::NotStarted { .. })
    }
}

/// Where a place came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The caller, e.g. a command-line flag.
    Explicit,
    /// This environment variable.
    Variable(&'static str),
    /// The active virtual environment, or a `.venv` directory.
    VirtualEnvironment,
    /// The package of the `python3` on the search path.
    Python,
    /// The dynamic loader's own search path.
    System,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Explicit => "given path",
            Self::Variable(name) => name,
            Self::VirtualEnvironment => "virtual environment",
            Self::Python => "python3 package",
            Self::System => "system library",
        })
    }
}

/// A place where the library may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it came from.
    pub origin: Origin,
    /// The library file; a bare file name for [`Origin::System`].
    pub path: PathBuf,
}

/// Tries `load` on each place in order until it succeeds.
pub(crate) fn search<T>(
    product: &'static Product,
    explicit: Option<&Path>,
    mut load: impl FnMut(&Candidate) -> Result<T, String>,
) -> Result<T, LibraryError> {
    let variable = |name: &&'static str| Some((*name, std::env::var_os(name).filter(|v| !v.is_empty())?));
    let named = explicit
        .map(|p| (Origin::Explicit, p.to_path_buf()))
        .or_else(|| product.variables.iter().find_map(variable).map(|(name, path)| (Origin::Variable(name), path.into())));
    if let Some((origin, path)) = named {
        let unusable = |cause: String| LibraryError::Unusable { product, origin, path: path.clone(), cause };
        let file = library_at(product, &path).map_err(unusable)?;
        return load(&Candidate { origin, path: file }).map_err(unusable);
    }

    let mut searched = vec![format!("{} (not set)", product.variables.join(" and "))];
    let mut attempt = |candidate: Candidate, searched: &mut Vec<String>| match load(&candidate) {
        Ok(loaded) => Some(loaded),
        Err(cause) => {
            searched.push(format!("{} {} ({cause})", candidate.origin, candidate.path.display()));
            None
        }
    };
    for venv in virtual_environments() {
        let within = |site: PathBuf| newest_library(product, &site.join(product.package).join(product.folder));
        match site_packages(&venv).into_iter().find_map(within) {
            Some(path) => {
                if let Some(loaded) = attempt(Candidate { origin: Origin::VirtualEnvironment, path }, &mut searched) {
                    return Ok(loaded);
                }
            }
            None => searched.push(format!("{} (no {} package)", venv.display(), product.package)),
        }
    }
    match python_package(product) {
        Ok(package) => match newest_library(product, &package.join(product.folder)) {
            Some(path) => {
                if let Some(loaded) = attempt(Candidate { origin: Origin::Python, path }, &mut searched) {
                    return Ok(loaded);
                }
            }
            None => searched.push(format!("{} (no library; old versions have none)", package.display())),
        },
        Err(cause) => searched.push(cause),
    }
    for path in system_names(product) {
        if let Some(loaded) = attempt(Candidate { origin: Origin::System, path }, &mut searched) {
            return Ok(loaded);
        }
    }
    Err(LibraryError::NotFound { product, searched })
}

/// The library file that a user's path means: the file itself, or the newest library in or below a
/// directory.
fn library_at(product: &'static Product, path: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(path).map_err(|e| e.to_string())?;
    if absolute.is_dir() {
        let below = ["".into(), product.folder.into(), Path::new(product.package).join(product.folder), "lib".into()];
        return below
            .iter()
            .find_map(|sub| newest_library(product, &absolute.join(sub)))
            .ok_or_else(|| format!("the directory holds no {} library", product.title));
    }
    if absolute.is_file() { Ok(absolute) } else { Err("no such file".to_owned()) }
}

/// Fails if a path names another library than the one that is loaded: the library itself, or a
/// folder that contains it.
pub(crate) fn same(product: &'static Product, loaded: &Path, asked: Option<&Path>) -> Result<(), LibraryError> {
    let Some(asked) = asked else { return Ok(()) };
    let library = loaded.canonicalize().ok();
    if asked.canonicalize().is_ok_and(|asked| library.is_some_and(|library| library.starts_with(asked))) {
        return Ok(());
    }
    Err(LibraryError::AlreadyLoaded { product, loaded: loaded.to_path_buf(), asked: asked.to_path_buf() })
}

/// The dynamic loader's own message, which the error keeps as its source.
pub(crate) fn loader_message(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    one_line(&source.map_or_else(|| error.to_string(), ToString::to_string))
}

fn virtual_environments() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        if path.is_dir() && !found.contains(&path) {
            found.push(path);
        }
    };
    if let Some(active) = std::env::var_os("VIRTUAL_ENV").filter(|v| !v.is_empty()) {
        add(active.into());
    }
    if let Ok(here) = std::env::current_dir() {
        add(here.join(".venv"));
    }
    if let Ok(program) = std::env::current_exe() {
        for dir in program.ancestors().skip(1) {
            add(dir.join(".venv"));
        }
    }
    found
}

fn site_packages(venv: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        return vec![venv.join("Lib/site-packages")];
    }
    let mut sites = Vec::new();
    for lib in ["lib", "lib64"] {
        let entries = std::fs::read_dir(venv.join(lib)).into_iter().flatten().flatten();
        let mut here: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python")))
            .map(|path| path.join("site-packages"))
            .collect();
        here.sort();
        sites.extend(here.into_iter().rev());
    }
    sites
}

/// The library with the highest version in a directory, if there is one.
fn newest_library(product: &'static Product, dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((library_version(product, &path.file_name()?.to_string_lossy())?, path)))
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// The numbers in a library's file name, or `None` for any other name.
fn library_version(product: &'static Product, name: &str) -> Option<Vec<u64>> {
    let rest = if cfg!(windows) {
        name.strip_prefix(product.stem)?.strip_suffix(".dll")?
    } else {
        let rest = name.strip_prefix("lib")?.strip_prefix(product.stem)?;
        if cfg!(target_os = "macos") { rest.strip_suffix(".dylib")? } else { rest.strip_prefix(".so")? }
    };
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|n| n.parse().ok()).collect()
}

fn system_names(product: &'static Product) -> Vec<PathBuf> {
    let stem = product.stem;
    if cfg!(windows) {
        vec![format!("{stem}.dll").into()]
    } else if cfg!(target_os = "macos") {
        vec![format!("lib{stem}.dylib").into()]
    } else {
        vec![format!("lib{stem}.so").into(), format!("lib{stem}.so.1").into()]
    }
}

/// The directory of the product's package of `python3`. The package is located, not imported; a
/// Python that does not answer in time is stopped.
fn python_package(product: &'static Product) -> Result<PathBuf, String> {
    let package = product.package;
    let locate = format!(
        "import importlib.util as u; s = u.find_spec('{package}'); \
         print(s.submodule_search_locations[0] if s else '')"
    );
    let program = if cfg!(windows) { "python" } else { "python3" };
    let failed = |e: std::io::Error| format!("{program} ({e})");
    // A file, not a pipe: a pipe that some grandchild keeps open would never reach its end.
    let mut answer = tempfile::tempfile().map_err(failed)?;
    let mut child = Command::new(program)
        .args(["-c", &locate])
        .stdin(Stdio::null())
        .stdout(answer.try_clone().map_err(failed)?)
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if started.elapsed() < PYTHON_LIMIT => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                // The answer is no longer wanted; failing to stop the process changes nothing.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} (no answer within {} s)", PYTHON_LIMIT.as_secs()));
            }
        }
    }
    let mut path = String::new();
    answer.seek(SeekFrom::Start(0)).and_then(|_| answer.read_to_string(&mut path)).map_err(failed)?;
    let path = path.trim();
    if path.is_empty() { Err(format!("{program} (has no {package} package)")) } else { Ok(path.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnxruntime::ONNX_RUNTIME;

    #[test]
    fn newest_version_wins() {
        if cfg!(any(windows, target_os = "macos")) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["libonnxruntime.so.1.9.1", "libonnxruntime.so.1.31.1", "libonnxruntime_providers_shared.so", "x.txt"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        assert_eq!(newest_library(&ONNX_RUNTIME, dir.path()).unwrap().file_name().unwrap(), "libonnxruntime.so.1.31.1");
        assert_eq!(newest_library(&ONNX_RUNTIME, &dir.path().join("missing")), None);
    }

    #[test]
    fn a_named_place_is_the_only_one_tried() {
        let mut tried = 0;
        let error = search(&ONNX_RUNTIME, Some(Path::new("/nonexistent/libonnxruntime.so")), |_| -> Result<(), String> {
            tried += 1;
            Ok(())
        })
        .unwrap_err();
        assert_eq!(tried, 0);
        let text = error.to_string();
        assert!(text.contains("/nonexistent/libonnxruntime.so") && text.contains("pip install onnxruntime"), "{text}");
    }
}
