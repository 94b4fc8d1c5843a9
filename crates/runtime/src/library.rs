//! Finding the ONNX Runtime library.
//!
//! Places, in order: an explicit path, `REGRAFT_ONNXRUNTIME`, `ORT_DYLIB_PATH`, virtual
//! environments (the active one, `.venv` in the current directory and in the directories above the
//! program), the `onnxruntime` package of `python3`, system libraries. A place named by the user is
//! the only one tried: a typo must not silently select another library.

use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the path of the library, or of a directory that holds it.
const ENV_OWN: &str = "REGRAFT_ONNXRUNTIME";
/// Environment variable that other programs using the same library read.
const ENV_ORT: &str = "ORT_DYLIB_PATH";
/// How long `python3` may take to name its package directory.
const PYTHON_LIMIT: Duration = Duration::from_secs(10);
/// Oldest supported version.
pub(crate) const OLDEST_MINOR: u32 = 17;

const HINT: &str = "install it with `pip install onnxruntime`, or give the path of libonnxruntime with REGRAFT_ONNXRUNTIME";

/// Why no ONNX Runtime library could be loaded. The installation's fault.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum LibraryError {
    /// Nothing usable in any of the places.
    #[error("no ONNX Runtime library found; searched {}; {HINT}", .searched.join("; "))]
    NotFound {
        /// Each place with what was found there.
        searched: Vec<String>,
    },
    /// The place that the user named holds no usable library.
    #[error("{origin}: {path}: {cause}; {HINT}", path = .path.display())]
    Unusable { origin: Origin, path: PathBuf, cause: String },
    /// A process can only ever load one library.
    #[error("ONNX Runtime is already loaded from {loaded}, it cannot be loaded again from {asked}; start another process", loaded = .loaded.display(), asked = .asked.display())]
    AlreadyLoaded { loaded: PathBuf, asked: PathBuf },
}

/// Where a place came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The caller, e.g. a command-line flag.
    Explicit,
    /// The environment variable `REGRAFT_ONNXRUNTIME`.
    OwnVariable,
    /// The environment variable `ORT_DYLIB_PATH`.
    OrtVariable,
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
            Self::OwnVariable => ENV_OWN,
            Self::OrtVariable => ENV_ORT,
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
pub(crate) fn search<T>(explicit: Option<&Path>, mut load: impl FnMut(&Candidate) -> Result<T, String>) -> Result<T, LibraryError> {
    let env = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let named = explicit
        .map(|p| (Origin::Explicit, p.to_path_buf()))
        .or_else(|| env(ENV_OWN).map(|p| (Origin::OwnVariable, p)))
        .or_else(|| env(ENV_ORT).map(|p| (Origin::OrtVariable, p)));
    if let Some((origin, path)) = named {
        let unusable = |cause: String| LibraryError::Unusable { origin, path: path.clone(), cause };
        let file = library_at(&path).map_err(unusable)?;
        return load(&Candidate { origin, path: file }).map_err(unusable);
    }

    let mut searched = vec![format!("{ENV_OWN} and {ENV_ORT} (not set)")];
    let mut attempt = |candidate: Candidate, searched: &mut Vec<String>| match load(&candidate) {
        Ok(loaded) => Some(loaded),
        Err(cause) => {
            searched.push(format!("{} {} ({cause})", candidate.origin, candidate.path.display()));
            None
        }
    };
    for venv in virtual_environments() {
        match site_packages(&venv).into_iter().find_map(|site| newest_library(&site.join("onnxruntime/capi"))) {
            Some(path) => {
                if let Some(loaded) = attempt(Candidate { origin: Origin::VirtualEnvironment, path }, &mut searched) {
                    return Ok(loaded);
                }
            }
            None => searched.push(format!("{} (no onnxruntime package)", venv.display())),
        }
    }
    match python_package() {
        Ok(package) => match newest_library(&package.join("capi")) {
            Some(path) => {
                if let Some(loaded) = attempt(Candidate { origin: Origin::Python, path }, &mut searched) {
                    return Ok(loaded);
                }
            }
            None => searched.push(format!("{} (no library; versions before 1.19 have none)", package.display())),
        },
        Err(cause) => searched.push(cause),
    }
    for name in system_names() {
        if let Some(loaded) = attempt(Candidate { origin: Origin::System, path: name.into() }, &mut searched) {
            return Ok(loaded);
        }
    }
    Err(LibraryError::NotFound { searched })
}

/// The library file that a user's path means: the file itself, or the newest library in or below a
/// directory.
fn library_at(path: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(path).map_err(|e| e.to_string())?;
    if absolute.is_dir() {
        let below = ["", "capi", "onnxruntime/capi", "lib"];
        return below
            .iter()
            .find_map(|sub| newest_library(&absolute.join(sub)))
            .ok_or_else(|| "the directory holds no ONNX Runtime library".to_owned());
    }
    if absolute.is_file() { Ok(absolute) } else { Err("no such file".to_owned()) }
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
fn newest_library(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((library_version(&path.file_name()?.to_string_lossy())?, path)))
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// The numbers in a library's file name, or `None` for any other name.
fn library_version(name: &str) -> Option<Vec<u64>> {
    let rest = if cfg!(windows) {
        name.strip_prefix("onnxruntime")?.strip_suffix(".dll")?
    } else if cfg!(target_os = "macos") {
        name.strip_prefix("libonnxruntime")?.strip_suffix(".dylib")?
    } else {
        name.strip_prefix("libonnxruntime.so")?
    };
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|n| n.parse().ok()).collect()
}

fn system_names() -> &'static [&'static str] {
    if cfg!(windows) {
        &["onnxruntime.dll"]
    } else if cfg!(target_os = "macos") {
        &["libonnxruntime.dylib"]
    } else {
        &["libonnxruntime.so", "libonnxruntime.so.1"]
    }
}

/// The directory of the `onnxruntime` package of `python3`. The package is located, not imported; a
/// Python that does not answer in time is stopped.
fn python_package() -> Result<PathBuf, String> {
    const LOCATE: &str = "import importlib.util as u; s = u.find_spec('onnxruntime'); \
                          print(s.submodule_search_locations[0] if s else '')";
    let program = if cfg!(windows) { "python" } else { "python3" };
    let failed = |e: std::io::Error| format!("{program} ({e})");
    // A file, not a pipe: a pipe that some grandchild keeps open would never reach its end.
    let mut answer = tempfile::tempfile().map_err(failed)?;
    let mut child = Command::new(program)
        .args(["-c", LOCATE])
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
    if path.is_empty() { Err(format!("{program} (has no onnxruntime package)")) } else { Ok(path.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_wins() {
        if cfg!(any(windows, target_os = "macos")) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["libonnxruntime.so.1.9.1", "libonnxruntime.so.1.31.1", "libonnxruntime_providers_shared.so", "x.txt"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        assert_eq!(newest_library(dir.path()).unwrap().file_name().unwrap(), "libonnxruntime.so.1.31.1");
        assert_eq!(newest_library(&dir.path().join("missing")), None);
    }

    #[test]
    fn a_named_place_is_the_only_one_tried() {
        let mut tried = 0;
        let error = search(Some(Path::new("/nonexistent/libonnxruntime.so")), |_| -> Result<(), String> {
            tried += 1;
            Ok(())
        })
        .unwrap_err();
        assert_eq!(tried, 0);
        let text = error.to_string();
        assert!(text.contains("/nonexistent/libonnxruntime.so") && text.contains("pip install onnxruntime"), "{text}");
    }
}
